// Names of schedules, and what their numbers have to be together. Private to
// the library.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULERULE_H
#define ACCEL_LIB_AUTODIFF_SCHEDULERULE_H

#include "UpdateRule.h"
#include "llvm/ADT/StringSet.h"

namespace accel::autodiff {

// Sets of schedules, a bit each.
constexpr unsigned bit(Schedule schedule) { return 1u << unsigned(schedule); }
inline constexpr unsigned kFalling =
    bit(Schedule::Linear) | bit(Schedule::Cosine);
inline constexpr unsigned kWarmupDecay = bit(Schedule::WarmupDecayLR);
inline constexpr unsigned kWarmupCosine = bit(Schedule::WarmupCosineLR);
inline constexpr unsigned kOfDeepSpeed =
    bit(Schedule::WarmupLR) | kWarmupDecay | kWarmupCosine;
inline constexpr unsigned kAny =
    bit(Schedule::Constant) | kFalling | kOfDeepSpeed;

llvm::StringRef stringifySchedule(Schedule schedule);
/// "constant, linear or cosine".
std::string joinNames(unsigned schedules);

/// Fills in what the schedule has where nothing is said (`seen`: keys that
/// are), and refuses numbers that it cannot have.
llvm::Error completeSchedule(UpdateRule &rule, const llvm::StringSet<> &seen);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULERULE_H
