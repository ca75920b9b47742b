// Gathers sharded weights where they are used, a unit at a time, and again in
// the backward.

#include "PlaceGathers.h"
#include "GatherUnits.h"
#include "GradientOps.h"
#include "NarrowedWeights.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/GroupsAxis.h"
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
  SmallVector<Operation *, 3> made; ///< how: each from the one before
  StringRef name;
  /// How many of these make what a group of ranks keeps from the forward to the
  /// backward, which then makes the others alone; 0: it keeps nothing.
  unsigned ofGroup = 0;
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
        if (op->use_empty()) // another weight's may be made of it, too
          op->erase();
  }

private:
  void findWeights();
  void addWeight(ArrayRef<Operation *> made, StringRef name);
  void castBeforeGather(ArrayRef<Operation *> gathers, StringRef name);
  void findRounded();
  void cloneViews(Value weight);
  void collectUses();
  void findUnits();
  void place(ArrayRef<Use> uses, bool isBackward);
  Operation *makeStep(const Weight &weight, unsigned step, Value from,
                      unsigned unit, int64_t instance, Operation *before);

  func::FuncOp step;
  GradientOps ops;
  SmallVector<Weight> weights;
  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<Use> forward, backward;
  std::optional<GatherUnits> units;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Value> gathered;
  llvm::DenseMap<unsigned, Value> ofGroups; ///< what is kept of a weight
  int64_t instances = 0;
};
} // namespace

void GatherPlacer::addWeight(ArrayRef<Operation *> made, StringRef name) {
  unsigned ofGroup = 0;
  for (auto [step, op] : llvm::enumerate(made.drop_back()))
    if (isa<dist::ReshardOp>(op))
      ofGroup = step + 1;
  numbers[made.back()->getResult(0)] = weights.size();
  weights.push_back({llvm::to_vector<3>(made), name, ofGroup});
}

/// What is read rounded is rounded first: half as much to gather. There is a
/// gather, of as many steps, for each type that the weight is read in.
void GatherPlacer::castBeforeGather(ArrayRef<Operation *> gathers,
                                    StringRef name) {
  Operation *whole = gathers.back();
  llvm::SmallDenseMap<Type, Operation *> rounded;
  for (Operation *user : llvm::make_early_inc_range(whole->getUsers())) {
    if (!isNarrowing(user))
      continue;
    Type type = user->getResult(0).getType();
    Operation *&known = rounded[type];
    if (!known) {
      OpBuilder builder(gathers.front());
      SmallVector<Operation *> made;
      Value from = gathers.front()->getOperand(0);
      auto make = [&](Operation *op, Type placed) {
        Operation *step = builder.clone(*op);
        step->setOperand(0, from);
        from = step->getResult(0);
        auto pieces = cast<RankedTensorType>(placed);
        from.setType(RankedTensorType::get(pieces.getShape(),
                                           getElementTypeOrSelf(type),
                                           pieces.getEncoding()));
        made.push_back(step);
      };
      make(user, from.getType());
      for (Operation *gather : gathers)
        make(gather, gather->getResult(0).getType());
      known = made.back();
      addWeight(made, name);
    }
    user->replaceAllUsesWith(known);
    user->erase();
  }
  if (!whole->use_empty())
    return addWeight(gathers, name);
  for (Operation *gather : llvm::reverse(gathers))
    gather->erase();
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

/// The gathers that make a weight of its pieces: one, or where groups of ranks
/// keep a copy one over the groups, and one within each.
static SmallVector<Operation *, 2> findSteps(dist::ReshardOp gather) {
  SmallVector<Operation *, 2> steps{gather.getOperation()};
  auto from = dist::ShardingAttr::of(gather.getInput().getType());
  bool isOverGroups = llvm::any_of(from.getDims(), [](dist::AxesAttr axes) {
    return axes.contains(dist::kGroupsAxis);
  });
  if (isOverGroups && gather->hasOneUse())
    if (auto next = dyn_cast<dist::ReshardOp>(*gather->user_begin());
        next && isGather(gather.getType(), next.getType()))
      steps.push_back(next);
  return steps;
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
        castBeforeGather(findSteps(gather), state.getValue());
      else if (isNarrowing(reader))
        addWeight({reader}, state.getValue());
    }
  }
  findRounded();
  ops = GradientOps(step); // casts have moved
}

/// What is scaled and rounded in pieces and gathered then is a weight, of as
/// many steps (`dist-shard-states` has placed it so).
void GatherPlacer::findRounded() {
  for (auto gather : llvm::to_vector(step.front().getOps<dist::ReshardOp>())) {
    SmallVector<Operation *> made = findRounding(gather.getInput());
    if (made.size() < 2 || gather->use_empty() ||
        !isGather(gather.getInput().getType(), gather.getType()))
      continue;
    auto pieces = dyn_cast<BlockArgument>(made.front()->getOperand(0));
    auto state = pieces ? step.getArgAttrOfType<FlatSymbolRefAttr>(
                              pieces.getArgNumber(), nn::kStateAttr)
                        : FlatSymbolRefAttr();
    SmallVector<Operation *, 2> gathers = findSteps(gather);
    if (!state ||
        !llvm::all_of(gathers.back()->getUsers(),
                      [&](Operation *user) { return ops.contains(user); }))
      continue;
    llvm::append_range(made, gathers);
    addWeight(made, state.getValue());
  }
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

/// Moves what makes a value in front of an op that reads it. What is computed
/// again may stand before the forward's last unit, whose gathers it reads.
static void makeBefore(Value value, Operation *reader) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(reader))
    return;
  op->moveBefore(reader);
  for (Value operand : op->getOperands())
    makeBefore(operand, op);
}

/// One step of making a weight for a unit, from what the one before has made.
Operation *GatherPlacer::makeStep(const Weight &weight, unsigned step,
                                  Value from, unsigned unit, int64_t instance,
                                  Operation *before) {
  OpBuilder builder(before);
  Operation *made = builder.clone(*weight.made[step]);
  made->setOperand(0, from);
  made->setAttr(dist::kInstanceAttr, builder.getI64IntegerAttr(instance));
  // What is repeated to the weight's shape is made anew, not kept.
  for (OpOperand &other : made->getOpOperands().drop_front()) {
    builder.setInsertionPoint(made);
    Operation *repeated = builder.clone(*other.get().getDefiningOp());
    repeated->setAttr(dist::kInstanceAttr, builder.getI64IntegerAttr(instance));
    other.set(repeated->getResult(0));
    for (Value source : repeated->getOperands())
      makeBefore(source, repeated);
  }
  if (!isa<dist::ReshardOp>(made))
    return made;
  made->setAttr(dist::kUnitAttr, builder.getStringAttr(units->getName(unit)));
  made->setAttr(dist::kInsertedByAttr,
                builder.getStringAttr("dist-place-gathers"));
  return made;
}

/// One gather per unit and weight, all in front of the unit's first use. What
/// the forward's last unit has gathered, the backward, which begins there, goes
/// on with; of all others with what groups of ranks have kept, if they have.
void GatherPlacer::place(ArrayRef<Use> uses, bool isBackward) {
  if (isBackward) {
    auto former = std::move(gathered);
    gathered.clear();
    for (auto &[key, gather] : former)
      if (key.second == units->getLast())
        gathered[key] = gather;
  }
  llvm::DenseMap<unsigned, Operation *> starts;
  /// Of each unit, the first op that is made of what groups have: all that
  /// these have is made in front of it, in one exchange.
  llvm::DenseMap<unsigned, Operation *> firstInGroups;
  llvm::DenseMap<unsigned, int64_t> instanceOf;
  for (const Use &use : uses)
    starts.try_emplace(use.unit, use.operand->getOwner());
  for (const Use &use : uses) {
    Value &gather = gathered[{use.weight, use.unit}];
    if (!gather) {
      auto [instance, isNew] = instanceOf.try_emplace(use.unit, instances);
      instances += isNew;
      const Weight &weight = weights[use.weight];
      Value &kept = ofGroups[use.weight];
      Operation *&firstInGroup = firstInGroups[use.unit];
      gather = kept ? kept : weight.made.front()->getOperand(0);
      for (unsigned step = kept ? weight.ofGroup : 0; step < weight.made.size();
           ++step) {
        bool isOverGroups = step < weight.ofGroup;
        Operation *before =
            isOverGroups && firstInGroup ? firstInGroup : starts[use.unit];
        makeBefore(gather, before);
        Operation *made =
            makeStep(weight, step, gather, use.unit, instance->second, before);
        gather = made->getResult(0);
        if (step + 1 == weight.ofGroup)
          kept = gather;
        if (!isOverGroups && weight.ofGroup > 0 && !firstInGroup)
          firstInGroup = made;
      }
    }
    makeBefore(gather, use.operand->getOwner());
    use.operand->set(gather);
  }
}

void placeGathers(func::FuncOp entry, bool once) {
  GatherPlacer(entry).run(once);
}

namespace {
struct PlaceGathersPass : impl::PlaceGathersPassBase<PlaceGathersPass> {
  using Base::Base;

  void runInOrder() override {
    auto decisions =
        getOperation()->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    auto gathers = decisions ? decisions.getAs<StringAttr>(kGathersDecision)
                             : StringAttr();
    bool once = gathers && gathers.getValue() == kGathersOnce;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(nn::kEntryAttr) && !function.isExternal())
        placeGathers(function, once);
  }
};
} // namespace
} // namespace accel::parallel
