// What schedules drive beside the rate: momentum and weight decay. Private to
// the library.

#ifndef ACCEL_LIB_AUTODIFF_DRIVENRULE_H
#define ACCEL_LIB_AUTODIFF_DRIVENRULE_H

#include "UpdateRule.h"
#include "llvm/ADT/StringMap.h"

namespace accel::autodiff {

// The settings of a weight decay that grows.
inline constexpr llvm::StringLiteral kStartDecay =
                                         "scheduler.start_weight_decay",
                                     kEndDecay = "scheduler.end_weight_decay",
                                     kIncrease =
                                         "scheduler.weight_decay_incr_style",
                                     kIncreaseSteps =
                                         "scheduler.weight_decay_incr_steps";

/// Puts together what `seen` (settings by their keys) says of a weight decay
/// that grows. Fails where it, or what the schedule drives, does not go
/// together with the rest of the rule, whose settings have been read.
llvm::Error completeDriven(UpdateRule &rule,
                           const llvm::StringMap<llvm::StringRef> &seen);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_DRIVENRULE_H
