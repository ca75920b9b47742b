// Views: ops that are only another way to read a tensor, and what commands ask
// of the tensors they read.

#ifndef ACCEL_LIB_PLAN_LOWER_VIEWS_H
#define ACCEL_LIB_PLAN_LOWER_VIEWS_H

#include "dialects/Interfaces/KernelSource.h"
#include <optional>

namespace accel::plan {

/// The permutation of dimensions that a view is, if it is one: result dimension
/// d is dimension permutation[d] of the operand.
std::optional<llvm::SmallVector<int64_t>> getPermutation(mlir::Operation *op);

/// The one reader of a command's result that only permutes its dimensions and
/// keeps the last one (of a convolution's, any), if there is such a one: the
/// command then writes the permuted tensor. Result dimension d is dimension
/// permutation[d] of `value`. Beside it the task may return the value, to a
/// task that reads it likewise, and attention's gradient may read it, which
/// asks for rows without gaps only.
struct PermutingReader {
  mlir::Operation *op;
  llvm::SmallVector<int64_t> permutation;
};
std::optional<PermutingReader> getPermutingReader(mlir::Value value);

/// Whether the last two dimensions are a matrix as gemm libraries read it: one
/// of them has stride 1, and rows (or columns) do not overlap.
bool isMatrix(const StridedView &view);

/// Whether they are one with rows next to each other, as such libraries write.
bool isRowMajorMatrix(const StridedView &view);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_VIEWS_H
