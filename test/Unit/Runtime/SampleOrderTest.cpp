// The order of training data: a permutation for every size, far from the
// identity, of its own in every epoch.

#include "Data/SampleOrder.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

using namespace accel::rt;

namespace {

std::vector<uint64_t> permutation(uint64_t count, uint64_t key) {
  std::vector<uint64_t> result;
  for (uint64_t i = 0; i < count; ++i)
    result.push_back(permuteIndex(count, key, i));
  return result;
}

TEST(SampleOrder, IsAPermutationOfEverySize) {
  for (uint64_t count : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097})
    for (uint64_t key : {0, 1, 77}) {
      std::vector<uint64_t> order = permutation(count, key);
      std::set<uint64_t> seen(order.begin(), order.end());
      EXPECT_EQ(seen.size(), count);
      EXPECT_EQ(*seen.rbegin(), count - 1);
    }
}

TEST(SampleOrder, ReachesSamplesBeyond32Bits) {
  uint64_t count = uint64_t(1) << 40;
  std::set<uint64_t> seen;
  bool far = false;
  for (uint64_t i = 0; i < 1000; ++i) {
    uint64_t at = permuteIndex(count, 3, i);
    EXPECT_LT(at, count);
    far |= at > uint64_t(1) << 33;
    seen.insert(at);
  }
  EXPECT_TRUE(far);
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(SampleOrder, Mixes) {
  // Of a random permutation about one element stays, and neighbours part.
  std::vector<uint64_t> order = permutation(4096, 5);
  int fixed = 0, neighbours = 0, late = 0;
  for (uint64_t i = 0; i + 1 < order.size(); ++i) {
    fixed += order[i] == i;
    neighbours += order[i] + 1 == order[i + 1];
    late += i < 2048 && order[i] >= 2048;
  }
  EXPECT_LT(fixed, 10);
  EXPECT_LT(neighbours, 10);
  EXPECT_NEAR(late, 1024, 100);
}

TEST(SampleOrder, GoesThroughTheFile) {
  SampleOrder order;
  order.samples = 5;
  order.batch = 3;
  order.firstStep = 10;
  auto steps = [&](SampleOrder::Kind kind) {
    order.kind = kind;
    std::vector<uint64_t> samples;
    for (uint64_t n = 0; n < 9; ++n)
      samples.push_back(order.sampleAt(10 + n / 3, n % 3));
    return samples;
  };
  EXPECT_EQ(steps(SampleOrder::InFile),
            (std::vector<uint64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3}));
  EXPECT_EQ(steps(SampleOrder::Once),
            (std::vector<uint64_t>{0, 1, 2, 3, 4, 4, 4, 4, 4}));
}

TEST(SampleOrder, LeavesOutOrKeepsTheLastBatch) {
  SampleOrder order{5, 2, 0, SampleOrder::InFile, 10};
  auto steps = [&](SampleOrder::Last last, uint64_t count) {
    order.last = last;
    std::vector<uint64_t> samples;
    for (uint64_t step = 10; step < 10 + count; ++step)
      for (uint64_t g = 0; g < order.numRows(step); ++g)
        samples.push_back(order.sampleAt(step, g));
    return samples;
  };
  using Samples = std::vector<uint64_t>;
  EXPECT_EQ(steps(SampleOrder::Drop, 4), (Samples{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(steps(SampleOrder::Keep, 4), (Samples{0, 1, 2, 3, 4, 0, 1}));
  EXPECT_EQ(order.sampleAt(12, 1), 4u); // stands in a row that does not count
  EXPECT_EQ(order.stepsOf(2), 6u);
  EXPECT_EQ(order.epochAfter(12), 0.8);
  EXPECT_EQ(order.epochAfter(13), 1);
  order.last = SampleOrder::Drop;
  EXPECT_EQ(order.stepsOf(2), 4u);
  EXPECT_EQ(order.epochAfter(13), 1.5);
  order.last = SampleOrder::Next;
  EXPECT_EQ(order.stepsOf(3), 8u); // of 15 samples
  EXPECT_EQ(order.epochAfter(12), 0.8);
  EXPECT_EQ(order.numRows(12), 2u);
}

TEST(SampleOrder, ShufflesEveryEpochWithoutItsLastBatch) {
  for (SampleOrder::Last last : {SampleOrder::Drop, SampleOrder::Keep}) {
    SampleOrder order{7, 3, 5};
    order.last = last;
    std::set<std::vector<uint64_t>> epochs;
    uint64_t steps = order.stepsOf(1);
    for (uint64_t epoch = 0; epoch < 10; ++epoch) {
      std::vector<uint64_t> samples;
      for (uint64_t step = epoch * steps; step < (epoch + 1) * steps; ++step)
        for (uint64_t g = 0; g < order.numRows(step); ++g)
          samples.push_back(order.sampleAt(step, g));
      EXPECT_EQ(samples.size(), last == SampleOrder::Keep ? 7u : 6u);
      EXPECT_EQ(std::set<uint64_t>(samples.begin(), samples.end()).size(),
                samples.size());
      epochs.insert(samples);
    }
    EXPECT_EQ(epochs.size(), 10u);
  }
}

TEST(SampleOrder, GivesEveryEpochAndSeedItsOwn) {
  SampleOrder order{10, 4, 1}, other{10, 4, 2};
  auto epoch = [](const SampleOrder &order, uint64_t epoch) {
    std::vector<uint64_t> samples;
    for (uint64_t n = epoch * 10; n < epoch * 10 + 10; ++n)
      samples.push_back(order.sampleAt(n / 4, n % 4));
    return samples;
  };
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t e = 0; e < 20; ++e) {
    std::vector<uint64_t> samples = epoch(order, e);
    orders.insert(samples);
    EXPECT_EQ(std::set<uint64_t>(samples.begin(), samples.end()).size(), 10u);
  }
  EXPECT_EQ(orders.size(), 20u);
  EXPECT_NE(epoch(order, 0), epoch(other, 0));
  // What is written here stays so: a run that is continued needs it.
  EXPECT_EQ(epoch(order, 0),
            (std::vector<uint64_t>{9, 5, 3, 2, 0, 8, 6, 4, 7, 1}));
}

} // namespace
