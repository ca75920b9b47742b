// What views are made of, asked through the KernelSource interface.

#include "Views.h"

#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

std::optional<SmallVector<int64_t>> accel::plan::getPermutation(Operation *op) {
  if (!isView(op))
    return std::nullopt;
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  // Read a view whose strides are the numbers of its dimensions.
  StridedView marked{0, SmallVector<int64_t>(shape),
                     llvm::to_vector(llvm::seq<int64_t>(0, shape.size()))};
  if (failed(cast<KernelSourceOpInterface>(op).applyToView(marked)) ||
      marked.strides.size() != shape.size() || marked.offset != 0)
    return std::nullopt;
  llvm::SmallBitVector seen(shape.size());
  for (auto [size, from] : llvm::zip_equal(marked.shape, marked.strides)) {
    if (from < 0 || from >= static_cast<int64_t>(shape.size()) || seen[from] ||
        shape[from] != size)
      return std::nullopt;
    seen.set(from);
  }
  return marked.strides;
}

std::optional<PermutingReader> accel::plan::getPermutingReader(Value value) {
  if (!value.getDefiningOp() ||
      isa<KernelSourceOpInterface>(value.getDefiningOp()))
    return std::nullopt;
  Operation *reader = nullptr;
  for (OpOperand &use : value.getUses()) {
    // What attention's gradient reads may lie in any order of rows.
    if (isa<func::ReturnOp, nn::AttentionGradOp>(use.getOwner()))
      continue;
    if (reader)
      return std::nullopt;
    reader = use.getOwner();
  }
  if (!reader || shapeOf(value).empty())
    return std::nullopt;
  std::optional<SmallVector<int64_t>> permutation = getPermutation(reader);
  if (!permutation || llvm::is_sorted(*permutation) ||
      (permutation->back() != static_cast<int64_t>(permutation->size()) - 1 &&
       !isa<nn::ConvOp, nn::ConvInputGradOp>(value.getDefiningOp())))
    return std::nullopt;
  return PermutingReader{reader, *permutation};
}

/// Whether rows of `columns` elements, `stride` apart, do not overlap.
static bool isRows(int64_t rows, int64_t columns, int64_t stride,
                   int64_t columnStride) {
  return (columns == 1 || columnStride == 1) &&
         (rows == 1 || stride >= columns);
}

bool accel::plan::isRowMajorMatrix(const StridedView &view) {
  size_t rank = view.shape.size();
  return rank >= 2 && isRows(view.shape[rank - 2], view.shape[rank - 1],
                             view.strides[rank - 2], view.strides[rank - 1]);
}

bool accel::plan::isMatrix(const StridedView &view) {
  size_t rank = view.shape.size();
  return isRowMajorMatrix(view) ||
         (rank >= 2 && isRows(view.shape[rank - 1], view.shape[rank - 2],
                              view.strides[rank - 1], view.strides[rank - 2]));
}
