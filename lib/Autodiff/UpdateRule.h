// The rule by which parameters are updated: what `--optimizer` and `--set` come
// to.

#ifndef ACCEL_LIB_AUTODIFF_UPDATERULE_H
#define ACCEL_LIB_AUTODIFF_UPDATERULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::autodiff {

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

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_UPDATERULE_H
