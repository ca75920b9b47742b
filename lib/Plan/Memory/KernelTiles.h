// One kernel in tiles: whether it computes the elements of a state one by one,
// and the kernels on some of its rows.

#ifndef ACCEL_LIB_PLAN_MEMORY_KERNELTILES_H
#define ACCEL_LIB_PLAN_MEMORY_KERNELTILES_H

#include "lib/Plan/BufferTable.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::plan {

/// A kernel's elements as rows, so many of them in all and in a tile.
struct Tiling {
  int64_t width, rows, rowsOfTile;
  bool operator==(const Tiling &other) const {
    return width == other.width && rows == other.rows &&
           rowsOfTile == other.rowsOfTile;
  }
};

/// A kernel that touches a state of `count` elements.
class KernelTiles {
public:
  KernelTiles(KernelOp kernel, mlir::func::FuncOp function, int64_t count)
      : kernel(kernel), function(function), count(count) {}

  KernelOp getKernel() const { return kernel; }
  mlir::func::FuncOp getFunction() const { return function; }

  /// Why it cannot be cut, in words of the user's; none if it can.
  std::optional<std::string> findObstacle(const BufferTable &buffers) const;
  /// Rows of tiles of at most `most` elements. What lies in a file is cut
  /// between sectors, where tiles of that size can be. None where all of it has
  /// no rows of one length that fit.
  std::optional<Tiling>
  choose(int64_t most, llvm::function_ref<bool(ViewAttr)> isStored) const;
  /// The function of a tile of so many rows, in no module.
  mlir::func::FuncOp makeFunction(const Tiling &tiling, int64_t rows) const;
  /// The kernel on the rows from `first` on, as many as its function has, in
  /// front of `before`.
  KernelOp create(mlir::Operation *before, const Tiling &tiling, int64_t first,
                  mlir::func::FuncOp ofTile, int64_t grid) const;

private:
  bool isAll(mlir::Type type) const;
  std::optional<std::string> findObstacle(mlir::Operation &op) const;
  ViewAttr cut(ViewAttr view, const Tiling &tiling, int64_t first,
               int64_t rows) const;

  // Handles of ops, whose accessors are not const.
  mutable KernelOp kernel;
  mutable mlir::func::FuncOp function;
  int64_t count;
};

/// Whether one of some kernels writes bytes that another one, or itself,
/// touches as anything but the same elements: then a tile would write what the
/// next one still reads.
bool writeElsewhere(llvm::ArrayRef<KernelOp> kernels,
                    const BufferTable &buffers);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_KERNELTILES_H
