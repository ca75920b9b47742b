// The settings that a pass obeys, by the names that files and `--set` have.

#ifndef ACCEL_LIB_DRIVER_SETTINGS_H
#define ACCEL_LIB_DRIVER_SETTINGS_H

#include "Phases.h"
#include "llvm/Support/Error.h"

namespace accel::driver {

/// Whether `--schedule` may say so: a schedule of one stage, or of several.
bool isSchedule(llvm::StringRef name);

/// What is wrong with a policy of `--recompute`.
llvm::Error checkRecompute(llvm::StringRef policy);

/// What is wrong with a budget of `--memory-budget`.
llvm::Error checkMemoryBudget(llvm::StringRef budget);

/// Whether a phase has a pass that obeys `name` (`zero_stage`). What is called
/// otherwise is the update's (`optimizer.lr`), or nobody's.
bool isPhaseSetting(llvm::StringRef name);

/// Puts the value into the option of the pass that obeys it. Fails if it is not
/// of that option's type; what else is wrong with it the pass says. Requires
/// `isPhaseSetting(name)`.
llvm::Error applySetting(PhaseOptions &options, llvm::StringRef name,
                         llvm::StringRef value);

/// Refuses one that nothing reads beside the others, when all are applied;
/// "NAME=VALUE".
llvm::Error checkIsRead(const PhaseOptions &options, llvm::StringRef setting);

/// Refuses settings that do not go together, when all are applied, whoever said
/// them: what no pass would need a model for.
llvm::Error checkTogether(const PhaseOptions &options);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_SETTINGS_H
