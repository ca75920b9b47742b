// Adds up what ZeRO gathers and scatters, and what it would.

#include "StateChoices.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Exchange.h"
#include "lib/Parallel/Gathers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;
using cost::Alternative;
using cost::Decision;
using parallel::Gathering;

static constexpr cost::Link kLink = cost::kMachine.collective;

static std::string spellCount(int64_t number, StringRef one,
                              StringRef several) {
  return (Twine(number) + " " + (number == 1 ? one : several)).str();
}

/// Of a type that is split over a mesh what a rank has; of another all.
static int64_t countBytes(RankedTensorType type, dist::MeshOp mesh) {
  auto sharding = dist::ShardingAttr::of(type);
  int64_t elements = 1;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    elements *= llvm::divideCeil(
        size,
        sharding && mesh ? mesh.getGroupSize(sharding.getDims()[dim]) : 1);
  return elements * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

int64_t search::countAccumulatorBytes(ModuleOp module) {
  dist::MeshOp mesh = dist::MeshOp::of(module);
  int64_t bytes = 0;
  // Once it is split, what a rank has is what its tasks take.
  llvm::DenseSet<Operation *> seen;
  for (auto task : module.getOps<func::FuncOp>())
    if (task->hasAttr(dist::kTaskAttr))
      for (BlockArgument argument : task.getArguments())
        if (nn::StateOp state = nn::findState(argument);
            state && state.getRole() == nn::StateRole::accumulator &&
            seen.insert(state).second)
          bytes += getTensorBytes(argument.getType());
  if (!seen.empty())
    return bytes;
  for (auto state : module.getOps<nn::StateOp>())
    if (state.getRole() == nn::StateRole::accumulator)
      bytes += countBytes(cast<RankedTensorType>(state.getType()), mesh);
  return bytes;
}

/// Units that take as much, and are gathered alike, are one decision: the
/// layers of a model.
static void tellOfUnits(ModuleOp module, ArrayRef<Gathering> gatherings) {
  struct Unit {
    std::string name;
    int64_t bytes = 0, times = 0, alike = 0;
  };
  llvm::MapVector<StringRef, Unit> units;
  for (const Gathering &each : gatherings) {
    Unit &unit = units[each.unit];
    unit.name = each.unit;
    unit.bytes = std::max(unit.bytes, each.bytes);
    ++unit.times;
  }
  std::map<std::pair<int64_t, int64_t>, Unit> kinds;
  for (auto &[name, unit] : units)
    ++kinds.try_emplace({unit.bytes, unit.times}, unit).first->second.alike;
  for (const auto &[key, kind] : kinds) {
    const Unit &unit = kind;
    std::string of = unit.name;
    if (unit.alike > 1)
      of += " and " + std::to_string(unit.alike - 1) + " alike";
    auto describe = [&](int64_t times, StringRef value) -> Alternative {
      return {value.str(), double(times) * kLink.getSeconds(unit.bytes),
              unit.bytes,
              times == 1 ? "kept from the forward to the backward"
                         : "freed behind each"};
    };
    Decision decision{kGatherUnit.str(), of, {}, {}, ""};
    if (unit.times > 1) {
      decision.chosen = describe(unit.times, "twice a micro-batch");
      decision.others = {describe(1, "once a micro-batch")};
      decision.reason = "between the forward and the backward of a unit lie "
                        "those of all units behind it";
    } else {
      decision.chosen = describe(1, "once a micro-batch");
      decision.others = {describe(2, "twice a micro-batch")};
      decision.reason = "the backward goes on where the forward ends, or one "
                        "of them alone reads it";
    }
    cost::tell(module, decision);
  }
}

namespace {
/// What gathers of a step take by either lifetime.
struct GatherCosts {
  GatherCosts(ArrayRef<Gathering> gatherings, int64_t microBatches) {
    llvm::StringSet<> seen;
    for (const Gathering &each : gatherings) {
      double seconds = kLink.getSeconds(each.bytes);
      byUnit += double(microBatches) * seconds;
      largest = std::max(largest, each.bytes);
      if (seen.insert(each.unit).second) {
        once += seconds;
        all += each.bytes;
      }
    }
    units = int64_t(seen.size());
  }

  double byUnit = 0, once = 0;  ///< seconds
  int64_t largest = 0, all = 0; ///< bytes
  int64_t units = 0;
};
} // namespace

std::optional<GatherSeconds> search::weighGathers(func::FuncOp step,
                                                  int64_t microBatches) {
  SmallVector<Gathering> gatherings = parallel::findGatherings(step);
  if (gatherings.empty())
    return std::nullopt;
  GatherCosts costs(gatherings, microBatches);
  return GatherSeconds{costs.byUnit, costs.once};
}

static void tellOfGathers(ModuleOp module, func::FuncOp step,
                          int64_t microBatches, StringRef reason = {}) {
  SmallVector<Gathering> gatherings = parallel::findGatherings(step);
  if (gatherings.empty())
    return;
  auto [byUnit, once, largest, all, number] =
      GatherCosts(gatherings, microBatches);
  std::string units = spellCount(number, "unit", "units");
  Alternative ofUnits{
      "by unit", byUnit, largest,
      units + ", " +
          spellCount(int64_t(gatherings.size()), "gather", "gathers") +
          " a micro-batch"};
  Alternative ofAll{"once", once, all, units + " for all of a step"};
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  bool isOnce = decisions.contains(kGathersDecision);
  cost::tell(module, {kGathers.str(),
                      "step",
                      isOnce ? ofAll : ofUnits,
                      {isOnce ? ofUnits : ofAll},
                      !reason.empty() ? reason.str()
                      : isOnce        ? "zero.gather_once"
                                      : "zero_stage 3: memory before time"});
  if (!isOnce)
    tellOfUnits(module, gatherings);
}

/// In pieces gradients are scattered in each micro-batch, whole ones once.
static void tellOfAccumulators(ModuleOp module, int64_t microBatches) {
  int64_t stage = getZeroStage(module);
  dist::MeshOp mesh = dist::MeshOp::of(module);
  int64_t bytes = countAccumulatorBytes(module), whole = 0, sums = 0;
  int64_t ranks =
      mesh ? mesh.findAxisSize(dist::MeshOp::kShardAxis).value_or(1) : 1;
  if (stage == 0 || bytes == 0 || ranks == 1)
    return;
  for (auto state : module.getOps<nn::StateOp>()) {
    if (state.getRole() != nn::StateRole::accumulator)
      continue;
    auto type = cast<RankedTensorType>(state.getType());
    auto sharding = dist::ShardingAttr::of(type);
    bool isShared =
        sharding && llvm::any_of(sharding.getDims(), [](dist::AxesAttr axes) {
          return axes.contains(dist::MeshOp::kShardAxis);
        });
    whole += countBytes(type, mesh) * (isShared ? ranks : 1);
    ++sums;
  }
  bool isPieces = whole != bytes;
  int64_t pieces = isPieces ? bytes : llvm::divideCeil(bytes, ranks);
  double once = cost::getSeconds(cost::Exchange::ReduceScatter, double(ranks),
                                 double(whole), kLink);
  std::string of =
      mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1) > 1
          ? ", of all stages"
          : "";
  Alternative ofPieces{"pieces", double(microBatches) * once, pieces,
                       "scattered in each micro-batch" + of};
  Alternative ofWhole{"whole", once, whole, "scattered once a step" + of};
  cost::tell(module, {kAccumulators.str(),
                      spellCount(sums, "sum", "sums"),
                      isPieces ? ofPieces : ofWhole,
                      {isPieces ? ofWhole : ofPieces},
                      "zero_stage " + std::to_string(stage)});
}

void search::tellOfStates(ModuleOp module, int64_t microBatches) {
  func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
  if (!cost::isAskedForDecisions(module) || !step)
    return;
  tellOfGathers(module, step, microBatches);
  tellOfAccumulators(module, microBatches);
}

void search::tellOfGathersAgain(ModuleOp module, int64_t microBatches,
                                StringRef reason) {
  func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
  if (!cost::isAskedForDecisions(module) || !step)
    return;
  cost::takeBack(module, {kGathers, kGatherUnit});
  tellOfGathers(module, step, microBatches, reason);
}
