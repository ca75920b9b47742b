// Blends: what is one, and which corpus gives which sample.

#include "Data/Blend.h"

#include <gmock/gmock.h>

using namespace accel::rt;
using ::testing::HasSubstr;

namespace {

std::string blendError(const std::string &text) {
  std::vector<BlendPart> parts;
  Status status = readBlend(text, parts);
  return status.ok() ? "" : status.message();
}

TEST(Blend, HasWeightsThatAddUpToOne) {
  std::vector<BlendPart> parts;
  ASSERT_TRUE(readBlend("3 a/b  1\tc", parts).ok());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].weight, 0.75);
  EXPECT_EQ(parts[0].path, "a/b");
  EXPECT_EQ(parts[1].weight, 0.25);
  EXPECT_EQ(parts[1].path, "c");
  for (const char *file : {"", "a", "my data.bin", "x=1 y=2"}) {
    ASSERT_TRUE(readBlend(file, parts).ok());
    EXPECT_TRUE(parts.empty()) << file;
  }
}

TEST(Blend, RefusesWhatIsNoWeight) {
  EXPECT_THAT(blendError("0.3 a 0.7"), HasSubstr("found no path behind '0.7'"));
  EXPECT_THAT(blendError("0.3 a b c"), HasSubstr("found 'b' as a weight"));
  EXPECT_THAT(blendError("0 a 1 b"), HasSubstr("found '0' as a weight"));
  EXPECT_THAT(blendError("-1 a"), HasSubstr("found '-1' as a weight"));
  EXPECT_THAT(blendError("inf a"), HasSubstr("found 'inf' as a weight"));
  EXPECT_THAT(blendError("nan a"), HasSubstr("found 'nan' as a weight"));
}

/// What a loop written in Python after Megatron-LM's build_blending_indices
/// gives for these weights and 12 samples.
TEST(Blend, ChoosesAsMegatronDoes) {
  const struct {
    std::vector<double> weights;
    std::vector<size_t> parts;
  } cases[] = {
      {{0.3, 0.7}, {1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1}},
      {{0.5, 0.5}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
      {{0.2, 0.5, 0.3}, {1, 2, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1}},
  };
  for (const auto &each : cases) {
    BlendOrder order(each.weights), again(each.weights);
    std::vector<uint64_t> given(each.weights.size());
    for (size_t i = 0; i < each.parts.size(); ++i) {
      BlendOrder::Place place = order.placeOf(i);
      EXPECT_EQ(place.part, each.parts[i]) << i;
      EXPECT_EQ(place.sample, given[place.part]++);
      // In whichever order samples are asked for.
      for (uint64_t from : {uint64_t(7), uint64_t(i)})
        (void)again.placeOf(from);
      BlendOrder::Place same = again.placeOf(i);
      EXPECT_EQ(same.part, place.part);
      EXPECT_EQ(same.sample, place.sample);
    }
  }
}

} // namespace
