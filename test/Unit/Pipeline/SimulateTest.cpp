// Times and bytes of a step that is small enough to be counted by hand.

#include "PipelineFixture.h"
#include "lib/Pipeline/PostTransfers.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

TEST(SimulateTest, TransfersTakeTime) {
  Costs costs = Costs::makeEven(2);
  costs.secondsPerTransfer = 0.25;
  costs.secondsPerByte = 0.5;
  costs.edgeBytes = {3};
  // F0, 1.75 to rank 1, F1 and B1, 1.75 back, B0.
  Simulation got = makeNamed("gpipe", 2, 1, costs).simulation;
  EXPECT_DOUBLE_EQ(got.seconds, 1 + 1.75 + 3 + 1.75 + 2);
  EXPECT_DOUBLE_EQ(got.tasks[1][0].begin, 2.75);
  EXPECT_DOUBLE_EQ(got.tasks[1][1].end, 5.75);
  EXPECT_DOUBLE_EQ(got.busySeconds[0], 3);
  EXPECT_DOUBLE_EQ(got.getBubbleFraction(), 1 - 6 / (2 * 9.5));
  EXPECT_DOUBLE_EQ(got.getLongestIdle(), 6.5);
}

TEST(SimulateTest, UnequalChunks) {
  Costs costs = Costs::makeEven(2);
  costs.chunks[1] = {2, 5, 2, 3, 7, 11};
  Simulation got = makeNamed("1f1b", 2, 2, costs).simulation;
  // Rank 1 is the slow one and never waits but for the first value.
  EXPECT_DOUBLE_EQ(got.tasks[1].back().end, 1 + 2 * 7);
  EXPECT_DOUBLE_EQ(got.seconds, 1 + 2 * 7 + 2);
  EXPECT_EQ(got.activationBytes, (std::vector<int64_t>{2, 18}));
}

TEST(SimulateTest, GradientsLeaveWhenTheyAreMade) {
  Costs costs = Costs::makeEven(2);
  costs.chunks[1].backwardToGradient = 0.5;
  // F0, F1, then B0 half a unit into B1, whether transfers are listed or not.
  Synthesis step = makeNamed("gpipe", 2, 1, costs);
  EXPECT_DOUBLE_EQ(step.simulation.tasks[0][1].begin, 2.5);
  EXPECT_DOUBLE_EQ(step.simulation.tasks[1][1].end, 4);
  EXPECT_DOUBLE_EQ(step.simulation.seconds, 4.5);
  llvm::Expected<Simulation> free =
      simulate(step.schedule, makeChain(2), step.slots, nullptr, costs);
  ASSERT_TRUE(bool(free));
  EXPECT_DOUBLE_EQ(free->seconds, 4.5);
}

// Without its lists a step is never slower, and here as fast.
TEST(SimulateTest, PostingCostsNothingWhereAllAreAlike) {
  for (llvm::StringRef name : {"gpipe", "1f1b", "eager-1f1b", "interleaved:2",
                               "zb-h1", "zb-h2", "zbv", "dualpipev"}) {
    Synthesis step = makeNamed(name, 4, 8);
    int64_t chunks = step.schedule.placement.countChunks();
    llvm::Expected<Simulation> free =
        simulate(step.schedule, makeChain(chunks), step.slots, nullptr,
                 Costs::makeEven(chunks));
    ASSERT_TRUE(bool(free));
    EXPECT_DOUBLE_EQ(free->seconds, step.simulation.seconds) << name.str();
  }
}

TEST(SimulateTest, SaysWhatWaitsForWhat) {
  Synthesis step = makeNamed("1f1b", 2, 1);
  std::swap(step.schedule.ranks[1][0], step.schedule.ranks[1][1]);
  llvm::Expected<Simulation> got = simulate(
      step.schedule, makeChain(2), step.slots, nullptr, Costs::makeEven(2));
  ASSERT_FALSE(bool(got));
  EXPECT_EQ(
      getMessage(got.takeError()),
      "the step does not end: (rank 1, position 0: B1[0]) waits for (rank "
      "1, position 1: F1[0]) waits for (rank 1, position 0: B1[0])");
}

TEST(SimulateTest, WeightsWaitForInputs) {
  Synthesis step = makeNamed("zb-h1", 1, 1);
  std::swap(step.schedule.ranks[0][1], step.schedule.ranks[0][2]);
  llvm::Expected<Simulation> got =
      simulate(step.schedule, {}, step.slots, nullptr, Costs::makeEven(1));
  ASSERT_FALSE(bool(got));
  EXPECT_EQ(
      getMessage(got.takeError()),
      "the step does not end: (rank 0, position 2: I0[0]) waits for (rank "
      "0, position 1: W0[0]) waits for (rank 0, position 2: I0[0])");
}

// With one slot the next forward begins when what is in it has been sent, with
// two the one after it.
TEST(SimulateTest, ForwardsWaitForSends) {
  Costs costs = Costs::makeEven(2);
  costs.secondsPerTransfer = 4;
  Schedule schedule = cantFail(generate(getNamedSchedules()[0], {2, 1, 3}));
  Edges edges = makeChain(2);
  for (int64_t slots : {1, 2}) {
    Slots counts = countSlots(schedule, edges, slots);
    Posting posting = cantFail(postTransfers(schedule, edges, counts, costs));
    Simulation got =
        cantFail(simulate(schedule, edges, counts, &posting, costs));
    EXPECT_DOUBLE_EQ(got.tasks[0][1].begin, slots == 1 ? 5 : 1);
    EXPECT_DOUBLE_EQ(got.tasks[0][2].begin, slots == 1 ? 10 : 5);
  }
}
