// A row that several loops of one op read: where its elements are costly, the
// first loop keeps them in scratch for the others.

#ifndef ACCEL_LIB_TARGET_CPU_MODELS_ROW_H
#define ACCEL_LIB_TARGET_CPU_MODELS_ROW_H

#include "lib/Target/CPU/RowEmitter.h"

namespace accel {

class Row {
public:
  using Values = RowEmitter::Values;
  using Body =
      llvm::function_ref<Values(mlir::Value element, mlir::ValueRange carried)>;

  /// The elements of `tensor` at the indices that `getIndex` makes of the row's
  /// own (one per dimension of `shape`).
  Row(RowEmitter &emitter, mlir::Value tensor, llvm::ArrayRef<int64_t> shape,
      std::function<Values(llvm::ArrayRef<mlir::Value>)> getIndex);

  /// A loop over the row. The first call fills the scratch row, if there is
  /// one.
  Values loop(mlir::ValueRange initial, Body body);

  /// The element at an index of the row, within a loop over all of it.
  mlir::Value read(llvm::ArrayRef<mlir::Value> index);

  int64_t size() const { return elements; }

private:
  RowEmitter &e;
  mlir::Value tensor;
  llvm::SmallVector<int64_t> shape;
  std::function<Values(llvm::ArrayRef<mlir::Value>)> getIndex;
  int64_t elements;
  mlir::Value kept;
  bool filled = false;
};

} // namespace accel

#endif // ACCEL_LIB_TARGET_CPU_MODELS_ROW_H
