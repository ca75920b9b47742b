// The changes of what sequence, tensor and context parallelism put in: rows of
// attention, windows of tables, parts of positions, sums over ranks.

#include "Mutator.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

std::string Mutator::changeSplits() {
  using Change = bool (Mutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"other rows of attention", &Mutator::changeRows},
      {"other axes in a row", &Mutator::reorderAxes},
      {"wrong axis or group", &Mutator::changeAxes},
      {"other exchange", &Mutator::changeAllToAll},
      {"wrong dimension", &Mutator::changeDim},
      {"missing reduction", &Mutator::dropReduction},
      {"doubled reduction", &Mutator::doubleReduction},
      {"wrong reduction", &Mutator::changeReduction},
      {"scaled term", &Mutator::scaleTerm},
      {"term added before the sum", &Mutator::addBeforeSum},
      {"shifted window", &Mutator::changeRankNumber},
      {"missing mask", &Mutator::dropMask},
      {"the first part on each rank", &Mutator::cutFirst}};
  auto [name, change] = kChanges[random() % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

/// The rows of a causal attention, or its keys, begin elsewhere or are apart.
bool Mutator::changeRows() {
  Operation *op = pickOp([](Operation *each) {
    return isa<nn::AttentionOp, nn::AttentionGradOp>(each) &&
           each->hasAttr("causal");
  });
  if (!op)
    return false;
  Builder builder(op->getContext());
  auto stride = op->getAttrOfType<IntegerAttr>("stride");
  if (stride && stride.getInt() != 1 && random() % 3 == 0) {
    op->setAttr("stride", builder.getI64IntegerAttr(
                              random() % 2 ? 1 : stride.getInt() + 1));
    return true;
  }
  StringRef name = op->hasAttr("column_steps") && random() % 2 ? "column_steps"
                                                               : "row_steps";
  auto steps = op->getAttrOfType<DictionaryAttr>(name);
  if (!steps || random() % 4 == 0) {
    auto offset = op->getAttrOfType<IntegerAttr>("row_offset");
    op->setAttr("row_offset",
                builder.getI64IntegerAttr((offset ? offset.getInt() : 0) + 1));
    return true;
  }
  SmallVector<NamedAttribute> changed(steps.getValue());
  NamedAttribute &one = changed[random() % changed.size()];
  switch (random() % 3) {
  case 0:
    if (changed.size() == 1)
      op->removeAttr(name);
    else
      op->setAttr(name,
                  builder.getDictionaryAttr(ArrayRef(changed).drop_back()));
    return true;
  case 1:
    one = {one.getName(), builder.getI64IntegerAttr(
                              cast<IntegerAttr>(one.getValue()).getInt() + 1)};
    break;
  default: {
    SmallVector<StringRef> axes;
    for (dist::AxesAttr group : getGroups())
      if (group.getNames().size() == 1 &&
          !steps.contains(group.getNames().front()))
        axes.push_back(group.getNames().front().getValue());
    if (axes.empty())
      return false;
    one = {builder.getStringAttr(pick(ArrayRef(axes))), one.getValue()};
  }
  }
  op->setAttr(name, builder.getDictionaryAttr(changed));
  return true;
}

/// The major axis becomes the minor one.
bool Mutator::reorderAxes() {
  SmallVector<dist::CollectiveOpInterface> ops;
  for (auto op : all<dist::CollectiveOpInterface>())
    if (op.getAxes().getNames().size() > 1)
      ops.push_back(op);
  if (ops.empty())
    return false;
  dist::CollectiveOpInterface op = pick(ArrayRef(ops));
  SmallVector<StringRef> names;
  for (StringAttr axis : op.getAxes().getNames())
    names.push_back(axis.getValue());
  std::reverse(names.begin(), names.end());
  op->setAttr("axes", getAxes(names));
  return true;
}

/// What a sum reads, twice or halved.
bool Mutator::scaleTerm() {
  Operation *op = pickOp([](Operation *each) {
    return isa<dist::AllReduceOp, dist::ReduceScatterOp>(each) &&
           isa<FloatType>(getElementTypeOrSelf(each->getOperand(0)));
  });
  if (!op)
    return false;
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  Value factor = nn::ConstantOp::create(
      builder, op->getLoc(),
      DenseElementsAttr::get(type,
                             builder.getFloatAttr(type.getElementType(),
                                                  random() % 2 ? 2.0 : 0.5)));
  op->setOperand(
      0, nn::MulOp::create(builder, op->getLoc(), op->getOperand(0), factor));
  return true;
}

/// sum(x) + y becomes sum(x + y).
bool Mutator::addBeforeSum() {
  Operation *op = pickOp([](Operation *each) {
    return isa<nn::AddOp>(each) &&
           llvm::any_of(each->getOperands(), [](Value operand) {
             return operand.getDefiningOp<dist::AllReduceOp>();
           });
  });
  if (!op)
    return false;
  bool isFirst =
      op->getOperand(0).getDefiningOp<dist::AllReduceOp>() != nullptr;
  auto sum = op->getOperand(!isFirst).getDefiningOp<dist::AllReduceOp>();
  OpBuilder builder(op);
  Value terms = nn::AddOp::create(builder, op->getLoc(), sum->getOperand(0),
                                  op->getOperand(isFirst));
  Operation *again = builder.clone(*sum);
  again->setOperand(0, terms);
  op->getResult(0).replaceAllUsesWith(again->getResult(0));
  op->erase();
  return true;
}

/// A rank takes another's number, or all the first one's.
bool Mutator::changeRankNumber() {
  auto ops = all<dist::AxisIndexOp>();
  if (ops.empty())
    return false;
  dist::AxisIndexOp op = pick(ArrayRef(ops));
  OpBuilder builder(op.getContext());
  builder.setInsertionPointAfter(op);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto splat = [&](int64_t number) -> Value {
    return nn::ConstantOp::create(
        builder, op.getLoc(),
        DenseElementsAttr::get(
            type, builder.getIntegerAttr(type.getElementType(), number)));
  };
  Value one = splat(random() % 2);
  Value other =
      random() % 2
          ? one
          : Value(nn::SubOp::create(builder, op.getLoc(), one, op.getResult()));
  op.getResult().replaceAllUsesExcept(other, other.getDefiningOp());
  return true;
}

/// What is chosen from two is the first everywhere, or the second.
bool Mutator::dropMask() {
  auto ops = all<nn::SelectOp>();
  if (ops.empty())
    return false;
  nn::SelectOp op = pick(ArrayRef(ops));
  op.getResult().replaceAllUsesWith(random() % 4 ? op.getOnTrue()
                                                 : op.getOnFalse());
  op.erase();
  return true;
}

/// A rank's own part is the first one, on each rank.
bool Mutator::cutFirst() {
  auto ops = all<dist::AllSliceOp>();
  if (ops.empty())
    return false;
  dist::AllSliceOp op = pick(ArrayRef(ops));
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
  Value first = nn::SliceOp::create(builder, op.getLoc(), type, op.getInput(),
                                    starts, type.getShape(), steps);
  op.getResult().replaceAllUsesWith(first);
  op.erase();
  return true;
}
