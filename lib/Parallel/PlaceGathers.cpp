// Gathers sharded weights where they are used, a unit at a time, and again in
// the backward.

#include "GatherUnits.h"
#include "GradientOps.h"
#include "accel/Parallel/Passes.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PLACEGATHERSPASS
#include "accel/Parallel/Passes.h.inc"

namespace {
/// A weight that forward and backward read whole, and where they do.
struct Weight {
  dist::ReshardOp gather;
  StringRef name;
  SmallVector<unsigned> units; ///< of its uses in the forward
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

  void run() {
    findWeights();
    if (weights.empty())
      return;
    collectUses();
    findUnits();
    nameUnits();
    place(forward, /*isBackward=*/false);
    place(backward, /*isBackward=*/true);
    for (Weight &weight : weights)
      weight.gather.erase();
  }

private:
  void findWeights();
  void castBeforeGather(dist::ReshardOp gather);
  void collectUses();
  void findUnits();
  void nameUnits();
  void place(ArrayRef<Use> uses, bool isBackward);

  func::FuncOp step;
  GradientOps ops;
  SmallVector<Weight> weights;
  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<Use> forward, backward;
  unsigned unitCount = 0;
  SmallVector<std::string> unitNames;
  llvm::DenseMap<std::pair<unsigned, unsigned>, dist::ReshardOp> gathered;
  int64_t instances = 0;
};
} // namespace

static bool isWhole(Type type) {
  auto sharding = dist::ShardingAttr::of(type);
  return !sharding.isPartial() &&
         llvm::all_of(sharding.getDims(),
                      [](dist::AxesAttr axes) { return axes.empty(); });
}

/// What is only read rounded is rounded first: half as much to gather.
void GatherPlacer::castBeforeGather(dist::ReshardOp gather) {
  auto first = dyn_cast<nn::CastOp>(*gather->user_begin());
  if (!first || first.getType().getElementTypeBitWidth() >=
                    gather.getType().getElementTypeBitWidth())
    return;
  for (Operation *user : gather->getUsers())
    if (!isa<nn::CastOp>(user) ||
        user->getResult(0).getType() != first.getType())
      return;
  auto pieces = cast<RankedTensorType>(gather.getInput().getType());
  OpBuilder builder(gather);
  auto rounded = cast<nn::CastOp>(builder.clone(*first));
  rounded.getInputMutable().assign(gather.getInput());
  rounded.getResult().setType(
      RankedTensorType::get(pieces.getShape(), first.getType().getElementType(),
                            pieces.getEncoding()));
  gather.getInputMutable().assign(rounded);
  gather.getResult().setType(first.getType());
  for (Operation *user : llvm::make_early_inc_range(gather->getUsers())) {
    user->replaceAllUsesWith(gather);
    user->erase();
  }
}

void GatherPlacer::findWeights() {
  for (auto gather : llvm::to_vector(step.getOps<dist::ReshardOp>())) {
    auto argument = dyn_cast<BlockArgument>(gather.getInput());
    if (!argument || !isWhole(gather.getType()) ||
        isWhole(argument.getType()) || gather->use_empty())
      continue;
    auto state = step.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (!state || !llvm::all_of(gather->getUsers(), [&](Operation *user) {
          return ops.contains(user);
        }))
      continue;
    castBeforeGather(gather);
    numbers[gather.getResult()] = weights.size();
    weights.push_back({gather, state.getValue(), {}});
  }
  ops = GradientOps(step); // casts have moved
}

void GatherPlacer::collectUses() {
  for (Operation &op : step.front())
    for (OpOperand &operand : op.getOpOperands())
      if (auto found = numbers.find(operand.get()); found != numbers.end())
        (ops.forward.contains(&op) ? forward : backward)
            .push_back({&operand, found->second});
}

/// The same for uses that stand for each other in isomorphic blocks: what the
/// weight looks like, and who reads it, through what only moves its elements.
static size_t getSignature(OpOperand &use) {
  auto type = cast<RankedTensorType>(use.get().getType());
  llvm::hash_code hash = llvm::hash_combine(
      type.getElementType(), llvm::hash_combine_range(type.getShape()));
  for (OpOperand *at = &use;;) {
    Operation *reader = at->getOwner();
    hash = llvm::hash_combine(hash, reader->getName().getStringRef(),
                              at->getOperandNumber());
    if (!isView(reader) || !reader->hasOneUse())
      return hash;
    at = &*reader->use_begin();
  }
}

void GatherPlacer::findUnits() {
  SmallVector<WeightUse> uses;
  for (const Use &use : forward) {
    dist::ReshardOp gather = weights[use.weight].gather;
    RankedTensorType type = gather.getType();
    uses.push_back({getSignature(*use.operand), use.weight,
                    type.getNumElements() * type.getElementTypeBitWidth() / 8});
  }
  for (auto [use, unit] : llvm::zip_equal(forward, findGatherUnits(uses))) {
    use.unit = unit;
    weights[use.weight].units.push_back(unit);
    unitCount = std::max(unitCount, unit + 1);
  }
  // The backward goes through the units from the last to the first; a weight of
  // several (a tied table) counts for the one that is nearest.
  unsigned at = unitCount ? unitCount - 1 : 0;
  for (Use &use : backward) {
    ArrayRef<unsigned> units = weights[use.weight].units;
    use.unit = at;
    if (!units.empty())
      use.unit = *llvm::min_element(units, [&](unsigned a, unsigned b) {
        auto distance = [&](unsigned unit) {
          return unit > at ? unit - at : at - unit;
        };
        return distance(a) < distance(b);
      });
    at = use.unit;
  }
  unitCount = std::max(unitCount, 1u);
}

/// After the module that the weights' names share: "transformer.h.0".
void GatherPlacer::nameUnits() {
  SmallVector<std::optional<SmallVector<StringRef>>> paths(unitCount);
  for (const Use &use : llvm::concat<Use>(forward, backward)) {
    SmallVector<StringRef> path;
    weights[use.weight].name.split(path, '.');
    path.pop_back(); // the weight's own
    auto &shared = paths[use.unit];
    if (!shared)
      shared = path;
    size_t same = 0;
    while (same < std::min(shared->size(), path.size()) &&
           (*shared)[same] == path[same])
      ++same;
    shared->truncate(same);
  }
  llvm::StringMap<unsigned> seen;
  for (auto &path : paths) {
    std::string name = path ? llvm::join(*path, ".") : "";
    if (name.empty())
      name = "model";
    unsigned number = seen[name]++;
    unitNames.push_back(number ? name + "/" + std::to_string(number) : name);
  }
}

/// One gather per unit and weight, all in front of the unit's first use. What
/// the forward's last unit has gathered, the backward, which begins there, goes
/// on with.
void GatherPlacer::place(ArrayRef<Use> uses, bool isBackward) {
  if (isBackward) {
    auto former = std::move(gathered);
    gathered.clear();
    for (auto &[key, gather] : former)
      if (key.second == unitCount - 1)
        gathered[key] = gather;
  }
  llvm::DenseMap<unsigned, Operation *> starts;
  llvm::DenseMap<unsigned, int64_t> instanceOf;
  for (const Use &use : uses)
    starts.try_emplace(use.unit, use.operand->getOwner());
  for (const Use &use : uses) {
    dist::ReshardOp &gather = gathered[{use.weight, use.unit}];
    if (!gather) {
      auto [instance, isNew] = instanceOf.try_emplace(use.unit, instances);
      instances += isNew;
      OpBuilder builder(starts[use.unit]);
      gather =
          cast<dist::ReshardOp>(builder.clone(*weights[use.weight].gather));
      gather->setAttr(dist::kUnitAttr,
                      builder.getStringAttr(unitNames[use.unit]));
      gather->setAttr(dist::kInstanceAttr,
                      builder.getI64IntegerAttr(instance->second));
      gather->setAttr(dist::kInsertedByAttr,
                      builder.getStringAttr("dist-place-gathers"));
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
        GatherPlacer(function).run();
  }
};
} // namespace
} // namespace accel::parallel
