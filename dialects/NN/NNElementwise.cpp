// Type inference, verification and folding of the elementwise ops.

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel::nn;

LogicalResult accel::nn::verifyElementwise(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  for (auto [index, operand] : llvm::enumerate(op->getOperandTypes())) {
    auto type = dyn_cast<RankedTensorType>(operand);
    if (!type || type.getShape() != result.getShape())
      return op->emitOpError()
             << "expected operand #" << index << " to have the result's shape ["
             << result.getShape() << "], found " << operand;
  }
  return success();
}

/// The type of `value` without its encoding, with another element type if
/// given.
static RankedTensorType plainType(Value value, Type element = nullptr) {
  auto type = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(type.getShape(),
                               element ? element : type.getElementType());
}

/// Infers the type of operand `from`, after checking that the operands from
/// there on have one element type.
static LogicalResult inferSame(std::optional<Location> loc, ValueRange operands,
                               unsigned from, SmallVectorImpl<Type> &types) {
  if (operands.size() <= from)
    return emitOptionalError(loc, "expected at least ", from + 1,
                             " operands, found ", operands.size());
  Type element = getElementTypeOrSelf(operands[from].getType());
  for (Value operand : operands.drop_front(from))
    if (getElementTypeOrSelf(operand.getType()) != element)
      return emitOptionalError(loc, "expected one element type, found ",
                               element, " and ",
                               getElementTypeOrSelf(operand.getType()));
  types.push_back(plainType(operands[from]));
  return success();
}

#define INFER(OP, ...)                                                         \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,      \
      SmallVectorImpl<Type> &types) {                                          \
    ValueRange operands = adaptor.getOperands();                               \
    __VA_ARGS__                                                                \
  }
#define INFER_SAME(OP) INFER(OP, return inferSame(loc, operands, 0, types);)
#define INFER_BOOL(OP)                                                         \
  INFER(OP, if (failed(inferSame(loc, operands, 0, types))) return failure();  \
        types[0] = plainType(operands[0], IntegerType::get(context, 1));       \
        return success();)

INFER(RandomUniformOp,
      types.push_back(plainType(operands[0], Float32Type::get(context)));
      return success();)
INFER(DropoutOp, double ratio = adaptor.getRatio().convertToDouble();
      if (!(ratio >= 0 && ratio < 1)) return emitOptionalError(
          loc, "expected 'ratio' in [0, 1), found ", ratio);
      return inferSame(loc, operands, 0, types);)
INFER_SAME(StopGradientOp)
INFER_SAME(NegOp)
INFER_SAME(AbsOp)
INFER_SAME(ExpOp)
INFER_SAME(LogOp)
INFER_SAME(Log1pOp)
INFER_SAME(SqrtOp)
INFER_SAME(RsqrtOp)
INFER_SAME(ReciprocalOp)
INFER_SAME(TanhOp)
INFER_SAME(ErfOp)
INFER_SAME(SigmoidOp)
INFER_SAME(ReluOp)
INFER_SAME(SinOp)
INFER_SAME(CosOp)
INFER_SAME(FloorOp)
INFER_SAME(NotOp)
INFER_SAME(GeluOp)
INFER_SAME(AddOp)
INFER_SAME(SubOp)
INFER_SAME(MulOp)
INFER_SAME(DivOp)
INFER_SAME(ModOp)
INFER_SAME(PowOp)
INFER_SAME(MinOp)
INFER_SAME(MaxOp)
INFER_SAME(AndOp)
INFER_SAME(OrOp)
INFER_BOOL(IsNanOp)
INFER_BOOL(CompareOp)
INFER(SelectOp, return inferSame(loc, operands, 1, types);)

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // To a type that holds all of this one's values and back.
  auto inner = getInput().getDefiningOp<CastOp>();
  if (!inner || inner.getInput().getType() != getType())
    return {};
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(getType()));
  auto between = dyn_cast<FloatType>(getElementTypeOrSelf(inner.getType()));
  if (!type || !between ||
      !APFloat::isRepresentableBy(type.getFloatSemantics(),
                                  between.getFloatSemantics()))
    return {};
  return inner.getInput();
}
