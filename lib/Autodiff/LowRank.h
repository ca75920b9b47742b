// A gradient as a product of two narrow matrices, as PowerSGD sends it (Vogels,
// Karimireddy and Jaggi, arXiv:1905.13727). Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_LOWRANK_H
#define ACCEL_LIB_AUTODIFF_LOWRANK_H

#include "NNBuilder.h"

namespace accel::autodiff {

/// What a gradient of `rows` x `columns` is approximated by: rows of `left`
/// [rank, rows], which are orthonormal, and of `right` [rank, columns].
struct LowRank {
  int64_t rows, columns, rank;
};

/// The factors of a tensor, whose first dimension is the rows, or none where
/// they are not smaller than it by more than `leastRate`.
std::optional<LowRank> chooseLowRank(llvm::ArrayRef<int64_t> shape,
                                     int64_t rank, double leastRate);

/// The rows of `matrix` made orthonormal, the first one first (Gram and
/// Schmidt's way); `epsilon` is added to their lengths.
mlir::Value buildOrthonormal(const NNBuilder &build, mlir::Value matrix,
                             double epsilon);

/// One turn of the power iteration.
struct Factored {
  mlir::Value product; ///< [rows, columns]
  mlir::Value right;   ///< what the next turn may begin with
  mlir::Value error;   ///< what the product leaves of `matrix`
};
/// The product is needed whole, and sums of its factors make it; the error has
/// a term of each term of `matrix`, and nobody adds them up.
Factored buildFactored(const NNBuilder &build, mlir::Value matrix,
                       mlir::Value right, double epsilon);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_LOWRANK_H
