// The attributes of a module whose evaluation is made of sums over rows, and
// whose step takes a mask of them; what they say stands in AccelDialect.td.

#ifndef ACCEL_DIALECTS_ACCEL_SEPARATEROWS_H
#define ACCEL_DIALECTS_ACCEL_SEPARATEROWS_H

#include "llvm/ADT/StringRef.h"

namespace accel {

inline constexpr llvm::StringLiteral kSeparateRowsAttr = "accel.separate_rows";
inline constexpr llvm::StringLiteral kRowMaskAttr = "accel.row_mask";

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_SEPARATEROWS_H
