// The changes of programs on whole tensors: where values are placed, and what
// placement writes for it.

#include "Mutator.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

std::string Mutator::changePlacement() {
  using Change = bool (Mutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"another split", &Mutator::moveSplit},
      {"partial or not", &Mutator::changePartial},
      {"missing reshard", &Mutator::dropReshard}};
  auto [name, change] = kChanges[random() % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

std::string Mutator::changeWritten() {
  using Change = bool (Mutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"other padding", &Mutator::changePadding},
      {"other cut", &Mutator::changeCut},
      {"other value", &Mutator::takeOther},
      {"rounded value", &Mutator::roundValue},
      {"value before it is placed", &Mutator::takeBeforeReshard},
      {"missing reshard", &Mutator::dropReshard},
      {"partial or not", &Mutator::changePartial},
      {"another split", &Mutator::moveSplit},
      {"missing term", &Mutator::dropTerm},
      {"doubled term", &Mutator::doubleTerm},
      {"wrong dimension", &Mutator::changeDim},
      {"changed constant", &Mutator::changeConstant},
      {"exchanged operand", &Mutator::exchangeOperand}};
  auto [name, change] = kChanges[random() % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

Value Mutator::pickPlaced() {
  SmallVector<Value> values;
  module.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (dist::ShardingAttr::of(result.getType()))
        values.push_back(result);
  });
  return pick(ArrayRef(values));
}

bool Mutator::place(Value value, ArrayRef<dist::AxesAttr> dims,
                    dist::AxesAttr partial) {
  auto type = cast<RankedTensorType>(value.getType());
  auto sharding = dist::ShardingAttr::of(type);
  // An axis named twice is no sharding.
  auto changed = dist::ShardingAttr::getChecked(
      [&] { return emitError(value.getLoc()); }, module.getContext(),
      sharding.getMesh(), dims, partial, dist::Reduction::sum);
  if (!changed || changed == sharding)
    return false;
  value.setType(
      RankedTensorType::get(type.getShape(), type.getElementType(), changed));
  return true;
}

bool Mutator::moveSplit() {
  Value value = pickPlaced();
  auto type = cast<RankedTensorType>(value.getType());
  auto sharding = dist::ShardingAttr::of(type);
  if (type.getRank() == 0)
    return false;
  dist::AxesAttr group = pick(ArrayRef(getGroups()));
  SmallVector<dist::AxesAttr> dims(sharding.getDims());
  size_t dim = random() % dims.size();
  bool wasSplit = !dims[dim].empty();
  for (dist::AxesAttr &axes : dims)
    axes = getAxes({});
  if (!wasSplit)
    dims[dim] = group;
  return place(value, dims, sharding.getPartial());
}

bool Mutator::changePartial() {
  Value value = pickPlaced();
  auto type = cast<RankedTensorType>(value.getType());
  auto sharding = dist::ShardingAttr::of(type);
  if (!sharding.isPartial() && value.getDefiningOp<dist::ReshardOp>())
    return false; // nothing reshards to terms
  dist::AxesAttr partial =
      sharding.isPartial() ? getAxes({}) : pick(ArrayRef(getGroups()));
  return place(value, sharding.getDims(), partial);
}

bool Mutator::dropReshard() {
  auto ops = all<dist::ReshardOp>();
  if (ops.empty())
    return false;
  dist::ReshardOp op = pick(ArrayRef(ops));
  op.getResult().replaceAllUsesWith(op.getInput());
  op.erase();
  return true;
}

bool Mutator::changePadding() {
  auto ops = all<nn::PadOp>();
  if (ops.empty())
    return false;
  nn::PadOp op = pick(ArrayRef(ops));
  if (random() % 2) {
    // In front, where it was behind.
    Attribute low = op->getAttr("low");
    op->setAttr("low", op->getAttr("high"));
    op->setAttr("high", low);
    return true;
  }
  auto zero = op.getValue().getDefiningOp<nn::ConstantOp>();
  if (!zero)
    return false;
  OpBuilder builder(op);
  auto one = cast<nn::ConstantOp>(builder.clone(*zero));
  auto type = cast<RankedTensorType>(zero.getType());
  one.setValueAttr(
      DenseElementsAttr::get(cast<ShapedType>(zero.getValue().getType()),
                             builder.getFloatAttr(type.getElementType(), 1.0)));
  op->setOperand(1, one);
  return true;
}

/// Slices that could begin elsewhere.
bool Mutator::changeCut() {
  SmallVector<nn::SliceOp> ops;
  for (auto op : all<nn::SliceOp>())
    if (op.getType().getShape() != op.getInput().getType().getShape())
      ops.push_back(op);
  if (ops.empty())
    return false;
  nn::SliceOp op = pick(ArrayRef(ops));
  SmallVector<int64_t> starts(op.getStarts());
  for (size_t dim = 0; dim < starts.size(); ++dim) {
    int64_t room =
        op.getInput().getType().getDimSize(dim) - op.getType().getDimSize(dim);
    if (room > 0)
      starts[dim] = starts[dim] == room ? 0 : starts[dim] + 1;
  }
  op->setAttr("starts", DenseI64ArrayAttr::get(op.getContext(), starts));
  return true;
}

/// What one op reads, another that is as large and placed alike: a gather for
/// another, a gradient, a row.
bool Mutator::takeOther() {
  auto ops = all<dist::ReshardOp>();
  if (ops.empty())
    return false;
  dist::ReshardOp op = pick(ArrayRef(ops));
  SmallVector<Value> others;
  for (Operation &each : *op->getBlock()) {
    if (&each == op)
      break;
    for (Value result : each.getResults())
      if (result.getType() == op.getType() && result != op.getInput())
        others.push_back(result);
  }
  if (others.empty())
    return false;
  op.getResult().replaceAllUsesWith(pick(ArrayRef(others)));
  op.erase();
  return true;
}

/// To a whole number: to bf16 and back, evaluation in double precision would
/// not see.
bool Mutator::roundValue() {
  Operation *op = pickOp([](Operation *each) {
    return each->getNumResults() == 1 && !isa<nn::ConstantOp>(each) &&
           isa<FloatType>(getElementTypeOrSelf(each->getResult(0).getType())) &&
           isa<func::FuncOp>(each->getParentOp());
  });
  if (!op)
    return false;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value value = op->getResult(0);
  auto type = cast<RankedTensorType>(value.getType());
  auto sharding = dist::ShardingAttr::of(type);
  auto whole = RankedTensorType::get(type.getShape(), builder.getI64Type(),
                                     type.getEncoding());
  if (sharding && sharding.isPartial())
    return false; // a sum of rounded terms is refused by type
  auto down = nn::CastOp::create(builder, op->getLoc(), whole, value);
  auto up = nn::CastOp::create(builder, op->getLoc(), type, down);
  value.replaceAllUsesExcept(up, down);
  return true;
}

/// What an op reads, as it was before it was placed for it.
bool Mutator::takeBeforeReshard() {
  SmallVector<OpOperand *> uses;
  for (auto op : all<dist::ReshardOp>())
    for (OpOperand &use : op.getResult().getUses())
      uses.push_back(&use);
  if (uses.empty())
    return false;
  OpOperand *use = pick(ArrayRef(uses));
  use->set(use->get().getDefiningOp()->getOperand(0));
  return true;
}

bool Mutator::dropTerm() {
  auto ops = all<nn::AddOp>();
  if (ops.empty())
    return false;
  nn::AddOp op = pick(ArrayRef(ops));
  Value instead = op->getOperand(random() % 2);
  if (instead.getType() != op.getType())
    return false;
  op.getResult().replaceAllUsesWith(instead);
  op.erase();
  return true;
}

bool Mutator::doubleTerm() {
  auto ops = all<nn::AddOp>();
  if (ops.empty())
    return false;
  nn::AddOp op = pick(ArrayRef(ops));
  unsigned number = random() % 2;
  if (op->getOperand(0).getType() != op->getOperand(1).getType())
    return false;
  op->setOperand(number, op->getOperand(1 - number));
  return true;
}

bool Mutator::changePermute() {
  auto ops = all<dist::PermuteOp>();
  if (ops.empty())
    return false;
  dist::PermuteOp op = pick(ArrayRef(ops));
  SmallVector<int64_t> sources(op.getSources());
  std::rotate(sources.begin(), sources.begin() + 1, sources.end());
  op->setAttr("sources", DenseI64ArrayAttr::get(op.getContext(), sources));
  return true;
}

bool Mutator::changeAllToAll() {
  auto ops = all<dist::AllToAllOp>();
  if (ops.empty())
    return false;
  dist::AllToAllOp op = pick(ArrayRef(ops));
  if (random() % 2) {
    Attribute split = op->getAttr("split_dim");
    op->setAttr("split_dim", op->getAttr("concat_dim"));
    op->setAttr("concat_dim", split);
    return true;
  }
  auto other = pick(ArrayRef(getGroups()));
  if (other == op.getAxes())
    return false;
  op->setAttr("axes", other);
  return true;
}
