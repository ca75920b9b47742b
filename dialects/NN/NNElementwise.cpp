// Type inference, verification and folding of the elementwise ops.

#include "dialects/NN/Casts.h"
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

LogicalResult accel::nn::inferSame(std::optional<Location> loc,
                                   ValueRange operands, unsigned from,
                                   SmallVectorImpl<Type> &types) {
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

LogicalResult accel::nn::inferBool(std::optional<Location> loc,
                                   ValueRange operands,
                                   SmallVectorImpl<Type> &types) {
  if (failed(inferSame(loc, operands, 0, types)))
    return failure();
  types[0] =
      plainType(operands[0], IntegerType::get(operands[0].getContext(), 1));
  return success();
}

LogicalResult accel::nn::inferCode(ValueRange operands,
                                   SmallVectorImpl<Type> &types) {
  types.push_back(
      plainType(operands[0], IntegerType::get(operands[0].getContext(), 8,
                                              IntegerType::Unsigned)));
  return success();
}

LogicalResult RandomUniformOp::inferReturnTypes(MLIRContext *context,
                                                std::optional<Location>,
                                                Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  types.push_back(plainType(adaptor.getCounter(), Float32Type::get(context)));
  return success();
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> loc,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  double ratio = adaptor.getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return emitOptionalError(loc, "expected 'ratio' in [0, 1), found ", ratio);
  return inferSame(loc, adaptor.getOperands(), 0, types);
}

LogicalResult CastOp::verify() {
  auto isFloat = [](Value value) {
    return isa<FloatType>(getElementTypeOrSelf(value.getType()));
  };
  if (getSaturate() && !(isFloat(getInput()) && isFloat(getResult())))
    return emitOpError() << "expected floats where it saturates, found "
                         << getInput().getType() << " and " << getType();
  return success();
}

LogicalResult BitcastOp::verify() {
  auto from = getInput().getType(), to = getType();
  auto hasBits = [](Type element) {
    return !element.isInteger(1) &&
           (!isa<FloatType>(element) || element.isF32() || element.isF64());
  };
  if (from.getShape() != to.getShape() ||
      from.getElementTypeBitWidth() != to.getElementTypeBitWidth() ||
      !hasBits(from.getElementType()) || !hasBits(to.getElementType()))
    return emitOpError() << "expected f64, f32 or integers of as many bits in "
                            "one shape, found "
                         << from << " and " << to;
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // To a type that holds all of this one's values and back.
  auto inner = getInput().getDefiningOp<CastOp>();
  if (!inner || inner.getInput().getType() != getType() || !isExact(inner))
    return {};
  return inner.getInput();
}
