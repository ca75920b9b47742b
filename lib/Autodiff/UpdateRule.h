// The rule by which parameters are updated: what `--optimizer` and `--set` come
// to.

#ifndef ACCEL_LIB_AUTODIFF_UPDATERULE_H
#define ACCEL_LIB_AUTODIFF_UPDATERULE_H

#include "lib/Autodiff/LossScaler.h"
#include "lib/Autodiff/Optimizers/OptimizerTable.h"
#include "lib/Autodiff/Schedules/ScheduleTable.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace accel::autodiff {

/// Of `optimizer.no_decay`: parameters of one dimension, and biases.
inline constexpr llvm::StringLiteral kVectors = "vectors";
/// Of `optimizer.decay`: norms of queries and keys.
inline constexpr llvm::StringLiteral kQkNorms = "qk_norms";

/// An optimizer and its numbers: of all parameters, or of a group.
struct OptimizerRule {
  const OptimizerKind *kind = findOptimizer("adamw");
  Hyperparameters values = kind->getDefaults();
  /// Of a group whose schedule falls to another rate than all others': the
  /// group's rate follows from this and `lr` alone.
  std::optional<double> leastLr = {};

  double lr() const { return values.get("lr"); }
  bool operator<(const OptimizerRule &other) const {
    return std::tie(kind, values, leastLr) <
           std::tie(other.kind, other.values, other.leastLr);
  }
};

/// What a group can say beside its optimizer's numbers: which optimizer, and
/// the least rate of the schedule (`scheduler.min_lr` of all others).
inline constexpr llvm::StringLiteral kGroupType = "type",
                                     kGroupLeast = "min_lr";

/// `groups[PATTERN].KEY=VALUE`: what is so for the parameters whose names the
/// glob pattern matches. Of several that match, the last says it.
struct GroupSetting {
  std::string pattern, key, value;
};

/// A weight decay that grows with the finished steps (Megatron-LM's
/// OptimizerParamScheduler): from `start` to `end`, where it stays, which
/// `optimizer.weight_decay` is as well; of a group it is in proportion to that.
struct WeightDecayCourse {
  double start, end;
  int64_t steps;
  bool isCosine = false; ///< half a wave, not a line
};

/// How a step turns gradients into new parameters.
struct UpdateRule {
  OptimizerRule optimizer;
  std::vector<GroupSetting> groups;
  /// Parameters that are not decayed, but for those of `decay`: glob patterns,
  /// and `kVectors` or `kQkNorms`.
  std::vector<std::string> noDecay, decay;
  std::optional<double> clipping; ///< largest norm of all gradients together
  ScheduleRule schedule;
  std::optional<WeightDecayCourse> decayCourse;
  /// An average of each trained parameter is kept (torch.optim.swa_utils'
  /// AveragedModel): of its old value this share, after the first step the
  /// parameter itself.
  std::optional<double> averageDecay;
  /// The entries eval and forward read the averages.
  bool evaluatesAverages = false;
  ScalerRule scaler;
  /// Moments of Adam and AdamW are codes of 8 and 16 bits (level O2 of MS-AMP).
  bool fp8Moments = false;
  int64_t seed = 0; ///< of everything random
};

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
/// Which hyperparameter of the optimizer the schedule drives beside the rate:
/// `momentum` or `beta1`; empty for none.
llvm::StringRef getDrivenMomentum(const ScheduleRule &schedule,
                                  const OptimizerKind &optimizer);
/// Sets what the schedule drives to a number that it has in some step, so that
/// the optimizer keeps what it needs for it.
void setDriven(const ScheduleRule &schedule, OptimizerRule &rule);
/// The same with moments that are codes; fails if it is no Adam.
llvm::Expected<OptimizerRule> withFp8Moments(const OptimizerRule &rule);
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
