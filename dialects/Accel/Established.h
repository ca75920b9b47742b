// What passes have established of a module since its last phase: the attribute
// by which each of them finds whether it is its turn (lib/Parallel/Order.h).

#ifndef ACCEL_DIALECTS_ACCEL_ESTABLISHED_H
#define ACCEL_DIALECTS_ACCEL_ESTABLISHED_H

#include "llvm/ADT/StringRef.h"

namespace accel {

inline constexpr llvm::StringLiteral kEstablishedAttr = "accel.established";

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_ESTABLISHED_H
