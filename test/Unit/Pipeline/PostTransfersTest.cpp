// Where sends and receives stand.

#include "lib/Pipeline/PostTransfers.h"
#include "PipelineFixture.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

static std::string printPosted(const Synthesis &step,
                               llvm::ArrayRef<Edge> edges, size_t rank) {
  std::string text;
  for (const Group &group : step.posting.ranks[rank]) {
    text += text.empty() ? "{" : " {";
    for (const Transfer &transfer : group)
      text +=
          (&transfer == group.begin() ? "" : ", ") + toString(transfer, edges);
    text += "}";
  }
  return text;
}

// In the middle of 1F1B a value goes one way while a gradient comes the other.
TEST(PostTransfersTest, GroupsWhatGoesAtOnce) {
  Synthesis step = makeNamed("1f1b", 2, 3, Costs::makeEven(2, 2, 1, 1));
  Edges edges = makeChain(2);
  std::string expected = "{value 0->1[0]} {value 0->1[1]} {gradient 1->0[0]} "
                         "{value 0->1[2], gradient 1->0[1]} {gradient 1->0[2]}";
  EXPECT_EQ(printPosted(step, edges, 0), expected);
  EXPECT_EQ(printPosted(step, edges, 1), expected);
}

// Tenths have no exact sums: what begins at once does so to rounding.
TEST(PostTransfersTest, GroupsToRounding) {
  for (llvm::StringRef name : {"1f1b", "zb-h1", "eager-1f1b"})
    EXPECT_EQ(
        makeNamed(name, 4, 12, Costs::makeEven(4, 0.1, 0.2, 0.3)).posting.ranks,
        makeNamed(name, 4, 12, Costs::makeEven(4, 1, 2, 3)).posting.ranks)
        << name.str();
}

// Where nothing takes any time all begins at once, and yet follows what it
// needs.
TEST(PostTransfersTest, TasksOfNoTime) {
  for (llvm::StringRef name : {"gpipe", "1f1b", "zb-h2"}) {
    Synthesis step = makeNamed(name, 3, 4, Costs::makeEven(3, 0, 0, 0));
    EXPECT_EQ(getMessage(verify(step.schedule, makeChain(3), step.slots,
                                step.posting)),
              "");
  }
}

// Two chunks of each of two ranks: both neighbours are the same rank, and both
// ways have messages that follow and messages that answer.
TEST(PostTransfersTest, RingsOfTwo) {
  Synthesis step = makeNamed("interleaved:2", 2, 2);
  EXPECT_EQ(printPosted(step, makeChain(4), 0),
            printPosted(step, makeChain(4), 1));
}

// A skip goes straight to its rank: chunk 0's value to chunk 2 passes rank 1
// by.
TEST(PostTransfersTest, SkipsGoStraight) {
  Schedule schedule = cantFail(generate(getNamedSchedules()[1], {3, 1, 2}));
  Edges edges = makeChain(3);
  edges.push_back({0, 2});
  Problem problem{3, 2, edges, Costs::makeEven(3), {}};
  Synthesis step = evaluate("1f1b", std::move(schedule), problem);
  for (size_t rank = 0; rank < 3; ++rank)
    for (const Group &group : step.posting.ranks[rank])
      for (const Transfer &transfer : group)
        EXPECT_TRUE(transfer.edge != 2 || rank != 1);
  EXPECT_EQ(getMessage(verify(step.schedule, edges, step.slots, step.posting)),
            "");
}

TEST(PostTransfersTest, WithinARankNothingIsSent) {
  Synthesis step = makeNamed("zbv", 1, 3);
  EXPECT_TRUE(step.posting.ranks[0].empty());
  step = makeNamed("zbv", 2, 1);
  // Chunks 1 and 2 are both on rank 1.
  for (const Group &group : step.posting.ranks[1])
    for (const Transfer &transfer : group)
      EXPECT_NE(transfer.edge, 1u);
}

// With one slot chunk 1 wants micro-batch 1 first, and chunk 0 makes 0 first.
TEST(PostTransfersTest, RefusesSlotsThatAreTooFew) {
  constexpr TaskKind F = TaskKind::Forward, B = TaskKind::Backward;
  Schedule schedule;
  schedule.placement = Placement::linear(2);
  schedule.microBatches = 2;
  schedule.ranks = {{{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}},
                    {{F, 1, 1}, {F, 1, 0}, {B, 1, 0}, {B, 1, 1}}};
  Edges edges = makeChain(2);
  llvm::Expected<Posting> posting = postTransfers(
      schedule, edges, countSlots(schedule, edges, 1), Costs::makeEven(2));
  ASSERT_FALSE(bool(posting));
  EXPECT_EQ(getMessage(posting.takeError()),
            "no order of transfers ends with these slots: (rank 1, position 1: "
            "F1[0]) waits for (rank 1, position 0: F1[1]) waits for (value "
            "0->1[1]) waits for (rank 1, position 1: F1[0])");
  EXPECT_TRUE(bool(postTransfers(
      schedule, edges, countSlots(schedule, edges, 2), Costs::makeEven(2))));
}
