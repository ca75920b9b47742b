// Follows the operands of a concatenation back to what computes them, and what
// it says about their place along.

#include "JoinedConcat.h"
#include "dialects/NN/TensorTypes.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// Turns `view`, where the result of `op` lies, into where its operand does.
static LogicalResult undo(Operation *op, StridedView &view) {
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  if (std::optional<SmallVector<int64_t>> permutation = getPermutation(op)) {
    StridedView before = view;
    for (auto [dim, from] : llvm::enumerate(*permutation)) {
      before.shape[from] = view.shape[dim];
      before.strides[from] = view.strides[dim];
    }
    view = before;
    return success();
  }
  StridedView all = StridedView::contiguous(shape);
  if (failed(cast<KernelSourceOpInterface>(op).applyToView(all)) ||
      !all.isContiguous() || all.offset != 0 ||
      ShapedType::getNumElements(shape) !=
          ShapedType::getNumElements(shapeOf(op->getResult(0))))
    return failure(); // no reshape either
  return view.reshape(shape);
}

SmallVector<ConcatPiece> accel::plan::getConcatPieces(Operation *op) {
  auto concat = dyn_cast<nn::ConcatOp>(op);
  if (!concat)
    return {};
  StridedView whole = StridedView::contiguous(concat.getType().getShape());
  SmallVector<ConcatPiece> pieces;
  for (Value operand : concat->getOperands()) {
    StridedView view{whole.offset, SmallVector<int64_t>(shapeOf(operand)),
                     whole.strides};
    whole.offset +=
        shapeOf(operand)[concat.getDim()] * whole.strides[concat.getDim()];
    Value value = operand;
    while (value.hasOneUse() && value.getDefiningOp() &&
           isView(value.getDefiningOp())) {
      Operation *change = value.getDefiningOp();
      if (failed(undo(change, view)))
        return {};
      value = change->getOperand(0);
    }
    if (!value.hasOneUse() || !isRowMajorMatrix(view) ||
        !isa_and_nonnull<nn::AttentionOp, nn::AttentionGradOp>(
            value.getDefiningOp()))
      return {};
    pieces.push_back({value, view});
  }
  return pieces;
}

nn::ConcatOp accel::plan::findConcat(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto concat = dyn_cast<nn::ConcatOp>(user))
      return concat;
    if (!isView(user))
      break;
    value = user->getResult(0);
  }
  return {};
}
