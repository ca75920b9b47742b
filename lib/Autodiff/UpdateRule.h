// The rule by which parameters are updated: what `--optimizer` and `--set` come
// to.

#ifndef ACCEL_LIB_AUTODIFF_UPDATERULE_H
#define ACCEL_LIB_AUTODIFF_UPDATERULE_H

#include "lib/Autodiff/Optimizers/OptimizerTable.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace accel::autodiff {

/// The first three count finished steps, as transformers' schedules with warmup
/// and Megatron-LM's do; the others are DeepSpeed's classes, by its own clock.
enum class Schedule {
  Constant,
  Linear,
  Cosine,
  WarmupLR,
  WarmupDecayLR,
  WarmupCosineLR
};

/// Of `optimizer.no_decay`: parameters of one dimension, and biases.
inline constexpr llvm::StringLiteral kVectors = "vectors";
/// Of `optimizer.decay`: norms of queries and keys.
inline constexpr llvm::StringLiteral kQkNorms = "qk_norms";

/// An optimizer and its numbers: of all parameters, or of a group.
struct OptimizerRule {
  const OptimizerKind *kind = findOptimizer("adamw");
  Hyperparameters values = kind->getDefaults();

  double lr() const { return values.get("lr"); }
  bool operator<(const OptimizerRule &other) const {
    return std::tie(kind, values) < std::tie(other.kind, other.values);
  }
};

/// What a group can say beside its optimizer's numbers: which optimizer.
inline constexpr llvm::StringLiteral kGroupType = "type";

/// `groups[PATTERN].KEY=VALUE`: what is so for the parameters whose names the
/// glob pattern matches. Of several that match, the last says it.
struct GroupSetting {
  std::string pattern, key, value;
};

/// How a step turns gradients into new parameters. Names and defaults of
/// schedules are transformers' and DeepSpeed's.
struct UpdateRule {
  OptimizerRule optimizer;
  std::vector<GroupSetting> groups;
  /// Parameters that are not decayed, but for those of `decay`: glob patterns,
  /// and `kVectors` or `kQkNorms`.
  std::vector<std::string> noDecay, decay;
  std::optional<double> clipping; ///< largest norm of all gradients together
  Schedule schedule = Schedule::Constant;
  int64_t warmupSteps = 0;
  /// The rate rises by the logarithm of the step (DeepSpeed's WarmupLR), not
  /// linearly.
  bool logWarmup = false;
  std::optional<int64_t> totalSteps;
  /// The rate that a warmup begins at; what WarmupDecayLR falls to as well.
  double warmupMinLr = 0;
  double minLr = 0; ///< what Linear and Cosine fall to
  /// The same of WarmupCosineLR, as parts of `lr`.
  double warmupMinRatio = 0, cosMinRatio = 1e-4;
  int64_t seed = 0; ///< of everything random
};

/// Whether the class is DeepSpeed's, of which a step's number is two less than
/// the step's (from 1), and a warmup takes two steps at least.
bool isDeepSpeed(Schedule schedule);
/// By its name as `scheduler.type`; none if there is no such schedule.
std::optional<Schedule> parseSchedule(llvm::StringRef name);
/// Whether the key of `--set` says something beside these two, by their names
/// as `optimizer.type` and `scheduler.type`; those that are unknown read all.
bool isReadBy(llvm::StringRef key, llvm::StringRef optimizer,
              llvm::StringRef schedule);

/// Resolves `--optimizer` (in any letter case) and `--set`. Fails with one
/// sentence for each key that it does not know (naming the nearest legal one),
/// that is out of range, set twice, or not read by the optimizer; else for what
/// the schedule does not read.
llvm::Expected<UpdateRule>
parseUpdateRule(llvm::StringRef optimizer,
                llvm::ArrayRef<std::string> settings);

/// The rule of the parameters that are no matrices of hidden layers: another
/// for optimizers of matrices alone (Muon).
OptimizerRule getRuleOfOthers(const OptimizerRule &rule);
/// Fails on numbers that do not go together: Nesterov's momentum without
/// momentum, as PyTorch's SGD checks it.
llvm::Error checkNumbers(const OptimizerRule &rule);
/// How many numbers the optimizer keeps for each of a large matrix.
double countStates(const OptimizerRule &rule);
/// Whether it is a key `groups[PATTERN].KEY`, rightly or wrongly spelt.
bool isGroupKey(llvm::StringRef key);
/// The rule of a parameter for which these settings hold, of which the last
/// counts; they were checked by `parseUpdateRule`.
OptimizerRule applyGroups(const OptimizerRule &rule,
                          llvm::ArrayRef<const GroupSetting *> settings);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_UPDATERULE_H
