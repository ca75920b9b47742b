// What the user asks of training: the flags as they came, and the rule by which
// parameters are updated that they resolve to.

#ifndef ACCEL_LIB_AUTODIFF_TRAINOPTIONS_H
#define ACCEL_LIB_AUTODIFF_TRAINOPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::autodiff {

/// The training flags of one compilation, unresolved: passes carry them as
/// text, so that they print and parse.
struct TrainOptions {
  bool enabled = false;               ///< `--train`
  std::string loss;                   ///< `--loss`
  std::string optimizer;              ///< `--optimizer`; empty: adamw
  std::vector<std::string> settings;  ///< `--set`: "key=value"
  std::vector<std::string> trainable; ///< `--trainable`: glob patterns
  std::vector<std::string> frozen;    ///< `--frozen`: glob patterns
  /// `--allow-folded`: parameters that the exporter folded are held constant.
  bool allowFolded = false;
  bool emitGradients = false; ///< `--build-gradients`
  /// `--entries`: of step, which is always there, eval and forward. Empty: all.
  std::vector<std::string> entries;
  /// `--eval-outputs`: what the entry eval gives beside the loss.
  std::vector<std::string> evalOutputs;
  std::string mixedPrecision; ///< `--mixed-precision`: "" or "bf16"
  int64_t microBatches = 1;   ///< `--micro-batches`
};

enum class Optimizer { SGD, Adam, AdamW };
enum class Schedule { Constant, Linear };

/// How a step turns gradients into new parameters. Names and defaults are
/// PyTorch's (torch.optim.SGD, Adam, AdamW), those of schedules transformers'
/// (get_constant_schedule_with_warmup, get_linear_schedule_with_warmup).
struct UpdateRule {
  Optimizer optimizer = Optimizer::AdamW;
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weightDecay = 0; ///< 0.01 for AdamW
  double momentum = 0;
  std::optional<double> clipping; ///< largest norm of all gradients together
  Schedule schedule = Schedule::Constant;
  int64_t warmupSteps = 0;
  /// The rate rises by the logarithm of the step (DeepSpeed's WarmupLR), not
  /// linearly.
  bool logWarmup = false;
  std::optional<int64_t> totalSteps;
  int64_t seed = 0; ///< of everything random
};

/// Resolves `--optimizer` (in any letter case) and `--set`. Fails with one
/// sentence for each key that it does not know (naming the nearest legal one),
/// that is out of range, set twice, or not read by the optimizer; else for what
/// the schedule does not read.
llvm::Expected<UpdateRule>
parseUpdateRule(llvm::StringRef optimizer,
                llvm::ArrayRef<std::string> settings);

/// Checks the rest of the flags, and resolves the rule: everything that can be
/// refused without a model.
llvm::Error checkTrainOptions(const TrainOptions &options);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_TRAINOPTIONS_H
