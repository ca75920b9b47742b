// The changes that make a right plan a wrong one, or leave it right in other
// words: which it is, evaluation says.

#include "PlanMutator.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

PlanMutator::PlanMutator(ModuleOp module, unsigned seed)
    : module(module), seed(seed), random(seed) {}

std::string PlanMutator::change() {
  using Change = bool (PlanMutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"moved view", &PlanMutator::moveView},
      {"turned view", &PlanMutator::turnView},
      {"other rank's bytes", &PlanMutator::changeRankStride},
      {"exchanged view", &PlanMutator::exchangeView},
      {"swapped operands", &PlanMutator::swapOperands},
      {"merged buffers", &PlanMutator::mergeBuffers},
      {"moved buffer", &PlanMutator::moveBuffer},
      {"overlapped copy", &PlanMutator::overlapCopy},
      {"written in place", &PlanMutator::writeInPlace},
      {"reordered bucket", &PlanMutator::reorderBucket},
      {"wrong collective", &PlanMutator::changeCollective},
      {"dropped bias", &PlanMutator::dropBias},
      {"sum begun anew", &PlanMutator::changeSum},
      {"wrong product", &PlanMutator::changeProduct},
      {"dropped wait", &PlanMutator::dropSync},
      {"dropped command", &PlanMutator::dropCommand},
      {"repeated command", &PlanMutator::repeatCommand},
      {"moved command", &PlanMutator::moveCommand},
      {"swapped kernels", &PlanMutator::swapKernels},
      {"changed runs", &PlanMutator::changeRuns},
      {"shifted turn", &PlanMutator::shiftTurn},
      {"other copies", &PlanMutator::changeCopies},
      {"changed constant", &PlanMutator::changeConstant},
      {"changed attribute", &PlanMutator::changeAttribute},
      {"changed op", &PlanMutator::changeOp},
      {"added cast", &PlanMutator::addCast},
      {"wrong read", &PlanMutator::changeRead},
      {"wrong part", &PlanMutator::changePart},
      {"early release", &PlanMutator::releaseEarly},
      {"wrong message", &PlanMutator::changeMessage},
      {"wrong run of a message", &PlanMutator::changeMessageRun}};
  auto [name, change] = kChanges[seed % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

SmallVector<Operation *> PlanMutator::getCommands() {
  SmallVector<Operation *> commands;
  module.walk([&](plan::CommandOpInterface command) {
    if (!isa<plan::RecordOp, plan::WaitOp>(*command))
      commands.push_back(command);
  });
  return commands;
}

SmallVector<Operation *> PlanMutator::getKernelOps() {
  SmallVector<Operation *> ops;
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.front().without_terminator())
      ops.push_back(&op);
  return ops;
}

SmallVector<PlanMutator::Use> PlanMutator::getUses(Operation *op) {
  SmallVector<Use> uses;
  for (NamedAttribute named : op->getAttrs()) {
    if (auto view = dyn_cast<plan::ViewAttr>(named.getValue()))
      uses.push_back({op, named.getName(), -1, view});
    auto list = dyn_cast<ArrayAttr>(named.getValue());
    if (!list || named.getName() == plan::kReleasesAttr)
      continue;
    for (auto [index, each] : llvm::enumerate(list))
      if (auto view = dyn_cast<plan::ViewAttr>(each))
        uses.push_back({op, named.getName(), int(index), view});
  }
  return uses;
}

SmallVector<PlanMutator::Use> PlanMutator::getUses() {
  SmallVector<Use> uses;
  for (Operation *op : getCommands())
    llvm::append_range(uses, getUses(op));
  return uses;
}

bool PlanMutator::setView(const Use &use, plan::ViewAttr view) {
  if (!view)
    return false;
  if (use.index < 0) {
    use.op->setAttr(use.attribute, view);
    return true;
  }
  SmallVector<Attribute> list(
      use.op->getAttrOfType<ArrayAttr>(use.attribute).getValue());
  list[use.index] = view;
  use.op->setAttr(use.attribute, ArrayAttr::get(module.getContext(), list));
  return true;
}

SmallVector<StringAttr> PlanMutator::getAxes() {
  SmallVector<StringAttr> names;
  for (auto mesh : module.getOps<dist::MeshOp>())
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
      names.push_back(StringAttr::get(module.getContext(), axis.getName()));
  return names;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

bool PlanMutator::reorderBucket() {
  SmallVector<plan::CollectiveOp> buckets;
  for (plan::CollectiveOp op : all<plan::CollectiveOp>())
    if (op.getInputs().size() > 1)
      buckets.push_back(op);
  if (buckets.empty())
    return false;
  plan::CollectiveOp op = pick(ArrayRef(buckets));
  bool isInput = flip();
  SmallVector<Attribute> views(
      (isInput ? op.getInputs() : op.getOutputs()).getValue());
  size_t one = random() % views.size(), other = random() % views.size();
  if (one == other)
    return false;
  std::swap(views[one], views[other]);
  op->setAttr(isInput ? "inputs" : "outputs",
              ArrayAttr::get(op.getContext(), views));
  return true;
}

bool PlanMutator::changeCollective() {
  auto ops = all<plan::CollectiveOp>();
  if (ops.empty())
    return false;
  plan::CollectiveOp op = pick(ArrayRef(ops));
  Builder builder(module.getContext());
  switch (random() % 4) {
  case 0: {
    StringAttr axis = pick(ArrayRef(getAxes()));
    op.setAxesAttr(builder.getArrayAttr({axis}));
    return true;
  }
  case 1: {
    static constexpr plan::Collective kKinds[] = {
        plan::Collective::all_reduce, plan::Collective::broadcast,
        plan::Collective::all_gather, plan::Collective::reduce_scatter};
    op.setCollective(pick(ArrayRef(kKinds)));
    return true;
  }
  case 2:
    if (!op.getCombine())
      return false;
    op.setCombine(plan::Combine::max);
    return true;
  default:
    op.setDim(op.getDim() ? 0 : 1);
    return true;
  }
}

bool PlanMutator::dropBias() {
  SmallVector<plan::GemmOp> ops;
  for (plan::GemmOp op : all<plan::GemmOp>())
    if (op.getBias())
      ops.push_back(op);
  if (ops.empty())
    return false;
  pick(ArrayRef(ops)).removeBiasAttr();
  return true;
}

bool PlanMutator::changeSum() {
  auto ops = all<plan::GemmOp>();
  if (ops.empty())
    return false;
  plan::GemmOp op = pick(ArrayRef(ops));
  op.setAccumulate(!op.getAccumulate());
  return true;
}

bool PlanMutator::changeProduct() {
  auto ops = all<plan::GemmOp>();
  if (ops.empty())
    return false;
  plan::GemmOp op = pick(ArrayRef(ops));
  plan::ViewAttr a = op.getA(), b = op.getB();
  op.setAAttr(b);
  op.setBAttr(a);
  return true;
}

bool PlanMutator::dropSync() {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<plan::RecordOp, plan::WaitOp>(op))
      ops.push_back(op);
  });
  if (ops.empty())
    return false;
  pick(ArrayRef(ops))->erase();
  return true;
}

bool PlanMutator::dropCommand() {
  pick(ArrayRef(getCommands()))->erase();
  return true;
}

bool PlanMutator::repeatCommand() {
  Operation *op = pick(ArrayRef(getCommands()));
  OpBuilder(op).clone(*op);
  return true;
}

bool PlanMutator::moveCommand() {
  Operation *op = pick(ArrayRef(getCommands()));
  Operation *to = op;
  for (unsigned steps = 1 + random() % 3; steps-- && to->getPrevNode();)
    to = to->getPrevNode();
  if (to == op)
    return false;
  op->moveBefore(to);
  return true;
}

/// Two kernels of one type do each other's work.
bool PlanMutator::swapKernels() {
  auto ops = all<plan::KernelOp>();
  SmallVector<std::pair<plan::KernelOp, StringAttr>> found;
  for (plan::KernelOp op : ops) {
    auto function = module.lookupSymbol<func::FuncOp>(op.getFunction());
    for (auto other : module.getOps<func::FuncOp>())
      if (other != function &&
          other.getFunctionType() == function.getFunctionType() &&
          other->getAttr(plan::kRowsAttr) == function->getAttr(plan::kRowsAttr))
        found.push_back({op, other.getSymNameAttr()});
  }
  if (!found.empty()) {
    auto [op, name] = pick(ArrayRef(found));
    plan::KernelOp(op).setFunction(name.getValue());
    return true;
  }
  // None is of the same operands: then each runs in the other's place.
  Operation *first = pick(ArrayRef(ops)), *second = pick(ArrayRef(ops));
  if (first == second || first->getBlock() != second->getBlock())
    return false;
  if (second->isBeforeInBlock(first))
    std::swap(first, second);
  Operation *behind = second->getNextNode();
  second->moveBefore(first);
  if (behind)
    first->moveBefore(behind);
  else
    first->moveAfter(&first->getBlock()->back());
  return true;
}

bool PlanMutator::changeRead() {
  auto ops = all<plan::ReadOp>();
  plan::ReadOp op = pick(ArrayRef(ops)), other = pick(ArrayRef(ops));
  if (op.getSource() != other.getSource() || op.getName() == other.getName() ||
      op.getPart() != other.getPart() ||
      op.getTarget().getElement() != other.getTarget().getElement())
    return false;
  op.setName(other.getName());
  return true;
}

bool PlanMutator::changePart() {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<plan::ReadOp, plan::WriteOp>(op))
      ops.push_back(op);
  });
  Operation *op = pick(ArrayRef(ops));
  auto part = op->getAttrOfType<plan::PartAttr>("part");
  if (part.getShape().empty())
    return false;
  SmallVector<Attribute> dims(part.getAxes().getValue());
  Attribute &dim = dims[random() % dims.size()];
  SmallVector<Attribute> axes(cast<ArrayAttr>(dim).getValue());
  if (axes.size() > 1)
    std::swap(axes[0], axes[1]);
  else if (axes.size() == 1 && flip())
    axes.clear();
  else if (!getAxes().empty())
    axes = {pick(ArrayRef(getAxes()))};
  dim = ArrayAttr::get(module.getContext(), axes);
  auto changed = plan::PartAttr::get(module.getContext(), part.getShape(),
                                     ArrayAttr::get(module.getContext(), dims));
  op->setAttr("part", changed);
  return changed != part;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

bool PlanMutator::changeRuns() {
  plan::RunOp op = pick(ArrayRef(all<plan::RunOp>()));
  switch (random() % 3) {
  case 0:
    op.erase();
    return true;
  case 1:
    OpBuilder(op).clone(*op);
    return true;
  default: {
    Operation *segment = op->getParentOp(), *previous = segment->getPrevNode();
    if (op->getPrevNode())
      op->moveBefore(op->getPrevNode());
    else if (previous)
      op->moveBefore(&previous->getRegion(0).front(),
                     previous->getRegion(0).front().end());
    else
      return false;
    return true;
  }
  }
}

bool PlanMutator::shiftTurn() {
  auto loops = all<plan::LoopOp>();
  if (!loops.empty() && random() % 4 == 0) {
    plan::LoopOp loop = pick(ArrayRef(loops));
    loop.setTrips(loop.getTrips() + 1);
    return true;
  }
  plan::RunOp op = pick(ArrayRef(all<plan::RunOp>()));
  int64_t offset = op.getOffset(), least = op.getTurn() ? 0 : 1;
  if (op.getTurn() && random() % 3 == 0)
    op.setTurn(false);
  else if (offset > least && flip())
    op.setOffset(offset - 1 - random() % offset);
  else
    op.setOffset(offset + 1 + random() % 2);
  return true;
}

/// One more than micro-batches need, or one less.
bool PlanMutator::changeCopies() {
  SmallVector<plan::BufferOp> found;
  for (plan::BufferOp buffer : all<plan::BufferOp>())
    if (buffer.getSlots() > 1)
      found.push_back(buffer);
  if (found.empty())
    return false;
  plan::BufferOp buffer = pick(ArrayRef(found));
  if (random() % 3 == 0)
    buffer.setSlotStride(buffer.getSlotStride() + 64);
  else
    buffer.setSlots(buffer.getSlots() + (flip() ? 1 : -1));
  return true;
}

//===----------------------------------------------------------------------===//
// Kernels and constants
//===----------------------------------------------------------------------===//

/// Another number of the type; null if there is none to be had.
static TypedAttr makeOther(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return FloatAttr::get(number.getType(),
                          number.getValueAsDouble() * 0.5 + 1);
  if (auto number = dyn_cast<IntegerAttr>(value))
    return IntegerAttr::get(number.getType(), number.getValue() ^ 1);
  return {};
}

bool PlanMutator::changeConstant() {
  auto replace = [](ElementsAttr value) -> ElementsAttr {
    auto splat = dyn_cast<SplatElementsAttr>(value);
    TypedAttr other =
        splat ? makeOther(splat.getSplatValue<Attribute>()) : TypedAttr();
    return other ? SplatElementsAttr::get(value.getShapedType(), other)
                 : ElementsAttr();
  };
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    auto buffer = dyn_cast<plan::BufferOp>(op);
    if (isa<nn::ConstantOp, plan::FillOp>(op) || (buffer && buffer.getValue()))
      ops.push_back(op);
  });
  if (ops.empty())
    return false;
  Operation *op = pick(ArrayRef(ops));
  if (auto fill = dyn_cast<plan::FillOp>(op)) {
    fill.setValueAttr(makeOther(fill.getValue()));
    return true;
  }
  ElementsAttr other = replace(op->getAttrOfType<ElementsAttr>("value"));
  if (other)
    op->setAttr("value", other);
  return bool(other);
}

bool PlanMutator::changeAttribute() {
  SmallVector<std::pair<Operation *, StringAttr>> found;
  SmallVector<Operation *> ops = getKernelOps();
  for (Operation *op : getCommands())
    if (isa<plan::AttentionOp, plan::AttentionGradOp>(op))
      ops.push_back(op);
  for (Operation *op : ops)
    for (StringRef name : {"scale", "causal", "row_offset", "epsilon", "kind",
                           "predicate", "dim", "dims", "starts", "permutation"})
      if (op->hasAttr(name) || (isa<plan::AttentionOp>(op) && name == "causal"))
        found.push_back({op, StringAttr::get(op->getContext(), name)});
  if (found.empty())
    return false;
  auto [op, name] = pick(ArrayRef(found));
  Attribute value = op->getAttr(name);
  if (!value || isa<UnitAttr>(value)) {
    if (value)
      op->removeAttr(name);
    else
      op->setAttr(name, UnitAttr::get(op->getContext()));
    return true;
  }
  if (auto list = dyn_cast<DenseI64ArrayAttr>(value)) {
    SmallVector<int64_t> numbers(list.asArrayRef());
    if (numbers.empty())
      return false;
    if (name == "permutation" && numbers.size() > 1)
      std::swap(numbers[numbers.size() - 1], numbers[numbers.size() - 2]);
    else
      numbers[random() % numbers.size()] += name == "dims" && flip() ? -1 : 1;
    op->setAttr(name, DenseI64ArrayAttr::get(op->getContext(), numbers));
    return true;
  }
  if (isa<nn::ReductionKindAttr>(value)) {
    op->setAttr(name, nn::ReductionKindAttr::get(op->getContext(),
                                                 nn::ReductionKind::max));
    return true;
  }
  if (isa<nn::ComparePredicateAttr>(value)) {
    op->setAttr(name, nn::ComparePredicateAttr::get(op->getContext(),
                                                    nn::ComparePredicate::ge));
    return true;
  }
  TypedAttr other = makeOther(value);
  if (other)
    op->setAttr(name, other);
  return bool(other);
}

/// One op of a kernel is another one, or reads its operands the other way
/// round, or another value of the same type.
bool PlanMutator::changeOp() {
  SmallVector<Operation *> ops;
  for (Operation *op : getKernelOps())
    if (op->getNumOperands() > 0)
      ops.push_back(op);
  if (ops.empty())
    return false;
  Operation *op = pick(ArrayRef(ops));
  if (isa<nn::AddOp, nn::MulOp>(op) && flip()) {
    OpBuilder builder(op);
    Value instead =
        isa<nn::AddOp>(op)
            ? Value(nn::SubOp::create(builder, op->getLoc(), op->getOperand(0),
                                      op->getOperand(1)))
            : Value(nn::AddOp::create(builder, op->getLoc(), op->getOperand(0),
                                      op->getOperand(1)));
    op->replaceAllUsesWith(ValueRange(instead));
    op->erase();
    return true;
  }
  OpOperand &operand = op->getOpOperand(random() % op->getNumOperands());
  SmallVector<Value> others;
  auto offer = [&](Value value) {
    if (value.getType() == operand.get().getType() && value != operand.get())
      others.push_back(value);
  };
  llvm::for_each(op->getBlock()->getArguments(), offer);
  for (Operation &before : *op->getBlock()) {
    if (&before == op)
      break;
    llvm::for_each(before.getResults(), offer);
  }
  if (others.empty())
    return false;
  operand.set(pick(ArrayRef(others)));
  return true;
}

/// What a kernel reads is rounded first, or what bf16 held is not.
bool PlanMutator::addCast() {
  SmallVector<OpOperand *> operands;
  for (Operation *op : getKernelOps())
    for (OpOperand &operand : op->getOpOperands())
      if (cast<RankedTensorType>(operand.get().getType())
              .getElementType()
              .isF32())
        operands.push_back(&operand);
  if (operands.empty())
    return false;
  OpOperand *operand = pick(ArrayRef(operands));
  OpBuilder builder(operand->getOwner());
  Value value = operand->get();
  auto type = cast<RankedTensorType>(value.getType());
  Type narrow = RankedTensorType::get(type.getShape(), builder.getBF16Type());
  Value rounded = nn::CastOp::create(builder, value.getLoc(), narrow, value);
  operand->set(nn::CastOp::create(builder, value.getLoc(), type, rounded));
  return true;
}
