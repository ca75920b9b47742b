// Scaling of the loss, so that gradients in f16 do not vanish: PyTorch's
// GradScaler, DeepSpeed's and Megatron-LM's dynamic scalers, and a constant.

#ifndef ACCEL_LIB_AUTODIFF_LOSSSCALER_H
#define ACCEL_LIB_AUTODIFF_LOSSSCALER_H

#include "NNBuilder.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::autodiff {

enum class ScalerKind { None, Torch, DeepSpeed, Megatron, Static };

/// `scaler.type` and its numbers; those that the kind does not read are left
/// alone. The defaults are those of the originals: torch.amp.GradScaler,
/// DeepSpeed's DynamicLossScaler, Megatron-LM's DynamicGradScaler.
struct ScalerRule {
  ScalerKind kind = ScalerKind::None;
  double initScale = 0, growthFactor = 2, backoffFactor = 0.5, minScale = 1;
  int64_t growthInterval = 0; ///< steps without overflow after which it grows
  int64_t hysteresis = 2;     ///< overflows that it shrinks after
  bool consecutiveHysteresis = false;
};

/// Resolves the settings `scaler.KEY=VALUE`. Fails with one sentence for a key
/// that it does not know, that is out of range, set twice, or not read by the
/// scaler of this type.
llvm::Expected<ScalerRule> parseScalerRule(
    llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> settings);

/// All keys without `scaler.`, for suggestions.
llvm::SmallVector<llvm::StringRef> scalerKeys();

/// Builds what a scaler does in a step. Its states are scalars, equal on all
/// ranks: the scale, an f32, first, and what it follows from.
class LossScaler {
public:
  explicit LossScaler(const ScalerRule &rule) : rule(rule) {}

  struct State {
    llvm::StringLiteral name;
    bool isScale; ///< an f32; the others are i64
    double first;
  };
  llvm::SmallVector<State> getStates() const;

  /// loss · scale, in the loss's type: what is differentiated.
  mlir::Value scaleLoss(const NNBuilder &build, mlir::Value loss,
                        mlir::Value scale) const;
  /// What gradients of the scaled loss are multiplied with: 1 / scale, rounded
  /// to f32 from f64 as GradScaler has it.
  mlir::Value getInverse(const NNBuilder &build, mlir::Value scale) const;

  struct Updated {
    llvm::SmallVector<mlir::Value> states; ///< as getStates
    /// Whether the scaler gives up, an i1: its scale cannot shrink any more.
    /// Null of those that never do.
    mlir::Value givesUp;
  };
  /// What becomes of the states, given whether a gradient of any parameter was
  /// infinite or NaN.
  Updated update(const NNBuilder &build, mlir::ValueRange states,
                 mlir::Value found) const;

private:
  Updated updateTorch(const NNBuilder &build, mlir::ValueRange states,
                      mlir::Value found) const;
  Updated updateDeepSpeed(const NNBuilder &build, mlir::ValueRange states,
                          mlir::Value found) const;
  Updated updateMegatron(const NNBuilder &build, mlir::ValueRange states,
                         mlir::Value found) const;
  mlir::Value grow(const NNBuilder &build, mlir::Value scale) const;

  ScalerRule rule;
};

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_LOSSSCALER_H
