// The analysis that spreads shardings from constraints over a function.

#ifndef ACCEL_LIB_PARALLEL_PROPAGATION_PROPAGATION_H
#define ACCEL_LIB_PARALLEL_PROPAGATION_PROPAGATION_H

#include "FactorAxes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

namespace accel::parallel {

/// A side table: the axes that split each dimension of each value of a
/// function, as far as constraints reach. Holds while the function is
/// unchanged.
class Propagation {
public:
  explicit Propagation(mlir::Operation *function);

  /// The axes of one dimension, and how they came.
  struct Dim {
    llvm::SmallVector<mlir::StringAttr, 2> axes;
    /// Per axis the op whose rule (or constraint) put it here.
    llvm::SmallVector<mlir::Operation *, 2> origins;
    bool closed = false; ///< a constraint says that nothing may be added
    size_t firm = 0;     ///< how many of the axes came of no wish
  };
  struct Entry {
    llvm::SmallVector<Dim, 4> dims;
    /// A constraint stands on the value that is no wish.
    bool fixed = false;
  };

  /// The entry of a ranked tensor; no axes where nothing reached it.
  const Entry &lookup(mlir::Value value) const;
  /// Those of a value's axes that came of wishes.
  AxisList getWishes(mlir::Value value) const;

  /// The mesh that constraints and types speak of; null if none does.
  dist::MeshOp getMesh() const { return mesh; }

private:
  void seed(mlir::FunctionOpInterface function, bool wishes);
  void settle(mlir::FunctionOpInterface function);
  void visit(mlir::Operation *op);
  void extend(mlir::Value value, size_t dim,
              llvm::ArrayRef<mlir::StringAttr> axes, mlir::Operation *origin);
  void push(mlir::Operation *op);

  dist::MeshOp mesh;
  bool ofWishes = false;    ///< whether what is added comes of wishes
  bool throughSums = false; ///< whether what an op adds up ties its operands
  llvm::DenseMap<mlir::Value, Entry> table;
  llvm::SmallVector<mlir::Operation *> worklist;
  llvm::SmallPtrSet<mlir::Operation *, 32> queued;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_PROPAGATION_PROPAGATION_H
