// The attribute of a module whose evaluation is made of sums over rows; what it
// says stands in AccelDialect.td.

#ifndef ACCEL_DIALECTS_ACCEL_SEPARATEROWS_H
#define ACCEL_DIALECTS_ACCEL_SEPARATEROWS_H

#include "llvm/ADT/StringRef.h"

namespace accel {

inline constexpr llvm::StringLiteral kSeparateRowsAttr = "accel.separate_rows";

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_SEPARATEROWS_H
