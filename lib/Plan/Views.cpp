// What views are made of, asked through the KernelSource interface.

#include "Views.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

std::optional<PermutingReader> accel::plan::getPermutingReader(Value value) {
  if (!value.hasOneUse() || !value.getDefiningOp() ||
      isa<KernelSourceOpInterface>(value.getDefiningOp()))
    return std::nullopt;
  Operation *reader = *value.user_begin();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (!isView(reader) || shape.empty())
    return std::nullopt;
  // Read a view whose strides are the numbers of its dimensions.
  StridedView marked{0, SmallVector<int64_t>(shape),
                     llvm::to_vector(llvm::seq<int64_t>(0, shape.size()))};
  if (failed(cast<KernelSourceOpInterface>(reader).applyToView(marked)) ||
      marked.strides.size() != shape.size() || marked.offset != 0)
    return std::nullopt;
  llvm::SmallBitVector seen(shape.size());
  for (auto [size, from] : llvm::zip_equal(marked.shape, marked.strides)) {
    if (from < 0 || from >= static_cast<int64_t>(shape.size()) || seen[from] ||
        shape[from] != size)
      return std::nullopt;
    seen.set(from);
  }
  if (marked.strides.back() != static_cast<int64_t>(shape.size()) - 1 ||
      llvm::is_sorted(marked.strides))
    return std::nullopt;
  return PermutingReader{reader, marked.strides};
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
