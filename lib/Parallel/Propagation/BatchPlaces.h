// Where values have the batch, or another dimension that ranks share, and the
// views that move it.

#ifndef ACCEL_LIB_PARALLEL_PROPAGATION_BATCHPLACES_H
#define ACCEL_LIB_PARALLEL_PROPAGATION_BATCHPLACES_H

#include "dialects/NN/TensorTypes.h"
#include "mlir/IR/Builders.h"

namespace accel::parallel {

using Shape = llvm::SmallVector<int64_t>;

/// Where a value has the batch: dimension `dim` is (before, outer, batch,
/// inner), where `before` is what may stay in front of it.
struct Place {
  size_t dim = 0;
  int64_t outer = 1, batch = 1, inner = 1, before = 1;

  bool isLeading() const { return outer == 1; }
  /// Whether a leading batch is all of its dimension.
  bool isAlone() const { return inner == 1 && before == 1; }
  /// The dimension's sizes with the batch in front of `outer`; no 1 before and
  /// behind these two.
  Shape getSizes() const {
    Shape sizes;
    if (before != 1)
      sizes.push_back(before);
    sizes.append({batch, outer});
    if (inner != 1)
      sizes.push_back(inner);
    return sizes;
  }
  /// Which of these sizes is the batch.
  size_t getBatchAt() const { return before != 1; }
  bool isMixedLike(const Place &other) const {
    return outer == other.outer && batch == other.batch &&
           inner == other.inner && before == other.before;
  }
};

/// How many elements dimensions of these sizes have.
int64_t product(llvm::ArrayRef<int64_t> sizes);

/// A reshape; of a reshape one, and none to the same shape.
mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// A transpose; of a transpose one, and none if the two cancel.
mlir::Value transpose(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value value, llvm::ArrayRef<int64_t> permutation);

/// Moves a dimension, the others staying in order.
mlir::Value moveDim(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value value, size_t from, size_t to);

/// The sizes with those of dimension `dim` in its place.
Shape withDim(llvm::ArrayRef<int64_t> shape, size_t dim,
              llvm::ArrayRef<int64_t> sizes);

/// Whether all that a value has along a dimension is equal.
bool isEqualAlong(mlir::Value value, size_t dim);

/// Where a reshape leaves the batch: none if it takes it apart. Of a dimension
/// that is the first but for 1s, `leads` parts may stay in front.
std::optional<Place> findPlace(llvm::ArrayRef<int64_t> from, const Place &place,
                               llvm::ArrayRef<int64_t> to, int64_t leads);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_PROPAGATION_BATCHPLACES_H
