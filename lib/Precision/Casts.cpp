// Values in other element types: each is cast once, for all that read it.

#include "Casts.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::precision;

RankedTensorType precision::withElement(Value value, Type element) {
  return RankedTensorType::get(
      cast<RankedTensorType>(value.getType()).getShape(), element);
}

Value Casts::get(Value value, FloatType element, StringAttr reason,
                 Location loc) {
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  auto found = made.find({value, element});
  if (found != made.end())
    return found->second;
  Value result = make(value, element, reason, loc);
  made[{value, element}] = result;
  return result;
}

Value Casts::make(Value value, FloatType element, StringAttr reason,
                  Location loc) {
  OpBuilder builder(value.getContext());
  Operation *op = value.getDefiningOp();
  bool rounds =
      element.getWidth() < getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  SplatElementsAttr equal;
  if (rounds && matchPattern(value, m_Constant(&equal))) {
    // One number is rounded now, and stays known.
    auto number = equal.getSplatValue<APFloat>();
    bool losesInfo = false;
    number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    builder.setInsertionPointAfter(op);
    auto type = cast<ShapedType>(withElement(value, element));
    return nn::ConstantOp::create(builder, op->getLoc(),
                                  DenseElementsAttr::get(type, number));
  }
  if (rounds && op && isView(op)) {
    Value operand = get(op->getOperand(0), element, reason, loc);
    builder.setInsertionPointAfter(op);
    Operation *view = builder.clone(*op);
    view->setOperand(0, operand);
    view->getResult(0).setType(withElement(value, element));
    return view->getResult(0);
  }
  if (op)
    builder.setInsertionPointAfter(op);
  else
    builder.setInsertionPointToStart(value.getParentBlock());
  auto cast =
      nn::CastOp::create(builder, loc, withElement(value, element), value);
  cast->setAttr(nn::kReasonAttr, reason);
  return cast;
}
