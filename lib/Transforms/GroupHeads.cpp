// Grouped heads: attention reads each key head once, where exporters repeat it
// for every query head that shares it.

#include "FoldConstants.h"
#include "Passes.h"

#include <map>

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_GROUPHEADSPASS
#include "dialects/NN/TensorTypes.h"
#include "lib/Transforms/Passes.h.inc"

namespace {

RankedTensorType narrowed(Value value, size_t dim, int64_t times) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= times;
  return RankedTensorType::get(shape, type.getElementType());
}

/// Builds values without a repetition: of `value`, of which indices
/// i · times … i · times + times - 1 of `dim` hold the same, the value that
/// holds them once. Goes back through what treats all indices alike to where
/// the repetition is made; what is there stays for whoever else reads it.
class Unrepeater {
public:
  explicit Unrepeater(MLIRContext *context) : b(context) {}
  /// Takes out what was built in vain.
  ~Unrepeater() {
    for (Operation *op : llvm::reverse(built))
      op->erase();
  }
  void keep() { built.clear(); }

  /// Null where nothing says that the value repeats itself so.
  Value get(Value value, size_t dim, int64_t times) {
    if (times == 1)
      return value;
    Key key{value.getAsOpaquePointer(), dim, times};
    if (auto found = known.find(key); found != known.end())
      return found->second;
    return known[key] = find(value, dim, times);
  }

private:
  using Key = std::tuple<const void *, size_t, int64_t>;

  Value find(Value value, size_t dim, int64_t times) {
    Operation *op = value.getDefiningOp();
    if (!op || shapeOf(value)[dim] % times != 0 ||
        llvm::is_contained(shapeOf(value), 0))
      return nullptr;
    if (auto constant = dyn_cast<nn::ConstantOp>(op))
      return getConstant(constant, dim, times);
    if (auto broadcast = dyn_cast<nn::BroadcastOp>(op))
      return getBroadcast(broadcast, dim, times);
    if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
      return getReshape(reshape, dim, times);
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      return rebuild(op, dim, times, [&](Value) -> size_t {
        return transpose.getPermutation()[dim];
      });
    if (auto slice = dyn_cast<nn::SliceOp>(op))
      return getSlice(slice, dim, times);
    if (isa<nn::ConcatOp>(op) || op->hasTrait<nn::Elementwise>())
      return rebuild(op, dim, times, [&](Value) { return dim; });
    return nullptr;
  }

  Value getConstant(nn::ConstantOp op, size_t dim, int64_t times) {
    auto known = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!known || !known.isSplat())
      return nullptr;
    b.setInsertionPointAfter(op);
    return add(nn::ConstantOp::create(
        b, op.getLoc(),
        known.resizeSplat(narrowed(op.getResult(), dim, times))));
  }

  Value getBroadcast(nn::BroadcastOp op, size_t dim, int64_t times) {
    ArrayRef<int64_t> from = shapeOf(op.getInput());
    size_t added = op.getType().getRank() - from.size();
    Value input = op.getInput();
    // Repeated here, or before.
    if (dim >= added && from[dim - added] != 1)
      input = get(input, dim - added, times);
    RankedTensorType type = narrowed(op.getResult(), dim, times);
    if (!input || input.getType() == type)
      return input;
    b.setInsertionPointAfter(op);
    return add(nn::BroadcastOp::create(b, op.getLoc(), type, input));
  }

  /// The fastest indices of `dim` are those of source dimensions, as far as
  /// the two shapes split at the same places.
  Value getReshape(nn::ReshapeOp op, size_t dim, int64_t times) {
    ArrayRef<int64_t> from = shapeOf(op.getInput());
    int64_t faster = 1; // elements between two indices of `dim`
    for (int64_t size : shapeOf(op.getResult()).drop_front(dim + 1))
      faster *= size;
    int64_t left = times;
    Value input = op.getInput();
    for (size_t source = from.size(); source-- > 0 && left > 1;) {
      int64_t size = from[source];
      if (faster > 1) {
        if (faster % size != 0)
          return nullptr;
        faster /= size;
        continue;
      }
      int64_t share = left % size == 0 ? size : left;
      input = get(input, source, share);
      if (!input)
        return nullptr;
      left /= share;
    }
    assert(left == 1 && "expected as many elements before as after");
    RankedTensorType type = narrowed(op.getResult(), dim, times);
    if (input.getType() == type)
      return input;
    b.setInsertionPointAfter(op);
    return add(nn::ReshapeOp::create(b, op.getLoc(), type, input));
  }

  Value getSlice(nn::SliceOp op, size_t dim, int64_t times) {
    int64_t size = shapeOf(op.getInput())[dim];
    if (op.getStarts()[dim] != 0 || op.getSteps()[dim] != 1 ||
        op.getSizes()[dim] != size)
      return nullptr;
    Value input = get(op.getInput(), dim, times);
    if (!input)
      return nullptr;
    SmallVector<int64_t> sizes(op.getSizes());
    sizes[dim] = size / times;
    b.setInsertionPointAfter(op);
    return add(nn::SliceOp::create(b, op.getLoc(), input, op.getStarts(), sizes,
                                   op.getSteps()));
  }

  /// The same op on operands without the repetition.
  Value rebuild(Operation *op, size_t dim, int64_t times,
                llvm::function_ref<size_t(Value)> dimOf) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(get(operand, dimOf(operand), times));
      if (!operands.back())
        return nullptr;
    }
    b.setInsertionPointAfter(op);
    Operation *copy = b.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(narrowed(op->getResult(0), dim, times));
    built.push_back(copy);
    return copy->getResult(0);
  }

  Value add(Operation *op) {
    built.push_back(op);
    return op->getResult(0);
  }

  OpBuilder b;
  SmallVector<Operation *> built;
  std::map<Key, Value> known;
};

/// Gives `attention` as few key heads as its key and value have different ones.
void groupHeads(nn::AttentionOp attention) {
  int64_t heads = shapeOf(attention.getKey())[1];
  for (int64_t times = heads; times > 1; --times) {
    if (heads % times != 0)
      continue;
    Unrepeater once(attention.getContext());
    Value key = once.get(attention.getKey(), 1, times);
    Value value = key ? once.get(attention.getValue(), 1, times) : Value();
    if (!value)
      continue;
    once.keep();
    attention.getKeyMutable().assign(key);
    attention.getValueMutable().assign(value);
    return;
  }
}

struct GroupHeadsPass : impl::GroupHeadsPassBase<GroupHeadsPass> {
  using Base::Base;

  void runOnOperation() override { getOperation().walk(groupHeads); }
};

} // namespace
} // namespace accel::transforms
