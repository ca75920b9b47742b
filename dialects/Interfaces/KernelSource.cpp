// Strided views: which reshapes need no copy.

#include "dialects/Interfaces/KernelSource.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace accel;

#include "dialects/Interfaces/KernelSource.cpp.inc"

StridedView StridedView::contiguous(ArrayRef<int64_t> shape) {
  StridedView view;
  view.shape.assign(shape.begin(), shape.end());
  view.strides.resize(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    view.strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  return view;
}

bool StridedView::isContiguous() const {
  int64_t expected = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] != 1 && strides[dim] != expected)
      return false;
    expected *= shape[dim];
  }
  return true;
}

LogicalResult StridedView::reshape(ArrayRef<int64_t> newShape) {
  SmallVector<int64_t> newStrides(newShape.size(), 1);
  if (ShapedType::getNumElements(newShape) == 0) {
    *this = contiguous(newShape);
    return success();
  }
  // Dimensions of size 1 say nothing; neighbours whose strides agree are one
  // run of elements that may be cut anywhere.
  SmallVector<std::pair<int64_t, int64_t>> runs; // size, innermost stride
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    if (size == 1)
      continue;
    if (!runs.empty() && runs.back().second == size * stride)
      runs.back() = {runs.back().first * size, stride};
    else
      runs.push_back({size, stride});
  }
  size_t dim = newShape.size();
  while (!runs.empty()) {
    auto [left, stride] = runs.pop_back_val();
    while (left != 1) {
      if (dim == 0)
        return failure();
      --dim;
      if (left % newShape[dim] != 0)
        return failure();
      newStrides[dim] = stride;
      stride *= newShape[dim];
      left /= newShape[dim];
    }
  }
  // What is left has size 1: any stride will do, the row-major one reads best.
  for (size_t d = dim; d-- > 0;)
    newStrides[d] =
        d + 1 < newShape.size() ? newStrides[d + 1] * newShape[d + 1] : 1;
  shape.assign(newShape.begin(), newShape.end());
  strides = std::move(newStrides);
  return success();
}

bool accel::isView(Operation *op) {
  auto source = dyn_cast<KernelSourceOpInterface>(op);
  if (!source || op->getNumOperands() != 1 ||
      source.getKernelRole() != KernelRole::Movement)
    return false;
  auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
  StridedView view = StridedView::contiguous(operand.getShape());
  return succeeded(source.applyToView(view));
}
