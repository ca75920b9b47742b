// Evaluation of constants, op by op: what shape arithmetic needs to vanish as
// the import goes, and attention masks to be recognisable.

#include "accel/Transforms/FoldConstants.h"

#include "dialects/Interfaces/Evaluate.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace accel;
using namespace accel::transforms;

/// Results with more elements than this stay computed: the compiler's memory
/// and the file would hold them.
static constexpr int64_t kLargestConstant = int64_t(1) << 24;

DenseElementsAttr transforms::getConstantValue(Value value) {
  auto constant = value ? value.getDefiningOp<nn::ConstantOp>() : nullptr;
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

std::optional<double> transforms::getSplatValue(Value value) {
  DenseElementsAttr known = getConstantValue(value);
  if (!known || !known.isSplat())
    return std::nullopt;
  if (isa<FloatType>(known.getElementType()))
    return known.getSplatValue<FloatAttr>().getValueAsDouble();
  APInt number = known.getSplatValue<APInt>();
  return number.getBitWidth() == 1 || known.getElementType().isUnsignedInteger()
             ? static_cast<double>(number.getZExtValue())
             : static_cast<double>(number.getSExtValue());
}

/// The value of `op` if it only moves the elements of a splat (evaluation would
/// spell the elements out first).
static DenseElementsAttr foldSplatMove(Operation *op) {
  if (!isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp>(op))
    return nullptr;
  DenseElementsAttr value = getConstantValue(op->getOperand(0));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!value || !value.isSplat() || type.getNumElements() == 0)
    return nullptr;
  return value.resizeSplat(type);
}

/// The value of `op`, null if it is not known; fails where the op refuses the
/// values (an index out of range), after an error.
static FailureOr<DenseElementsAttr> foldByEvaluation(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!isa<EvaluateOpInterface>(op) ||
      type.getNumElements() > kLargestConstant ||
      !llvm::all_of(op->getOperands(), getConstantValue))
    return DenseElementsAttr();
  SmallVector<Tensor> operands, results;
  for (Value operand : op->getOperands()) {
    FailureOr<Tensor> tensor = Tensor::fromElements(getConstantValue(operand));
    if (failed(tensor))
      return DenseElementsAttr();
    operands.push_back(std::move(*tensor));
  }
  if (failed(evaluateOp(op, operands, EvaluationMode::OwnTypes, results)))
    return failure();
  return results[0].toElements(type);
}

/// Erases `op`; a pattern driver that `builder` belongs to must hear of it.
static void eraseOp(OpBuilder &builder, Operation *op) {
  if (auto *listener =
          dyn_cast_if_present<RewriterBase::Listener>(builder.getListener()))
    listener->notifyOperationErased(op);
  op->erase();
}

Value transforms::foldOrKeep(OpBuilder &builder, Operation *op) {
  Value result = op->getResult(0);
  SmallVector<OpFoldResult, 1> folded;
  DenseElementsAttr known;
  if (succeeded(op->fold(folded)) && folded.size() == 1) {
    if (auto value = dyn_cast<Value>(folded[0])) {
      if (value != result)
        eraseOp(builder, op);
      return value;
    }
    known = dyn_cast<DenseElementsAttr>(cast<Attribute>(folded[0]));
  }
  if (!known)
    known = foldSplatMove(op);
  if (!known) {
    FailureOr<DenseElementsAttr> evaluated = foldByEvaluation(op);
    if (failed(evaluated)) {
      eraseOp(builder, op);
      return nullptr;
    }
    known = *evaluated;
  }
  if (!known)
    return result;
  Value constant = nn::ConstantOp::create(builder, op->getLoc(), known);
  eraseOp(builder, op);
  return constant;
}
