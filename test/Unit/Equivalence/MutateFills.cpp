// The changes of what padding of dimensions puts in: numbers behind the logical
// elements, where these end, and checks of indices.

#include "Mutator.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::test;

std::string Mutator::changeFills() {
  using Change = bool (Mutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"another number in padding", &Mutator::changeFill},
      {"padding not filled", &Mutator::dropFill},
      {"another end", &Mutator::moveEnd},
      {"another check of indices", &Mutator::changeCheck},
      {"wrong dimension", &Mutator::changeDim},
      {"missing scale", &Mutator::dropScale},
      {"changed constant", &Mutator::changeConstant},
      {"shifted offset", &Mutator::shiftSlice},
      {"exchanged operand", &Mutator::exchangeOperand}};
  auto [name, change] = kChanges[random() % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

static bool isFill(Operation *op) {
  auto select = dyn_cast<nn::SelectOp>(op);
  auto compare = select ? select.getCondition().getDefiningOp<nn::CompareOp>()
                        : nn::CompareOp();
  return compare && compare.getLhs().getDefiningOp<nn::IotaOp>() &&
         compare.getRhs().getDefiningOp<nn::ConstantOp>();
}

bool Mutator::changeFill() {
  auto select = dyn_cast_or_null<nn::SelectOp>(pickOp(isFill));
  if (!select)
    return false;
  OpBuilder builder(select);
  auto type = cast<RankedTensorType>(select.getType());
  double numbers[] = {0, 1, -1e30, INFINITY, -INFINITY};
  Value other = nn::ConstantOp::create(
      builder, select.getLoc(), type,
      DenseElementsAttr::get(
          type, builder.getFloatAttr(type.getElementType(),
                                     numbers[random() % std::size(numbers)])));
  select->setOperand(2, other);
  return true;
}

bool Mutator::dropFill() {
  Operation *op = pickOp(isFill);
  if (!op)
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(1));
  op->erase();
  return true;
}

bool Mutator::moveEnd() {
  auto select = dyn_cast_or_null<nn::SelectOp>(pickOp(isFill));
  if (!select)
    return false;
  auto compare = select.getCondition().getDefiningOp<nn::CompareOp>();
  if (random() % 3 == 0) {
    compare.setPredicate(random() % 2 ? nn::ComparePredicate::le
                                      : nn::ComparePredicate::gt);
    return true;
  }
  OpBuilder builder(compare);
  auto type = cast<RankedTensorType>(compare.getRhs().getType());
  int64_t end = cast<SplatElementsAttr>(
                    compare.getRhs().getDefiningOp<nn::ConstantOp>().getValue())
                    .getSplatValue<APInt>()
                    .getSExtValue();
  Value other = nn::ConstantOp::create(
      builder, compare.getLoc(), type,
      DenseElementsAttr::get(
          type, builder.getI64IntegerAttr(end + (random() % 2 ? 1 : -1))));
  compare->setOperand(1, other);
  return true;
}

/// Fewer or more indices are let through, or all are.
bool Mutator::changeCheck() {
  auto gather = dyn_cast_or_null<nn::GatherOp>(pickOp([](Operation *op) {
    auto each = dyn_cast<nn::GatherOp>(op);
    return each && each.getTable().getDefiningOp<nn::IotaOp>();
  }));
  if (!gather)
    return false;
  if (random() % 2) {
    gather.getResult().replaceAllUsesWith(gather.getIndices());
    gather.erase();
    return true;
  }
  OpBuilder builder(gather);
  Operation *count = builder.clone(*gather.getTable().getDefiningOp());
  auto type = cast<RankedTensorType>(count->getResult(0).getType());
  count->getResult(0).setType(RankedTensorType::get(
      {type.getDimSize(0) + (random() % 2 ? 1 : -1)}, type.getElementType()));
  gather->setOperand(0, count->getResult(0));
  return true;
}
