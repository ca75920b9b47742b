// A parameter's elements in blocks of 256, in row-major order. Private to the
// folder.

#ifndef ACCEL_LIB_AUTODIFF_OPTIMIZERS_BLOCKS_H
#define ACCEL_LIB_AUTODIFF_OPTIMIZERS_BLOCKS_H

#include "lib/Autodiff/NNBuilder.h"

namespace accel::autodiff {

/// Which elements make a block follows from the whole parameter alone, so that
/// no layout changes a number. As many leading dimensions as can stay
/// dimensions of the grid of blocks do, so that what splits the parameter there
/// splits its blocks; the last block is filled up where elements do not
/// suffice.
class Blocks {
public:
  static constexpr int64_t kSize = 256;

  /// Of a stack each row's own. Requires dimensions beside a stack's first.
  Blocks(mlir::RankedTensorType type, bool isStack);

  /// The shape of what there is one of for each block: of as many dimensions as
  /// the parameter, the first ones its own, then 1s, and the blocks of the
  /// rest.
  llvm::ArrayRef<int64_t> getGrid() const { return grid; }

  /// A value of the parameter's shape as [grid..., 256].
  mlir::Value divide(const NNBuilder &build, mlir::Value value) const;
  /// And back.
  mlir::Value join(const NNBuilder &build, mlir::Value value) const;
  /// A value of the grid's shape, each element for all elements of its block.
  mlir::Value spread(const NNBuilder &build, mlir::Value value) const;

private:
  llvm::SmallVector<int64_t> withLast(int64_t size) const;

  llvm::SmallVector<int64_t> shape, grid;
  unsigned kept; ///< dimensions that the grid has of the parameter
  int64_t rest;  ///< elements of the others
};

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_OPTIMIZERS_BLOCKS_H
