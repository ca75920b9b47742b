// Which stages are tried, and what that says of the others.

#include "lib/Search/StageSample.h"

#include "gtest/gtest.h"

using namespace accel;
using namespace accel::search;
using Layer = parallel::RecomputeChoices::Layer;

/// Two layers in each chunk, alike but in the chunks of `odd`.
static std::vector<Layer> makeLayers(int64_t chunks, int64_t odd) {
  std::vector<Layer> layers;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int i = 0; i < 2; ++i)
      layers.push_back(
          {"layer", chunk, unsigned(chunk), chunk == odd ? 1u : 0u, 0});
  return layers;
}

static const std::vector<int64_t> kChunks = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(StageSample, TriesTheEndsAndTheEndsOfAlikeStages) {
  std::vector<int64_t> inFlight = {8, 7, 6, 5, 4, 3, 2, 1};
  StageSample sample(makeLayers(8, 4), kChunks, inFlight);
  EXPECT_EQ(sample.getTried(), llvm::ArrayRef<int64_t>({0, 1, 4, 6, 7}));
}

TEST(StageSample, ReadsStagesBetweenByWhatIsInFlight) {
  std::vector<int64_t> inFlight = {8, 7, 6, 5, 4, 3, 2, 1};
  StageSample sample(makeLayers(8, -1), kChunks, inFlight);
  ASSERT_EQ(sample.getTried(), llvm::ArrayRef<int64_t>({0, 1, 6, 7}));
  Trial trial;
  for (int64_t number : sample.getTried()) {
    Trial::Stage &stage = trial.stages.emplace_back();
    stage.stage = number;
    stage.arenas = {{number, "device", 1000 + 10 * inFlight[number]},
                    {number, "host", 5}};
    stage.bytes = 1005 + 10 * inFlight[number];
    for (unsigned layer = 0; layer < 16; ++layer)
      stage.bytesOfLayer[layer] = 0;
    for (unsigned i = 0; i < 2; ++i)
      stage.bytesOfLayer[2 * number + i] = (3 + i) * inFlight[number];
  }
  sample.complete(trial);
  ASSERT_EQ(trial.stages.size(), 8u);
  for (int64_t number = 0; number < 8; ++number) {
    const Trial::Stage &stage = trial.stages[number];
    EXPECT_EQ(stage.stage, number);
    EXPECT_EQ(stage.getBytes(), 1005 + 10 * inFlight[number]);
    EXPECT_EQ(stage.arenas.front().bytes, 1000 + 10 * inFlight[number]);
    EXPECT_EQ(stage.arenas.back().bytes, 5);
    for (unsigned i = 0; i < 2; ++i)
      EXPECT_EQ(stage.bytesOfLayer.at(2 * number + i),
                (3 + i) * inFlight[number]);
  }
}

TEST(StageSample, TriesAllWhereChunksOrWhatIsInFlightSayNothing) {
  EXPECT_TRUE(StageSample(makeLayers(8, -1), kChunks, {}).getTried().empty());
  std::vector<int64_t> twice = {0, 1, 2, 3, 3, 2, 1, 0};
  std::vector<int64_t> inFlight = {4, 3, 2, 1};
  EXPECT_TRUE(
      StageSample(makeLayers(8, -1), twice, inFlight).getTried().empty());
  // Two of a kind are both tried.
  std::vector<int64_t> four = {0, 1, 2, 3};
  EXPECT_TRUE(
      StageSample(makeLayers(4, -1), four, inFlight).getTried().empty());
}
