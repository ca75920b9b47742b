// The stream in which a rank computes, by name; others copy and talk beside it.

#ifndef ACCEL_LIB_PLAN_COMPUTESTREAM_H
#define ACCEL_LIB_PLAN_COMPUTESTREAM_H

#include "llvm/ADT/StringRef.h"

namespace accel::plan {

inline constexpr llvm::StringLiteral kComputeStream = "compute";

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_COMPUTESTREAM_H
