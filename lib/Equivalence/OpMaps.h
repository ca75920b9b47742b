// What ops mean for pieces of tensors: which dimensions run along together.

#ifndef ACCEL_LIB_EQUIVALENCE_OPMAPS_H
#define ACCEL_LIB_EQUIVALENCE_OPMAPS_H

#include "dialects/Dist/Dist.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace accel::equivalence {

/// Of a value that is a tensor, as all are.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// The value without the ops that only say where it is placed, or where the
/// update begins.
mlir::Value skipPlacement(mlir::Value value);

inline bool hasElements(mlir::Value value) {
  return !llvm::is_contained(shapeOf(value), 0);
}

/// The one operand with elements of a concatenation, which the others add
/// nothing to; null if there are several, and for other ops.
mlir::Value getOnlyJoined(mlir::Operation *op);

/// What all elements of an op's result are, as it only moves equal elements, or
/// puts the same beside them; null if it is anything else.
mlir::Attribute
moveEqual(mlir::Operation *op,
          llvm::function_ref<mlir::Attribute(mlir::Value)> getElement);

/// Whether two ops of one name are the same function.
bool haveSameAttributes(mlir::Operation *lhs, mlir::Operation *rhs);

/// An op on whole tensors. Dimensions with the same index run along together: a
/// piece of one belongs to the same piece of the others.
struct OpMap {
  /// A dimension of which the op must see all.
  static constexpr int kWhole = -1;
  /// A dimension of a result along which all elements are equal.
  static constexpr int kFree = -2;

  std::vector<std::vector<int>> operands, results;
  int indices = 0;
  /// Indices that the op reduces over: of a result that has none of such an
  /// index ranks with pieces have terms.
  std::vector<int> reduced;
  dist::Reduction reduction = dist::Reduction::sum;
  /// (operand, dimension) that equal groups of its index's elements share: if
  /// one element is left of it, leading axes of the index alone may split it.
  std::vector<std::pair<unsigned, unsigned>> shared;
  /// Dimensions of results that are split as a shared one of an operand is:
  /// over the other axes they are terms. (result, dimension, operand)
  std::vector<std::tuple<unsigned, unsigned, unsigned>> sharedResults;
  /// Sets of operands in which the op is linear together.
  std::vector<std::vector<unsigned>> linear;

  int add() { return indices++; }
};

/// None for an op that nothing is known of, and for reshapes, whose dimensions
/// do not run along one by one. With `ownRows` a rank's indices into a table
/// are those into its own range of it: it picks and adds terms for these.
std::optional<OpMap> getOpMap(mlir::Operation *op, bool ownRows = false);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_OPMAPS_H
