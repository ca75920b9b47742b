// Gathers sharded weights where they are used, a unit at a time, and again in
// the backward.

#include "GatherUnits.h"
#include "GradientOps.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/FactorAxes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PLACEGATHERSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// A weight as forward and backward read it: whole, or rounded, or both.
struct Weight {
  SmallVector<Operation *, 2> made; ///< how: each from the one before
  StringRef name;
};

/// A use of a gathered weight.
struct Use {
  OpOperand *operand;
  unsigned weight;
  unsigned unit = 0;
};

/// One step.
class GatherPlacer {
public:
  explicit GatherPlacer(func::FuncOp step) : step(step), ops(step) {}

  void run(bool once) {
    findWeights();
    if (weights.empty() || once)
      return;
    collectUses();
    findUnits();
    place(forward, /*isBackward=*/false);
    place(backward, /*isBackward=*/true);
    for (Weight &weight : weights)
      for (Operation *op : llvm::reverse(weight.made))
        op->erase();
  }

private:
  void findWeights();
  void addWeight(ArrayRef<Operation *> made, StringRef name);
  void castBeforeGather(dist::ReshardOp gather, StringRef name);
  void cloneViews(Value weight);
  void collectUses();
  void findUnits();
  void place(ArrayRef<Use> uses, bool isBackward);

  func::FuncOp step;
  GradientOps ops;
  SmallVector<Weight> weights;
  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<Use> forward, backward;
  std::optional<GatherUnits> units;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Value> gathered;
  int64_t instances = 0;
};
} // namespace

void GatherPlacer::addWeight(ArrayRef<Operation *> made, StringRef name) {
  numbers[made.back()->getResult(0)] = weights.size();
  weights.push_back({llvm::to_vector<2>(made), name});
}

static bool isNarrowing(Operation *op) {
  auto cast = dyn_cast<nn::CastOp>(op);
  return cast && cast.getType().getElementTypeBitWidth() <
                     cast.getInput().getType().getElementTypeBitWidth();
}

/// What is read rounded is rounded first: half as much to gather. There is a
/// gather for each type that the weight is read in.
void GatherPlacer::castBeforeGather(dist::ReshardOp gather, StringRef name) {
  llvm::SmallDenseMap<Type, dist::ReshardOp> rounded;
  for (Operation *user : llvm::make_early_inc_range(gather->getUsers())) {
    if (!isNarrowing(user))
      continue;
    auto type = cast<RankedTensorType>(user->getResult(0).getType());
    dist::ReshardOp &known = rounded[type];
    if (!known) {
      auto pieces = cast<RankedTensorType>(gather.getInput().getType());
      OpBuilder builder(gather);
      auto first = cast<nn::CastOp>(builder.clone(*user));
      first.getInputMutable().assign(gather.getInput());
      first.getResult().setType(RankedTensorType::get(
          pieces.getShape(), type.getElementType(), pieces.getEncoding()));
      known = cast<dist::ReshardOp>(builder.clone(*gather));
      known.getInputMutable().assign(first);
      known.getResult().setType(type);
      addWeight({first, known}, name);
    }
    user->replaceAllUsesWith(known);
    user->erase();
  }
  if (gather->use_empty())
    gather.erase();
  else
    addWeight({gather}, name);
}

/// Whether ranks only have more of a tensor: of a mesh of several axes a weight
/// stays split over those that its readers split it over.
static bool isGather(Type from, Type to) {
  auto before = dist::ShardingAttr::of(from),
       after = dist::ShardingAttr::of(to);
  return before != after && !after.isPartial() &&
         llvm::all_of(llvm::zip(before.getDims(), after.getDims()),
                      [](auto dims) {
                        return llvm::all_of(
                            std::get<1>(dims).getNames(), [&](StringAttr axis) {
                              return std::get<0>(dims).contains(axis);
                            });
                      });
}

void GatherPlacer::findWeights() {
  for (BlockArgument argument : step.getArguments()) {
    auto state = step.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (!state)
      continue;
    for (Operation *reader : llvm::make_early_inc_range(argument.getUsers())) {
      if (!isa<dist::ReshardOp, nn::CastOp>(reader) || reader->use_empty() ||
          !llvm::all_of(reader->getUsers(),
                        [&](Operation *user) { return ops.contains(user); }))
        continue;
      auto gather = dyn_cast<dist::ReshardOp>(reader);
      if (gather && isGather(argument.getType(), gather.getType()))
        castBeforeGather(gather, state.getValue());
      else if (isNarrowing(reader))
        addWeight({reader}, state.getValue());
    }
  }
  ops = GradientOps(step); // casts have moved
}

/// A view that the forward makes of a gathered weight is made anew where the
/// backward reads it: it would keep the weight until then.
void GatherPlacer::cloneViews(Value weight) {
  for (Operation *view : llvm::to_vector(weight.getUsers())) {
    if (!isView(view) || !ops.forward.contains(view))
      continue;
    Value result = view->getResult(0);
    cloneViews(result);
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      if (!ops.backward.contains(use.getOwner()))
        continue;
      OpBuilder builder(use.getOwner());
      Operation *copy = builder.clone(*view);
      ops.backward.insert(copy);
      use.set(copy->getResult(0));
    }
  }
}

void GatherPlacer::collectUses() {
  for (Weight &weight : weights)
    cloneViews(weight.made.back()->getResult(0));
  for (Operation &op : step.front())
    for (OpOperand &operand : op.getOpOperands())
      if (auto found = numbers.find(operand.get()); found != numbers.end())
        (ops.forward.contains(&op) ? forward : backward)
            .push_back({&operand, found->second});
}

/// Units by the forward's uses; of the backward's, by how it goes through them.
void GatherPlacer::findUnits() {
  SmallVector<GatherUnits::Use> uses;
  for (const Use &use : forward)
    uses.push_back({use.operand, use.weight});
  SmallVector<StringRef> names;
  for (const Weight &weight : weights)
    names.push_back(weight.name);
  units.emplace(uses, names);
  for (auto [use, unit] : llvm::zip_equal(forward, units->inForward()))
    use.unit = unit;
  SmallVector<unsigned> order;
  for (const Use &use : backward)
    order.push_back(use.weight);
  for (auto [use, unit] : llvm::zip_equal(backward, units->inBackward(order)))
    use.unit = unit;
}

/// One gather per unit and weight, all in front of the unit's first use. What
/// the forward's last unit has gathered, the backward, which begins there, goes
/// on with.
void GatherPlacer::place(ArrayRef<Use> uses, bool isBackward) {
  if (isBackward) {
    auto former = std::move(gathered);
    gathered.clear();
    for (auto &[key, gather] : former)
      if (key.second == units->getLast())
        gathered[key] = gather;
  }
  llvm::DenseMap<unsigned, Operation *> starts;
  llvm::DenseMap<unsigned, int64_t> instanceOf;
  for (const Use &use : uses)
    starts.try_emplace(use.unit, use.operand->getOwner());
  for (const Use &use : uses) {
    Value &gather = gathered[{use.weight, use.unit}];
    if (!gather) {
      auto [instance, isNew] = instanceOf.try_emplace(use.unit, instances);
      instances += isNew;
      OpBuilder builder(starts[use.unit]);
      gather = weights[use.weight].made.front()->getOperand(0);
      for (Operation *op : weights[use.weight].made) {
        Operation *made = builder.clone(*op);
        made->setOperand(0, gather);
        made->setAttr(dist::kInstanceAttr,
                      builder.getI64IntegerAttr(instance->second));
        gather = made->getResult(0);
        if (!isa<dist::ReshardOp>(made))
          continue;
        made->setAttr(dist::kUnitAttr,
                      builder.getStringAttr(units->getName(use.unit)));
        made->setAttr(dist::kInsertedByAttr,
                      builder.getStringAttr("dist-place-gathers"));
      }
    }
    use.operand->set(gather);
  }
}

namespace {
struct PlaceGathersPass : impl::PlaceGathersPassBase<PlaceGathersPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(nn::kEntryAttr) && !function.isExternal())
        GatherPlacer(function).run(once);
  }
};
} // namespace
} // namespace accel::parallel
