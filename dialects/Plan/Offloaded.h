// The marks of offload. Of states that the device does not keep: made before
// forms are chosen, obeyed when all else is settled. Of kernels that update
// tiles of them, or cannot. Of bodies that wait for copies.

#ifndef ACCEL_DIALECTS_PLAN_OFFLOADED_H
#define ACCEL_DIALECTS_PLAN_OFFLOADED_H

#include "llvm/ADT/StringRef.h"

namespace accel::plan {
/// Attribute of a state's buffer, from `plan-mark-offloaded` to
/// `plan-offload-states`: the space in which it will lie (host or nvme).
/// Nothing else may have its bytes on the device from load on.
inline constexpr llvm::StringLiteral kOffloadedAttr = "plan.offloaded";

/// Attribute of a kernel, from `plan-tile-updates` on: the buffers of offloaded
/// states of which it touches a tile that is staged alone.
inline constexpr llvm::StringLiteral kTileAttr = "plan.tile";
/// Dictionary attribute of a command that touches more of offloaded states than
/// a tile: `states`, their names, and `why` it could not be cut. Of other
/// commands than kernels it stands where an update could have been.
inline constexpr llvm::StringLiteral kStagedWholeAttr = "plan.staged_whole";

/// Float attribute of a body: the part of its time, by the table of the target,
/// for which its computation waits for copies.
inline constexpr llvm::StringLiteral kCopiesWaitAttr = "plan.copies_wait";
} // namespace accel::plan

#endif // ACCEL_DIALECTS_PLAN_OFFLOADED_H
