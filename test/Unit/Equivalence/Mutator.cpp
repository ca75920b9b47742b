// The changes that make a right program a wrong one, or leave it right in other
// words: which it is, evaluation says.

#include "Mutator.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

Mutator::Mutator(ModuleOp module, unsigned seed)
    : module(module), random(seed) {}

std::string Mutator::changeLocal() {
  using Change = bool (Mutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"wrong axis or group", &Mutator::changeAxes},
      {"missing reduction", &Mutator::dropReduction},
      {"doubled reduction", &Mutator::doubleReduction},
      {"wrong reduction", &Mutator::changeReduction},
      {"merged gather", &Mutator::mergeGather},
      {"wrong dimension", &Mutator::changeDim},
      {"missing scale", &Mutator::dropScale},
      {"changed constant", &Mutator::changeConstant},
      {"shifted offset", &Mutator::shiftSlice},
      {"exchanged operand", &Mutator::exchangeOperand},
      {"exchanged results", &Mutator::exchangeResults},
      {"other permutation", &Mutator::changePermute},
      {"other exchange", &Mutator::changeAllToAll},
      {"other padding", &Mutator::changePadding},
      {"changed edge", &Mutator::changeEdge},
      {"other parts", &Mutator::changeParts},
      {"mb: sum begun anew", &Mutator::resetSum},
      {"mb: doubled term", &Mutator::doubleSum},
      {"mb: skipped term", &Mutator::skipSum},
      {"mb: not reset", &Mutator::keepSum},
      {"mb: changed runs", &Mutator::changeRuns}};
  auto [name, change] = kChanges[random() % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

Operation *Mutator::pickOp(function_ref<bool(Operation *)> isWanted) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isWanted(op))
      ops.push_back(op);
  });
  return ops.empty() ? nullptr : pick(ArrayRef(ops));
}

static bool isReduction(Operation *op) {
  return isa<dist::AllReduceOp, dist::ReduceScatterOp>(op);
}

dist::AxesAttr Mutator::getAxes(ArrayRef<StringRef> names) {
  return dist::AxesAttr::get(module.getContext(), names);
}

SmallVector<dist::AxesAttr> Mutator::getGroups() {
  SmallVector<StringRef> axes;
  dist::MeshOp mesh = *module.getOps<dist::MeshOp>().begin();
  for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
    axes.push_back(axis.getName());
  SmallVector<dist::AxesAttr> groups;
  for (unsigned bits = 1; bits < (1u << axes.size()); ++bits) {
    SmallVector<StringRef> names;
    for (size_t number = 0; number < axes.size(); ++number)
      if (bits >> number & 1)
        names.push_back(axes[number]);
    groups.push_back(getAxes(names));
  }
  return groups;
}

bool Mutator::changeAxes() {
  auto ops = all<dist::CollectiveOpInterface>();
  if (ops.empty())
    return false;
  dist::MeshOp mesh = *module.getOps<dist::MeshOp>().begin();
  dist::CollectiveOpInterface op = pick(ArrayRef(ops));
  dist::AxesAttr other = pick(ArrayRef(getGroups()));
  bool keepsType = isa<dist::AllReduceOp, dist::AxisIndexOp>(op) ||
                   mesh.getGroupSize(op.getAxes()) == mesh.getGroupSize(other);
  if (op.getAxes() == other || !keepsType)
    return false;
  op->setAttr("axes", other);
  return true;
}

bool Mutator::dropReduction() {
  Operation *op = pickOp(isReduction);
  if (!op)
    return false;
  Value instead = op->getOperand(0);
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op)) {
    OpBuilder builder(op);
    instead = dist::AllSliceOp::create(builder, op->getLoc(), scatter.getType(),
                                       scatter.getInput(), scatter.getMesh(),
                                       scatter.getAxes(), scatter.getDim());
  }
  op->getResult(0).replaceAllUsesWith(instead);
  op->erase();
  return true;
}

bool Mutator::doubleReduction() {
  Operation *op = pickOp(isReduction);
  if (!op)
    return false;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value value = op->getResult(0);
  auto again = dist::AllReduceOp::create(
      builder, op->getLoc(), value.getType(),
      dist::ReductionAttr::get(module.getContext(), dist::Reduction::sum),
      value, cast<dist::CollectiveOpInterface>(op).getMeshAttr(),
      pick(ArrayRef(getGroups())), TypeAttr());
  value.replaceAllUsesExcept(again, again);
  return true;
}

bool Mutator::changeReduction() {
  Operation *op = pickOp(isReduction);
  if (!op)
    return false;
  auto kind = op->getAttrOfType<dist::ReductionAttr>("kind");
  bool isMax = kind && kind.getValue() == dist::Reduction::max;
  op->setAttr("kind", dist::ReductionAttr::get(module.getContext(),
                                               isMax ? dist::Reduction::sum
                                                     : dist::Reduction::max));
  return true;
}

bool Mutator::mergeGather() {
  auto ops = all<dist::AllGatherOp>();
  if (ops.size() < 2)
    return false;
  dist::AllGatherOp op = pick(ArrayRef(ops)), other = pick(ArrayRef(ops));
  if (op == other || op->getBlock() != other->getBlock() ||
      op.getResult().getType() != other.getResult().getType() ||
      !other->isBeforeInBlock(op))
    return false;
  op.getResult().replaceAllUsesWith(other.getResult());
  return true;
}

bool Mutator::changeDim() {
  Operation *op = pickOp([](Operation *each) {
    return each->hasAttr("dim") || isa<nn::MatmulOp>(each);
  });
  if (!op)
    return false;
  if (isa<nn::MatmulOp>(op)) {
    StringRef name = random() % 2 ? "transpose_lhs" : "transpose_rhs";
    if (op->hasAttr(name))
      op->removeAttr(name);
    else
      op->setAttr(name, UnitAttr::get(op->getContext()));
    return true;
  }
  auto dim = op->getAttrOfType<IntegerAttr>("dim");
  op->setAttr("dim", IntegerAttr::get(dim.getType(), dim.getInt() ? 0 : 1));
  return true;
}

bool Mutator::dropScale() {
  Operation *op =
      pickOp([](Operation *each) { return isa<nn::MulOp, nn::DivOp>(each); });
  if (!op)
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

bool Mutator::changeConstant() {
  SmallVector<nn::ConstantOp> ops;
  for (auto op : all<nn::ConstantOp>())
    if (isa<SplatElementsAttr>(op.getValue()))
      ops.push_back(op);
  if (ops.empty())
    return false;
  nn::ConstantOp op = pick(ArrayRef(ops));
  auto splat = cast<SplatElementsAttr>(op.getValue());
  Type element = op.getType().getElementType();
  Attribute changed;
  if (isa<FloatType>(element))
    changed = FloatAttr::get(
        element, splat.getSplatValue<APFloat>().convertToDouble() * 2 + 0.5);
  else
    changed = IntegerAttr::get(element, splat.getSplatValue<APInt>() + 1);
  op.setValueAttr(DenseElementsAttr::get(splat.getType(), changed));
  return true;
}

bool Mutator::shiftSlice() {
  auto ops = all<nn::SliceOp>();
  if (ops.empty())
    return false;
  nn::SliceOp op = pick(ArrayRef(ops));
  SmallVector<int64_t> starts(op.getStarts());
  int64_t &start = starts[random() % starts.size()];
  start += start > 0 && random() % 2 ? -1 : 1;
  op->setAttr("starts", DenseI64ArrayAttr::get(op.getContext(), starts));
  return true;
}

bool Mutator::exchangeOperand() {
  Operation *op =
      pickOp([](Operation *each) { return each->getNumOperands() > 0; });
  unsigned number = random() % op->getNumOperands();
  Type type = op->getOperand(number).getType();
  SmallVector<Value> others;
  for (Value argument : op->getBlock()->getArguments())
    if (argument.getType() == type)
      others.push_back(argument);
  for (Operation &before : *op->getBlock()) {
    if (&before == op)
      break;
    for (Value result : before.getResults())
      if (result.getType() == type)
        others.push_back(result);
  }
  if (others.empty())
    return false;
  Value other = pick(ArrayRef(others));
  if (other == op->getOperand(number))
    return false;
  op->setOperand(number, other);
  return true;
}

bool Mutator::exchangeResults() {
  auto exits = all<func::ReturnOp>();
  func::ReturnOp exit = pick(ArrayRef(exits));
  if (exit.getNumOperands() < 2)
    return false;
  unsigned one = random() % exit.getNumOperands(),
           two = random() % exit.getNumOperands();
  Value first = exit.getOperand(one), second = exit.getOperand(two);
  if (first == second || first.getType() != second.getType())
    return false;
  exit.setOperand(one, second);
  exit.setOperand(two, first);
  return true;
}

bool Mutator::changeEdge() {
  auto edges = all<dist::EdgeOp>();
  if (edges.empty())
    return false;
  dist::EdgeOp edge = pick(ArrayRef(edges)), other = pick(ArrayRef(edges));
  auto typeOf = [&](dist::EdgeOp each) {
    auto task = module.lookupSymbol<func::FuncOp>(each.getSource());
    return task.getResultTypes()[each.getResult()];
  };
  bool same = edge.getSource() == other.getSource() &&
              edge.getResult() == other.getResult();
  if (same || typeOf(edge) != typeOf(other))
    return false;
  edge->setAttr("source", other->getAttr("source"));
  edge->setAttr("result", other->getAttr("result"));
  return true;
}

/// What a task returns for an accumulator: the sum, in the loop, or else 0.
OpOperand *Mutator::pickSum(bool inLoop) {
  SmallVector<OpOperand *> sums;
  for (auto exit : all<func::ReturnOp>()) {
    auto task = exit->getParentOfType<func::FuncOp>();
    for (OpOperand &operand : exit->getOpOperands()) {
      auto state = task.getResultAttrOfType<FlatSymbolRefAttr>(
          operand.getOperandNumber(), nn::kStateAttr);
      if (!state || !state.getValue().starts_with("accumulator/"))
        continue;
      bool isReset = operand.get().getDefiningOp<nn::ConstantOp>() != nullptr;
      if (isReset != inLoop)
        sums.push_back(&operand);
    }
  }
  return sums.empty() ? nullptr : pick(ArrayRef(sums));
}

/// The sum before, among the task's arguments.
Value Mutator::getOld(OpOperand *sum) {
  auto task = sum->getOwner()->getParentOfType<func::FuncOp>();
  Attribute state = task.getResultAttr(sum->getOperandNumber(), nn::kStateAttr);
  for (BlockArgument argument : task.getArguments())
    if (task.getArgAttr(argument.getArgNumber(), nn::kStateAttr) == state)
      return argument;
  return {};
}

bool Mutator::resetSum() {
  OpOperand *sum = pickSum(true);
  if (!sum)
    return false;
  Operation *add = sum->get().getDefiningOp();
  OpBuilder builder(add);
  auto type = cast<RankedTensorType>(sum->get().getType());
  Value zero = nn::ConstantOp::create(
      builder, add->getLoc(),
      DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType())));
  add->replaceUsesOfWith(getOld(sum), zero);
  return true;
}

bool Mutator::doubleSum() {
  OpOperand *sum = pickSum(true);
  if (!sum)
    return false;
  Operation *add = sum->get().getDefiningOp();
  OpBuilder builder(sum->getOwner());
  Operation *again = builder.clone(*add);
  again->replaceUsesOfWith(getOld(sum), sum->get());
  sum->set(again->getResult(0));
  return true;
}

bool Mutator::skipSum() {
  OpOperand *sum = pickSum(true);
  if (!sum)
    return false;
  sum->set(getOld(sum));
  return true;
}

bool Mutator::keepSum() {
  OpOperand *sum = pickSum(false);
  if (!sum || !getOld(sum))
    return false;
  sum->set(getOld(sum));
  return true;
}

/// Of a state or an output, wherever it is named: the order of files, other
/// parts, or other shares.
bool Mutator::changeParts() {
  auto getName = [](DictionaryAttr attributes) {
    for (StringRef kind : {nn::kStateAttr, nn::kOutputAttr, nn::kInputAttr})
      if (Attribute name = attributes.get(kind))
        return name;
    return Attribute();
  };
  auto getLayout = [](DictionaryAttr attributes) {
    return attributes ? attributes.getAs<dist::LayoutAttr>(dist::kLayoutAttr)
                      : dist::LayoutAttr();
  };
  llvm::SetVector<Attribute> names;
  auto forEach = [&](auto look) {
    for (func::FuncOp function : all<func::FuncOp>()) {
      for (unsigned number = 0; number < function.getNumArguments(); ++number)
        if (dist::LayoutAttr made = look(function.getArgAttrDict(number)))
          function.setArgAttr(number, dist::kLayoutAttr, made);
      for (unsigned number = 0; number < function.getNumResults(); ++number)
        if (dist::LayoutAttr made = look(function.getResultAttrDict(number)))
          function.setResultAttr(number, dist::kLayoutAttr, made);
    }
  };
  forEach([&](DictionaryAttr attributes) {
    dist::LayoutAttr layout = getLayout(attributes);
    if (layout && layout.getInterleaved())
      names.insert(getName(attributes));
    return dist::LayoutAttr();
  });
  if (names.empty())
    return false;
  Attribute name = pick(names.getArrayRef());
  unsigned way = random() % 3;
  forEach([&](DictionaryAttr attributes) {
    dist::LayoutAttr layout = getLayout(attributes);
    if (!layout || !layout.getInterleaved() || getName(attributes) != name)
      return dist::LayoutAttr();
    dist::InterleavedAttr order = layout.getInterleaved();
    SmallVector<int64_t> sizes(order.getSizes());
    if (way == 0)
      sizes = {order.getSize()};
    else if (way == 1)
      sizes = {sizes.front(), order.getSize() - sizes.front()};
    return dist::LayoutAttr::get(
        module.getContext(), layout.getMesh(), layout.getShape(),
        layout.getDims(), layout.getPartial(),
        dist::InterleavedAttr::get(module.getContext(), order.getDim(), sizes,
                                   way == 2 ? 1 : order.getBy(),
                                   way == 2 ? order.getTimes() : 1));
  });
  return true;
}

bool Mutator::changeRuns() {
  // As loops, or as what they mean.
  if (random() % 2)
    for (dist::LoopOp loop : all<dist::LoopOp>())
      unroll(loop);
  auto ops = all<dist::RunOp>();
  if (ops.size() < 3)
    return false;
  dist::RunOp op = pick(ArrayRef(ops));
  auto loop = dyn_cast<dist::LoopOp>(op->getParentOp());
  auto dropEmpty = [&] {
    if (loop && loop.getBody().front().empty())
      loop.erase();
  };
  switch (random() % 5) {
  case 0:
    op.erase();
    dropEmpty();
    return true;
  case 1:
    op.setOffset(op.getOffset() ? 0 : 1);
    return true;
  case 2:
    OpBuilder(op).clone(*op);
    return true;
  case 3: {
    dist::RunOp other = pick(ArrayRef(ops));
    op->moveBefore(other);
    op.setTurn(other.getTurn());
    dropEmpty();
    return true;
  }
  default:
    if (!loop || loop.getTrips() < 3)
      return false;
    loop.setTrips(loop.getTrips() - 1);
    if (random() % 2) // all but the first turn, not all but the last
      for (dist::RunOp each : loop.getOps<dist::RunOp>())
        each.setOffset(each.getOffset() + 1);
    return true;
  }
}

/// Writes a loop's turns one by one.
void Mutator::unroll(dist::LoopOp loop) {
  OpBuilder builder(loop);
  for (int64_t turn = 0, trips = loop.getTrips(); turn < trips; ++turn)
    for (dist::RunOp run : loop.getOps<dist::RunOp>()) {
      auto clone = cast<dist::RunOp>(builder.clone(*run));
      clone.setOffset(run.getOffset() + turn);
      clone.setTurn(false);
    }
  loop.erase();
}
