// A row that several reductions of one op read: where its elements are costly,
// the first of them keeps them in scratch for the others.

#ifndef ACCEL_LIB_TARGET_ELEMENT_MODELS_ROW_H
#define ACCEL_LIB_TARGET_ELEMENT_MODELS_ROW_H

#include "dialects/Interfaces/ElementBuilder.h"

namespace accel {

class Row {
public:
  using Values = ElementBuilder::Values;

  /// The elements of `tensor` at the indices that `getIndex` makes of the row's
  /// own (one per dimension of `shape`).
  Row(ElementBuilder &builder, mlir::Value tensor,
      llvm::ArrayRef<int64_t> shape,
      std::function<Values(llvm::ArrayRef<mlir::Value>)> getIndex);

  /// What `term` makes of the row's elements, combined. The first call fills
  /// the scratch row, if there is one.
  mlir::Value reduce(Combine kind,
                     llvm::function_ref<mlir::Value(mlir::Value element)> term);
  /// The same of terms that get the element's index as well.
  mlir::Value reduceAt(
      Combine kind,
      llvm::function_ref<mlir::Value(mlir::Value, llvm::ArrayRef<mlir::Value>)>
          term);

  /// What its elements are computed in.
  mlir::Type getType() const;
  int64_t size() const { return elements; }

private:
  mlir::Value read(llvm::ArrayRef<mlir::Value> index);

  ElementBuilder &e;
  mlir::Value tensor;
  llvm::SmallVector<int64_t> shape;
  std::function<Values(llvm::ArrayRef<mlir::Value>)> getIndex;
  int64_t elements;
  mlir::Value kept;
  bool filled = false;
};

} // namespace accel

#endif // ACCEL_LIB_TARGET_ELEMENT_MODELS_ROW_H
