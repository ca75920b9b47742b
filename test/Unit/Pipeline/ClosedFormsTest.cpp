// Simulated bubbles and activations against the closed forms that their authors
// published, under their assumptions: all chunks alike, F = I = W = 1 unless
// said otherwise, a whole backward B = I + W, transfers in no time, no barrier.

#include "PipelineFixture.h"
#include "gtest/gtest.h"

#include <map>

using namespace accel::pipeline;

namespace {
struct Size {
  int64_t p, m;
};

std::vector<Size> listSizes(int64_t ranks) {
  std::vector<Size> sizes;
  for (int64_t p = 1; p <= ranks; ++p)
    for (int64_t m = 1; m <= 4 * p + 3; ++m)
      sizes.push_back({p, m});
  return sizes;
}

std::string describe(Size size) {
  return "p " + std::to_string(size.p) + ", M " + std::to_string(size.m);
}
} // namespace

// Huang et al. 2019, section 2.3: the bubble is (p - 1) / (M + p - 1) of the
// step; all M micro-batches are kept.
TEST(ClosedFormsTest, GPipe) {
  for (Size size : listSizes(6)) {
    Simulation got = makeNamed("gpipe", size.p, size.m).simulation;
    EXPECT_NEAR(got.getBubbleFraction(),
                double(size.p - 1) / (size.m + size.p - 1), 1e-12)
        << describe(size);
    EXPECT_NEAR(got.getLongestIdle(), (size.p - 1) * 3, 1e-9) << describe(size);
    for (int64_t peak : got.peakActivations)
      EXPECT_EQ(peak, size.m) << describe(size);
  }
}

// Narayanan et al. 2021 (Megatron), section 2.2: the bubble is (p - 1)(F + B),
// as GPipe's; rank r keeps p - r micro-batches.
TEST(ClosedFormsTest, OneForwardOneBackward) {
  for (Size size : listSizes(6)) {
    Simulation got = makeNamed("1f1b", size.p, size.m).simulation;
    EXPECT_NEAR(got.getLongestIdle(), (size.p - 1) * 3, 1e-9) << describe(size);
    for (int64_t rank = 0; rank < size.p; ++rank)
      EXPECT_EQ(got.peakActivations[rank], std::min(size.p - rank, size.m))
          << describe(size);
  }
}

// Zhuang et al. 2022: as long as 1F1B; rank r keeps 2 (p - r) - 1.
TEST(ClosedFormsTest, EagerOneForwardOneBackward) {
  for (Size size : listSizes(6)) {
    Simulation got = makeNamed("eager-1f1b", size.p, size.m).simulation;
    EXPECT_NEAR(got.seconds, (size.m + size.p - 1) * 3, 1e-9) << describe(size);
    for (int64_t rank = 0; rank < size.p; ++rank)
      EXPECT_EQ(got.peakActivations[rank],
                std::min(2 * (size.p - rank) - 1, size.m))
          << describe(size);
  }
}

// And what it is for: a transfer up to as long as a forward is hidden, where
// 1F1B waits for it in every turn.
TEST(ClosedFormsTest, EagerHidesTransfers) {
  Costs costs = Costs::makeEven(4);
  costs.secondsPerTransfer = 0.5;
  double middle[2];
  for (bool eager : {false, true}) {
    const char *name = eager ? "eager-1f1b" : "1f1b";
    middle[eager] = makeNamed(name, 4, 40, costs).simulation.seconds -
                    makeNamed(name, 4, 20, costs).simulation.seconds;
  }
  EXPECT_NEAR(middle[1], 20 * 3, 1e-9);
  EXPECT_GT(middle[0], 20 * 3 + 5);
}

// Narayanan et al. 2021, section 2.2: (p - 1)(F + B) / V, where F and B are of
// all V chunks of a rank; M a multiple of p. Rank 0 keeps
// V p (1 + (p - 1) / (p V)) chunks (Korthikanti et al. 2022, arXiv:2205.05198).
TEST(ClosedFormsTest, Interleaved) {
  for (int64_t v : {2, 3, 4})
    for (int64_t p : {1, 2, 3, 4, 5})
      for (int64_t rounds : {1, 2, 4}) {
        Size size{p, p * rounds};
        Simulation got =
            makeNamed("interleaved:" + std::to_string(v), p, size.m).simulation;
        EXPECT_NEAR(got.getLongestIdle(), (p - 1) * 3, 1e-9)
            << describe(size) << ", V " << v;
        EXPECT_EQ(got.peakActivations[0], std::min(v * p + p - 1, v * size.m))
            << describe(size) << ", V " << v;
      }
}

// Qi et al. 2023, their table of bubbles and memory: (p - 1)(F + I - W), and
// the p micro-batches of 1F1B.
TEST(ClosedFormsTest, ZBH1) {
  for (Size size : listSizes(6)) {
    Simulation got = makeNamed("zb-h1", size.p, size.m).simulation;
    if (size.m >= size.p)
      EXPECT_NEAR(got.getLongestIdle(), size.p - 1, 1e-9) << describe(size);
    for (int64_t peak : got.peakActivations)
      EXPECT_EQ(peak, std::min(size.p, size.m)) << describe(size);
  }
}

// The same table: (p - 1)(F + I - 2 W), here nothing, and 2 p - 1
// micro-batches.
TEST(ClosedFormsTest, ZBH2) {
  for (Size size : listSizes(6)) {
    Simulation got = makeNamed("zb-h2", size.p, size.m).simulation;
    if (size.m >= 2 * size.p - 1)
      EXPECT_NEAR(got.getLongestIdle(), 0, 1e-9) << describe(size);
    for (int64_t peak : got.peakActivations)
      EXPECT_EQ(peak, std::min(2 * size.p - 1, size.m)) << describe(size);
  }
}

// Section 6 there: no bubble, and the p micro-batches of 1F1B, which are 2 p
// chunks.
TEST(ClosedFormsTest, ZBV) {
  for (Size size : listSizes(6)) {
    if (size.m < 2 * size.p - 1)
      continue;
    Simulation got = makeNamed("zbv", size.p, size.m).simulation;
    EXPECT_NEAR(got.getLongestIdle(), 0, 1e-9) << describe(size);
    for (int64_t peak : got.peakActivations)
      EXPECT_EQ(peak, 2 * size.p) << describe(size);
  }
}

/// The longest idle time of a rank if a forward and the whole backward of the
/// other chunk behind it are one task, which begins when both could and lasts
/// as long as both. On the last rank the first such pair stays apart, as there.
static int64_t playPairs(const Schedule &schedule) {
  using Key = std::tuple<bool, int64_t, int64_t>; // forward, chunk, micro-batch
  int64_t chunks = schedule.placement.countChunks();
  std::map<Key, int64_t> ends;
  std::vector<size_t> next(schedule.ranks.size());
  std::vector<int64_t> begins(next.size(), -1), free(next.size()),
      busy(next.size()), pairs(next.size());
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t rank = 0; rank < next.size(); ++rank) {
      const std::vector<Task> &tasks = schedule.ranks[rank];
      if (next[rank] == tasks.size())
        continue;
      size_t end = next[rank] + 1;
      bool isPair = tasks[end - 1].kind == TaskKind::Forward &&
                    end < tasks.size() &&
                    tasks[end].kind == TaskKind::Backward &&
                    tasks[end].chunk != tasks[end - 1].chunk;
      if (isPair && (pairs[rank] > 0 || rank + 1 < next.size()))
        ++end;
      int64_t begin = free[rank], seconds = 0;
      bool isReady = true;
      for (size_t position = next[rank]; position < end; ++position) {
        const Task &task = tasks[position];
        bool forward = task.kind == TaskKind::Forward;
        seconds += task.kind == TaskKind::Backward ? 2 : 1;
        int64_t other = task.chunk + (forward ? -1 : 1);
        if (task.kind == TaskKind::BackwardWeight || other < 0 ||
            other == chunks)
          continue;
        auto needed = ends.find({forward, other, task.microBatch});
        isReady &= needed != ends.end();
        begin = std::max(begin, isReady ? needed->second : 0);
      }
      if (!isReady)
        continue;
      pairs[rank] += isPair;
      for (; next[rank] < end; ++next[rank]) {
        const Task &task = tasks[next[rank]];
        if (task.kind != TaskKind::BackwardWeight)
          ends[{task.kind == TaskKind::Forward, task.chunk, task.microBatch}] =
              begin + seconds;
      }
      if (begins[rank] < 0)
        begins[rank] = begin;
      free[rank] = begin + seconds;
      busy[rank] += seconds;
      moves = true;
    }
  }
  int64_t longest = 0;
  for (size_t rank = 0; rank < next.size(); ++rank)
    longest = std::max(longest, free[rank] - begins[rank] - busy[rank]);
  return longest;
}

// https://github.com/deepseek-ai/DualPipe, its table, with P = 2 p stages:
// (P / 2 - 1)(F&B + B - 3 W), and P + 1 chunks, where F&B is a forward and a
// backward at once, here F + B. Run one after the other, what they make leaves
// earlier, and p - 1 is left: our figure, nobody has published one.
TEST(ClosedFormsTest, DualPipeV) {
  for (Size size : listSizes(6)) {
    if (size.m < 2 * size.p)
      continue;
    Synthesis step = makeNamed("dualpipev", size.p, size.m);
    EXPECT_EQ(playPairs(step.schedule), (size.p - 1) * (3 + 2 - 3))
        << describe(size);
    EXPECT_NEAR(step.simulation.getLongestIdle(), size.p - 1, 1e-9)
        << describe(size);
    for (int64_t peak : step.simulation.peakActivations)
      EXPECT_EQ(peak, 2 * size.p + 1) << describe(size);
  }
}
