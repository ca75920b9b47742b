// Softmax and cross-entropy by their definitions, on rows whose classes ranks
// have parts of, or which are padded.

#ifndef ACCEL_LIB_PARALLEL_MODELS_CLASSROWS_H
#define ACCEL_LIB_PARALLEL_MODELS_CLASSROWS_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"

namespace accel::parallel {

/// `value` up to `size` of a dimension, and behind it the number that changes
/// nothing where `kind` combines it.
mlir::Value fillPadding(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value value, int64_t dim, int64_t size,
                        nn::ReductionKind kind);

/// Ops on rows whose classes stand in dimension `dim`.
struct ClassRows {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t dim;
  /// How many classes there are, on all ranks, and without padding.
  int64_t classes;
  /// The axes whose ranks have parts of them, if any.
  mlir::FlatSymbolRefAttr mesh;
  dist::AxesAttr axes;

  mlir::Value defineSoftmax(mlir::Value input, bool log) const;
  mlir::Value defineCrossEntropy(mlir::Value logits, mlir::Value labels,
                                 int64_t ignoreIndex) const;
  /// Each index is itself; one that points nowhere stops the run.
  mlir::Value check(mlir::Value indices, bool nonNegative) const;

private:
  template <typename Op, typename... Args>
  mlir::Value make(Args &&...args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...)->getResult(0);
  }
  mlir::Value splat(mlir::RankedTensorType type, int64_t value) const;
  mlir::Value reduce(nn::ReductionKind kind, mlir::Value value) const;
  mlir::Value expand(mlir::Value row, llvm::ArrayRef<int64_t> shape) const;
  mlir::Value shift(mlir::Value logits) const;
  mlir::Value number(llvm::ArrayRef<int64_t> shape) const;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_MODELS_CLASSROWS_H
