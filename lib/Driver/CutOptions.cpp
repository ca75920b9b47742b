// Counts chunks, and copies of what lies in them.

#include "CutOptions.h"

#include "lib/Autodiff/UpdateRule.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "lib/Pipeline/Slots.h"

using namespace mlir;
using namespace accel;
using namespace accel::driver;

namespace {
struct Ranks {
  int64_t stages = 1;
  int64_t parts = 1; ///< of the batch, or of its rows
};
} // namespace

/// Of a text that is no mesh, one of each. Ranks of tp have a part of
/// everything, and change no balance.
static Ranks countRanks(StringRef mesh) {
  Ranks ranks;
  SmallVector<StringRef> axes;
  mesh.split(axes, ',');
  for (StringRef axis : axes) {
    auto [name, text] = axis.split('=');
    int64_t size = 1;
    if (text.getAsInteger(10, size) || size < 1)
      return {};
    if (name == dist::MeshOp::kPipelineAxis)
      ranks.stages = size;
    else if (name != dist::MeshOp::kTensorAxis)
      ranks.parts *= size;
  }
  return ranks;
}

/// Of each chunk, how many micro-batches have left something that is not used
/// up yet. Of a schedule that is still looked for, as many as 1F1B has: no
/// faster one has fewer.
static SmallVector<double> countInFlight(const pipeline::Choice &choice,
                                         int64_t stages, int64_t microBatches) {
  SmallVector<double> counts(stages * choice.chunksPerRank, 1);
  const pipeline::NamedSchedule *named = choice.named;
  if (!named)
    named = pipeline::parseChoice("1f1b")->named;
  auto schedule =
      pipeline::generate(*named, {stages, choice.chunksPerRank, microBatches});
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return counts;
  }
  pipeline::Slots slots = pipeline::countSlots(*schedule, {});
  for (auto [chunk, count] : llvm::enumerate(counts))
    count = std::max(slots.at(chunk, pipeline::SlotKind::Activation),
                     slots.at(chunk, pipeline::SlotKind::WeightActivation));
  return counts;
}

/// Bytes on a rank for each byte of a parameter that is trained: itself, its
/// gradient, and what the optimizer has of it.
static double countStateCopies(const PhaseOptions &options, int64_t parts) {
  const auto &step = options.train.step;
  auto rule = autodiff::parseUpdateRule(
      step.optimizer, llvm::to_vector_of<std::string>(step.settings));
  double moments = 2;
  if (!rule)
    llvm::consumeError(rule.takeError());
  else
    moments =
        autodiff::countStates(rule->optimizer) + (rule->averageDecay ? 1 : 0);
  int64_t stage = options.place.shardStates.stage;
  return (stage >= 3 ? 1. / parts : 1.) + (stage >= 2 ? 1. / parts : 1.) +
         moments * (stage >= 1 ? 1. / parts : 1.);
}

stages::CutForwardPassOptions
driver::getCutOptions(const PhaseOptions &options) {
  stages::CutForwardPassOptions cut = options.cut;
  Ranks ranks = countRanks(options.place.annotate.mesh);
  cut.chunks = ranks.stages;
  if (ranks.stages == 1)
    return cut;
  auto choice = pipeline::parseChoice(options.decide.schedule);
  if (!choice) {
    llvm::consumeError(choice.takeError());
    choice = pipeline::Choice();
  }
  cut.chunks = ranks.stages * choice->chunksPerRank;
  cut.trained = options.train.enabled;
  cut.recompute = options.recompute.policy;
  int64_t microBatches =
      std::max<int64_t>(options.place.annotate.microBatches, 1);
  for (double count : countInFlight(*choice, ranks.stages, microBatches))
    cut.copies.push_back(count / (microBatches * ranks.parts));
  cut.stateCopies = countStateCopies(options, ranks.parts);
  return cut;
}
