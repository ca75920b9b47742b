// Multiplies what is open.

#include "Candidates.h"

#include "ScheduleChoice.h"
#include "StateChoices.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Zero.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/OffloadDecisions.h"
#include "lib/Cost/Work.h"
#include "lib/Tasks/DecidedOrder.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;
using pipeline::Synthesis;

bool Candidate::decides(StringRef key) const {
  return llvm::any_of(decisions,
                      [&](const auto &one) { return one.first == key; });
}

StringRef Candidate::get(StringRef key) const {
  for (auto [name, value] : decisions)
    if (name == key)
      if (auto text = dyn_cast_or_null<StringAttr>(value))
        return text.getValue();
  return {};
}

bool Candidate::copies() const {
  return llvm::any_of(kOffloadDecisions,
                      [&](StringRef key) { return !get(key).empty(); });
}

std::string search::describeOffload(StringRef key, StringRef space) {
  StringRef what = key == kOffloadOptimizer
                       ? "optimizer states"
                       : key.drop_front(StringRef("offload_").size());
  return (what + (space == "host" ? " on the host" : " in a file")).str();
}

LogicalResult Candidate::apply(ModuleOp module) const {
  for (auto [key, value] : decisions)
    cost::setDecision(module, key, value);
  if (!schedule)
    return success();
  auto layout = Layout::of(module);
  if (failed(layout))
    return failure();
  auto inFlight = countInFlight(
      module, module->getAttrOfType<DictionaryAttr>(kDecisionsAttr),
      layout->stages, layout->microBatches);
  if (failed(inFlight))
    return failure();
  cost::setDecision(
      module, kInFlightKey,
      Builder(module.getContext()).getDenseI64ArrayAttr(*inFlight));
  return success();
}

/// Of each combination so far one with each of these.
static std::vector<Candidate> multiply(ArrayRef<Candidate> candidates,
                                       ArrayRef<Candidate> choices) {
  std::vector<Candidate> products;
  for (const Candidate &one : candidates)
    for (const Candidate &choice : choices) {
      Candidate product = one;
      if (!product.value.empty() && !choice.value.empty())
        product.value += ", ";
      product.value += choice.value;
      llvm::append_range(product.decisions, choice.decisions);
      product.seconds += choice.seconds;
      if (choice.schedule)
        product.schedule = choice.schedule;
      products.push_back(std::move(product));
    }
  return products;
}

/// Whether anything of the program would lie elsewhere.
static bool hasAny(ModuleOp module, StringRef key) {
  if (key == kOffloadActivations)
    return true;
  auto role = key == kOffloadOptimizer ? nn::StateRole::moment
                                       : nn::StateRole::parameter;
  return llvm::any_of(module.getOps<nn::StateOp>(), [&](nn::StateOp state) {
    return state.getRole() == role;
  });
}

/// Those that no other one is better than in time and in what is kept; of
/// equals the first.
static SmallVector<const Synthesis *>
findUndominated(ArrayRef<Synthesis> tried) {
  struct Costs {
    double seconds;
    int64_t bytes;
    bool operator<=(const Costs &other) const {
      return seconds <= other.seconds && bytes <= other.bytes;
    }
  };
  auto costs = llvm::map_to_vector(tried, [](const Synthesis &one) {
    return Costs{one.simulation.seconds,
                 *llvm::max_element(one.simulation.activationBytes)};
  });
  SmallVector<const Synthesis *> kept;
  for (auto [number, one] : llvm::enumerate(tried)) {
    bool isBeaten = false;
    for (size_t other = 0; other < tried.size(); ++other)
      isBeaten |= other != number && costs[other] <= costs[number] &&
                  (other < number || !(costs[number] <= costs[other]));
    if (!isBeaten)
      kept.push_back(&one);
  }
  return kept;
}

/// By which a pipeline may run.
static FailureOr<std::vector<Candidate>>
listSchedules(func::FuncOp step, pipeline::Problem problem) {
  std::vector<Synthesis> tried;
  // Under the cap of `auto` without a budget, and without one: the budget is
  // what limits memory.
  for (bool isCapped : {true, false}) {
    if (!isCapped)
      problem.cap = {};
    auto some = pipeline::trySchedules(problem);
    if (!some)
      return step.emitError() << llvm::toString(some.takeError());
    llvm::move(*some, std::back_inserter(tried));
  }
  Builder builder(step.getContext());
  std::vector<Candidate> candidates;
  for (const Synthesis *one : findUndominated(tried)) {
    bool isNamed = one->name != "auto";
    candidates.push_back(
        {isNamed ? "schedule " + one->name : "a schedule without a name",
         {{kScheduleKey, builder.getStringAttr(one->name)},
          {tasks::kOrderKey,
           isNamed ? ArrayAttr() : tasks::writeOrder(builder, one->schedule)}},
         cost::getSeconds(one->simulation.seconds),
         std::make_shared<Synthesis>(*one)});
  }
  return candidates;
}

/// When weights are gathered; nothing where none are sharded.
static std::vector<Candidate> listGathers(func::FuncOp step,
                                          const Layout &layout) {
  auto gathers = weighGathers(step, layout.microBatches);
  if (!gathers)
    return {{}};
  // Stages gather their own, beside each other. Of equals the one that has
  // less.
  double part = 1 / double(layout.stages);
  auto once = StringAttr::get(step.getContext(), kGathersOnce);
  return {{"gathers by unit", {{kGathersDecision, {}}}, part * gathers->byUnit},
          {"gathers once", {{kGathersDecision, once}}, part * gathers->once}};
}

FailureOr<std::vector<Candidate>>
search::listCandidates(func::FuncOp step, const Layout &layout,
                       const OpenDecisions &open,
                       const pipeline::Problem &problem) {
  std::vector<Candidate> candidates(1);
  if (open.gathers)
    candidates = multiply(candidates, listGathers(step, layout));
  for (StringRef key : open.offloads)
    if (!llvm::is_contained(kOffloadDecisions, key))
      return step.emitError()
             << "expected offload_optimizer, offload_parameters or "
                "offload_activations to be open, found '"
             << key << "'";
  for (StringRef key : kOffloadDecisions) {
    if (!llvm::is_contained(open.offloads, key) ||
        !hasAny(step->getParentOfType<ModuleOp>(), key))
      continue;
    std::vector<Candidate> places{{"", {{key, {}}}}};
    for (StringRef space : open.spaces)
      places.push_back({describeOffload(key, space),
                        {{key, StringAttr::get(step.getContext(), space)}}});
    candidates = multiply(candidates, places);
  }
  if (open.schedule && layout.stages > 1) {
    auto schedules = listSchedules(step, problem);
    if (failed(schedules))
      return failure();
    candidates = multiply(candidates, *schedules);
  }
  return candidates;
}
