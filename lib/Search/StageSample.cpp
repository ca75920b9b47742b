// Groups stages by their layers, and reads what lies between two of a group.

#include "StageSample.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::search;

StageSample::StageSample(ArrayRef<parallel::RecomputeChoices::Layer> layers,
                         ArrayRef<int64_t> stageOfChunk,
                         ArrayRef<int64_t> inFlight) {
  int64_t stages = inFlight.size();
  if (stages < 2 || int64_t(stageOfChunk.size()) != stages)
    return; // several chunks are in flight together
  layersOfStage.resize(stages);
  std::map<std::vector<unsigned>, std::vector<int64_t>> groups;
  for (auto [index, layer] : llvm::enumerate(layers))
    layersOfStage[stageOfChunk[layer.chunk]].push_back(index);
  for (int64_t stage = 1; stage < stages - 1; ++stage) {
    std::vector<unsigned> likenesses;
    for (unsigned layer : layersOfStage[stage])
      likenesses.push_back(layers[layer].likeness);
    groups[likenesses].push_back(stage);
  }
  auto hasLess = [&](int64_t one, int64_t other) {
    return inFlight[one] < inFlight[other];
  };
  for (auto &[likenesses, group] : groups) {
    auto [least, most] =
        std::minmax_element(group.begin(), group.end(), hasLess);
    double span = double(inFlight[*most] - inFlight[*least]);
    for (int64_t stage : group)
      if (stage != *least && stage != *most)
        others.push_back(
            {stage, *least, *most,
             span > 0 ? double(inFlight[stage] - inFlight[*least]) / span : 0});
  }
  if (others.empty())
    return;
  llvm::sort(others, [](const Between &one, const Between &other) {
    return one.stage < other.stage;
  });
  for (int64_t stage = 0; stage < stages; ++stage)
    if (llvm::none_of(others,
                      [&](const Between &each) { return each.stage == stage; }))
      tried.push_back(stage);
}

void StageSample::complete(Trial &trial) const {
  auto find = [&](int64_t stage) -> const Trial::Stage & {
    return *llvm::find_if(trial.stages, [&](const Trial::Stage &each) {
      return each.stage == stage;
    });
  };
  auto mix = [](int64_t least, int64_t most, double way) {
    return least + std::llround(double(most - least) * way);
  };
  std::vector<Trial::Stage> more;
  for (const Between &each : others) {
    const Trial::Stage &least = find(each.least), &most = find(each.most);
    Trial::Stage &stage = more.emplace_back();
    stage.stage = each.stage;
    stage.bytes = mix(least.bytes, most.bytes, each.way);
    for (const cost::PredictedArena &one : least.arenas) {
      auto other = llvm::find_if(most.arenas, [&](const auto &arena) {
        return arena.space == one.space;
      });
      stage.arenas.push_back({each.stage, one.space,
                              other == most.arenas.end()
                                  ? one.bytes
                                  : mix(one.bytes, other->bytes, each.way)});
    }
    for (auto [place, layer] : llvm::enumerate(layersOfStage[each.stage]))
      stage.bytesOfLayer[layer] =
          mix(least.bytesOfLayer.at(layersOfStage[each.least][place]),
              most.bytesOfLayer.at(layersOfStage[each.most][place]), each.way);
  }
  llvm::append_range(trial.stages, std::move(more));
  llvm::sort(trial.stages,
             [](const Trial::Stage &one, const Trial::Stage &other) {
               return one.stage < other.stage;
             });
}
