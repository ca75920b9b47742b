// Reads trials of one policy each, and adds up those of several parts.

#include "PolicyTable.h"

#include "StageSample.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace accel;
using namespace accel::search;
using parallel::RecomputeChoices;

/// Whether a trial tells of a policy, and not trials of its parts.
static bool isTried(const RecomputeChoices::Policy &policy) {
  return llvm::popcount(policy.parts) <= 1;
}

/// Whether a trial tells of a layer of each kind: a layer that a cut divides is
/// of a kind of its own, and what stays of it may have gone to another.
static bool hasEachKind(const Trial &trial,
                        ArrayRef<RecomputeChoices::Layer> layers) {
  std::set<unsigned> kinds;
  for (auto [layer, work] : trial.workOfLayer)
    kinds.insert(layers[layer].kind);
  return llvm::all_of(layers, [&](const RecomputeChoices::Layer &layer) {
    return kinds.count(layer.kind);
  });
}

bool PolicyTable::isNear(int64_t bytes, int64_t budget) {
  constexpr double near = 0.03;
  return std::abs(double(bytes - budget)) <= near * double(budget);
}

/// The trials of a table: of each policy that is tried, on all layers; of none,
/// if that fits by far.
static FailureOr<std::vector<std::optional<Trial>>>
tryPolicies(ModuleOp module, const RecomputeChoices &choices,
            const Trier &trier, Extent extent, const StageSample &sample,
            int64_t budget) {
  std::vector<std::optional<Trial>> trials(choices.getPolicies().size());
  auto tryOne = [&](unsigned policy) -> LogicalResult {
    if (!isTried(choices.getPolicies()[policy]))
      return success();
    SmallVector<unsigned> policyOfLayer;
    for (unsigned layer = 0; layer < choices.getLayers().size(); ++layer)
      policyOfLayer.push_back(choices.mayHave(layer, policy) ? policy : 0);
    auto tried =
        tryPlan(module, trier, policyOfLayer, extent, sample.getTried());
    if (failed(tried))
      return failure();
    sample.complete(*tried);
    trials[policy] = std::move(*tried);
    return success();
  };
  // The first alone: it measures forms of products.
  if (failed(tryOne(0)))
    return failure();
  int64_t peak = trials.front()->getPeak();
  bool isAmple = peak <= budget && !PolicyTable::isNear(peak, budget);
  if (!isAmple && failed(failableParallelForEachN(module.getContext(), 1,
                                                  trials.size(), tryOne)))
    return failure();
  return trials;
}

FailureOr<PolicyTable>
PolicyTable::measure(ModuleOp module, const RecomputeChoices &choices,
                     const Layout &layout, const Trier &trier, int64_t budget) {
  ArrayRef<RecomputeChoices::Layer> layers = choices.getLayers();
  StageSample sample(layers, layout.stageOfChunk, layout.inFlight);
  PolicyTable table;
  // A few stages with all of their layers take less than all with a few.
  if (!sample.getTried().empty())
    table.extent = Extent::Whole;
  auto trials =
      tryPolicies(module, choices, trier, table.extent, sample, budget);
  if (failed(trials))
    return failure();
  table.predicted =
      !sample.getTried().empty() || llvm::any_of(*trials, [](const auto &one) {
        return one && one->isShortened;
      });
  if (!llvm::all_of(*trials, [&](const auto &trial) {
        return !trial || hasEachKind(*trial, layers);
      })) {
    table.extent = Extent::Whole;
    trials = tryPolicies(module, choices, trier, table.extent, sample, budget);
    if (failed(trials))
      return failure();
  }
  // Sums of works are whole numbers that stay exact.
  double most = 0;
  for (const std::optional<Trial> &trial : *trials)
    if (trial)
      for (auto [layer, work] : trial->workOfLayer)
        most = std::max(most, work);
  table.unit = std::max(1.0, most * double(layers.size()) * 0x1p-46);
  for (auto [number, stage] : llvm::enumerate(trials->front()->stages)) {
    SmallVector<unsigned> own;
    for (auto [index, layer] : llvm::enumerate(layers))
      if (layout.stageOfChunk[layer.chunk] == stage.stage)
        own.push_back(index);
    table.addStage(choices, *trials, number, own);
  }
  return table;
}

/// What is usual for layers: the one in the middle, and of two the less, since
/// one of them may be the one that is being computed.
template <typename T>
static T getUsual(const std::map<unsigned, T> &ofLayer,
                  ArrayRef<unsigned> layers) {
  SmallVector<T> known;
  for (unsigned layer : layers)
    if (auto found = ofLayer.find(layer); found != ofLayer.end())
      known.push_back(found->second);
  assert(!known.empty() && "a trial tells of each kind");
  llvm::sort(known);
  return known[(known.size() - 1) / 2];
}

void PolicyTable::addStage(const RecomputeChoices &choices,
                           const Trials &trials, size_t stage,
                           ArrayRef<unsigned> layers) {
  llvm::MapVector<unsigned, SmallVector<unsigned>> kinds;
  for (unsigned layer : layers)
    kinds[choices.getLayers()[layer].kind].push_back(layer);
  size_t policies = trials.size();
  StageTable &table = stages.emplace_back();
  auto &classes = layersOfClass.emplace_back();
  auto getBytes = [&](unsigned policy) {
    return trials[policy]->stages[stage].getBytes();
  };
  bytesOfNone.push_back(getBytes(0));
  for (unsigned policy = 0; policy < policies; ++policy)
    table.besides.push_back(trials[policy] ? getBytes(policy) : 0);
  for (auto &[kind, of] : kinds) {
    LayerClass &each =
        table.classes.emplace_back(LayerClass{int64_t(of.size()), {}});
    // By policy, whether or not it changes anything here.
    SmallVector<int64_t> bytes(policies, 0), work(policies, 0);
    for (unsigned policy = 0; policy < policies; ++policy)
      if (trials[policy]) {
        bytes[policy] =
            getUsual(trials[policy]->stages[stage].bytesOfLayer, of);
        work[policy] =
            std::llround(getUsual(trials[policy]->workOfLayer, of) / unit);
        table.besides[policy] -= int64_t(of.size()) * bytes[policy];
      }
    bool isNone = !trials.back(); // alone
    for (unsigned policy = 0; policy < (isNone ? 1 : policies); ++policy) {
      if (!choices.mayHave(of.front(), policy))
        continue;
      LayerClass::Choice choice{policy, bytes[policy], work[policy]};
      if (!trials[policy]) {
        choice = {policy, bytes[0], 0};
        for (unsigned part = 1; part < policies; ++part) {
          uint32_t bit = choices.getPolicies()[part].parts;
          if (!trials[part] || !(bit & choices.getPolicies()[policy].parts))
            continue;
          choice.bytes -= bytes[0] - bytes[part];
          choice.work += work[part];
        }
        choice.bytes = std::max<int64_t>(choice.bytes, 0);
      }
      workOf[{kind, policy}] = double(choice.work) * unit;
      each.choices.push_back(choice);
    }
    classes.emplace_back(of.begin(), of.end());
  }
  // Parts together need beside what the part needs that needs most.
  for (unsigned policy = 0; policy < policies; ++policy)
    if (!trials[policy])
      for (unsigned part = 1; part < policies; ++part)
        if (trials[part] && (choices.getPolicies()[part].parts &
                             choices.getPolicies()[policy].parts))
          table.besides[policy] =
              std::max(table.besides[policy], table.besides[part]);
}

double PolicyTable::getWork(unsigned kind, unsigned policy) const {
  auto found = workOf.find({kind, policy});
  return found == workOf.end() ? 0 : found->second;
}

std::string PolicyTable::describe(const RecomputeChoices &choices,
                                  ArrayRef<unsigned> policyOfLayer,
                                  std::optional<size_t> stage) const {
  SmallVector<int64_t> layers(choices.getPolicies().size(), 0);
  for (auto [number, classes] : llvm::enumerate(layersOfClass))
    if (!stage || *stage == number)
      for (const std::vector<unsigned> &each : classes)
        for (unsigned layer : each)
          ++layers[policyOfLayer[layer]];
  SmallVector<std::string> said;
  for (size_t policy = layers.size(); policy-- > 0;)
    if (layers[policy] > 0)
      said.push_back(llvm::formatv("{0} {1} {2}", layers[policy],
                                   layers[policy] == 1 ? "layer" : "layers",
                                   choices.getPolicies()[policy].name));
  return said.empty() ? "no layers" : llvm::join(said, ", ");
}

void PolicyTable::assign(size_t stage, const PolicyCounts &counts,
                         MutableArrayRef<unsigned> policyOfLayer) const {
  for (size_t number = 0; number < stages[stage].classes.size(); ++number) {
    const LayerClass &each = stages[stage].classes[number];
    SmallVector<unsigned> order =
        llvm::to_vector(llvm::seq<unsigned>(0, unsigned(each.choices.size())));
    llvm::stable_sort(order, [&](unsigned one, unsigned other) {
      return each.choices[one].bytes < each.choices[other].bytes;
    });
    auto layer = layersOfClass[stage][number].begin();
    for (unsigned choice : order)
      for (int64_t i = 0; i < counts.layers[number][choice]; ++i)
        policyOfLayer[*layer++] = each.choices[choice].policy;
  }
}
