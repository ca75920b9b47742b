// The KernelSource interface: how ops take part in generated kernels.

#ifndef ACCEL_DIALECTS_INTERFACES_KERNELSOURCE_H
#define ACCEL_DIALECTS_INTERFACES_KERNELSOURCE_H

#include "mlir/IR/OpDefinition.h"

namespace accel {

/// What kind of loop an op needs within a kernel.
enum class KernelRole {
  /// Result element i from the operands' elements i.
  Elementwise,
  /// Result elements are elements of operands, or follow from their place.
  Movement,
  /// Combines elements of a row: one or more loops over it.
  RowReduction
};

/// Element [i…] of a tensor lies at `offset` + Σ i · stride; in elements.
struct StridedView {
  int64_t offset = 0;
  llvm::SmallVector<int64_t> shape, strides;

  /// The row-major view without gaps.
  static StridedView contiguous(llvm::ArrayRef<int64_t> shape);

  /// Whether the elements follow each other in row-major order without gaps.
  bool isContiguous() const;

  /// Gives the same elements, in row-major order, another shape of as many
  /// elements. Fails, leaving the view alone, if no strides say that.
  llvm::LogicalResult reshape(llvm::ArrayRef<int64_t> newShape);
};

/// Whether the result of `op` can be a view of its only operand, if that has no
/// gaps.
bool isView(mlir::Operation *op);

} // namespace accel

#include "dialects/Interfaces/KernelSource.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_KERNELSOURCE_H
