// What list scheduling promises: limits of slots, and the patience to wait for
// something better.

#include "PipelineFixture.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

static std::string printList(const std::vector<Task> &tasks) {
  std::string text;
  for (const Task &task : tasks)
    text += (text.empty() ? "" : " ") + toString(task);
  return text;
}

TEST(ListScheduleTest, KeepsToLimitsOfChunks) {
  Edges edges = makeChain(6);
  for (auto first : {Policy::First::Backward, Policy::First::Forward,
                     Policy::First::Alternate}) {
    std::vector<int64_t> limits = {5, 1, 3, 2, 4, 1};
    Policy policy;
    policy.first = first;
    Schedule schedule = makeListSchedule(Placement::interleaved(3, 2), 9, edges,
                                         Costs::makeEven(6), {}, limits, policy)
                            .schedule;
    Slots slots = countSlots(schedule, edges);
    for (int64_t chunk = 0; chunk < 6; ++chunk)
      EXPECT_LE(slots.at(chunk, SlotKind::WeightActivation), limits[chunk]);
  }
}

// Rank 0 could begin a long W0[0] when what I0[1] needs is half a second away.
TEST(ListScheduleTest, WaitsForWhatIsBetter) {
  Costs costs = Costs::makeEven(2);
  costs.chunks[0] = {1, 5.5, 1.5, 4, 0, 0};
  Policy policy;
  auto order = [&](double patience) {
    policy.patience = patience;
    return printList(makeListSchedule(Placement::linear(2), 2, makeChain(2),
                                      costs, {}, {2, 2}, policy)
                         .schedule.ranks[0]);
  };
  EXPECT_EQ(order(0), "F0[0] F0[1] I0[0] W0[0] I0[1] W0[1]");
  EXPECT_EQ(order(0.1), order(0));
  EXPECT_EQ(order(0.2), "F0[0] F0[1] I0[0] I0[1] W0[0] W0[1]");
}

// Deep first a rank turns the first micro-batch round before it takes the next.
TEST(ListScheduleTest, GoesDeepOrWide) {
  Policy policy;
  policy.first = Policy::First::Forward;
  policy.isSplit = false;
  for (bool isDeepFirst : {true, false}) {
    policy.isDeepFirst = isDeepFirst;
    EXPECT_EQ(printList(makeListSchedule(Placement::interleaved(1, 2), 2,
                                         makeChain(2), Costs::makeEven(2), {},
                                         {2, 2}, policy)
                            .schedule.ranks[0]),
              isDeepFirst ? "F0[0] F1[0] F0[1] F1[1] B1[0] B1[1] B0[0] B0[1]"
                          : "F0[0] F1[0] F0[1] F1[1] B1[0] B0[0] B1[1] B0[1]");
  }
}
