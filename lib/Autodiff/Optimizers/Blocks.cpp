// Blocks are a reshape, but where the last one is filled up with zeros.

#include "lib/Autodiff/Optimizers/Blocks.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Blocks::Blocks(RankedTensorType type, bool isStack)
    : shape(type.getShape()), grid(type.getShape()) {
  unsigned rank = type.getRank(), first = isStack;
  kept = rank - 1;
  rest = shape.back();
  while (kept > first && rest % kSize != 0)
    rest *= shape[--kept];
  for (int64_t &size : MutableArrayRef<int64_t>(grid).drop_front(kept))
    size = 1;
  grid.back() = llvm::divideCeil(rest, kSize);
}

/// The dimensions that are kept, and one more.
SmallVector<int64_t> Blocks::withLast(int64_t size) const {
  SmallVector<int64_t> sizes(ArrayRef<int64_t>(shape).take_front(kept));
  sizes.push_back(size);
  return sizes;
}

Value Blocks::divide(const NNBuilder &build, Value value) const {
  if (int64_t missing = grid.back() * kSize - rest) {
    value = build.reshape(value, withLast(rest));
    Value zero =
        build.splat(build.scalarType(typeOf(value).getElementType()), 0);
    SmallVector<int64_t> low(kept + 1, 0), high(kept + 1, 0);
    high.back() = missing;
    value = build.make<nn::PadOp>(value, zero, low, high);
  }
  SmallVector<int64_t> whole(grid);
  whole.push_back(kSize);
  return build.reshape(value, whole);
}

Value Blocks::join(const NNBuilder &build, Value value) const {
  int64_t count = grid.back() * kSize;
  if (count != rest) {
    value = build.reshape(value, withLast(count));
    SmallVector<int64_t> starts(kept + 1, 0), steps(kept + 1, 1);
    value = build.make<nn::SliceOp>(value, starts, withLast(rest), steps);
  }
  return build.reshape(value, shape);
}

Value Blocks::spread(const NNBuilder &build, Value value) const {
  SmallVector<int64_t> sizes(grid);
  sizes.push_back(1);
  value = build.reshape(value, sizes);
  sizes.back() = kSize;
  return build.broadcast(value, sizes);
}
