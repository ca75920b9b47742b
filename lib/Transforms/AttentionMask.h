// What stands between scores and softmax, and what it comes to as the mask of
// one attention. Private to the library.
#ifndef ACCEL_LIB_TRANSFORMS_ATTENTIONMASK_H
#define ACCEL_LIB_TRANSFORMS_ATTENTIONMASK_H

#include "dialects/NN/NN.h"
#include "mlir/IR/PatternMatch.h"

namespace accel::transforms {

/// One op on the scores: `scores + addend`, or a choice between the scores and
/// the number `fill`.
struct MaskStep {
  mlir::Value scores;
  mlir::Value addend;
  mlir::Value condition;
  /// Whether the scores stand where the condition holds.
  bool keepsWhereTrue = true;
  double fill = 0;

  /// Reads `op` as a step, if it is one; `leadsToScores` tells the scores from
  /// the mask. Fails for a fill that adding a score to would change.
  static mlir::FailureOr<MaskStep>
  match(mlir::Operation *op,
        llvm::function_ref<bool(mlir::Value)> leadsToScores);
};

/// A mask as nn.attention takes it.
struct AttentionMask {
  mlir::Value mask;
  bool causal = false;
  int64_t rowOffset = 0; ///< if causal
  /// No row is masked altogether, whatever the inputs.
  bool rowsAreOpen = false;
};

/// A known mask in its simplest form: a triangle, a mask of i1, or (both null
/// and false) nothing masked. Some key is open in every row.
struct KnownMask {
  mlir::DenseElementsAttr mask;
  bool causal = false;
  int64_t rowOffset = 0; ///< if causal
};

/// The mask that the steps (the last one first) come to on scores of `shape`
/// [B, H, S, T] and type `element`; the description of
/// nn-recognize-attention says when it is which form.
AttentionMask buildMask(mlir::PatternRewriter &rewriter, mlir::Location loc,
                        llvm::ArrayRef<MaskStep> steps,
                        std::array<int64_t, 4> shape, mlir::Type element);

/// Reads a mask of rank 4 on scores of `shape`; fails if it does more than let
/// each score through as it is or not at all, or if it masks a whole row.
mlir::FailureOr<KnownMask> readKnownMask(mlir::DenseElementsAttr known,
                                         std::array<int64_t, 4> shape);

} // namespace accel::transforms

#endif // ACCEL_LIB_TRANSFORMS_ATTENTIONMASK_H
