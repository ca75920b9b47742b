// Each thing that the verifier refuses, by its message: 1F1B of two ranks and
// three micro-batches, with one thing changed.

#include "PipelineFixture.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

namespace {
constexpr TaskKind F = TaskKind::Forward, B = TaskKind::Backward,
                   I = TaskKind::BackwardInput, W = TaskKind::BackwardWeight;

/// Rank 0 runs F0[0] F0[1] B0[0] F0[2] B0[1] B0[2],
/// rank 1 F1[0] B1[0] F1[1] B1[1] F1[2] B1[2].
class PipelineVerifyTest : public ::testing::Test {
protected:
  PipelineVerifyTest() { EXPECT_EQ(check(), ""); }

  std::string check() {
    return getMessage(verify(step.schedule, edges, step.slots, step.posting));
  }
  std::vector<Task> &tasks(size_t rank) { return step.schedule.ranks[rank]; }
  std::vector<Group> &groups(size_t rank) { return step.posting.ranks[rank]; }
  void split(size_t rank, size_t position) {
    Task &task = tasks(rank)[position];
    task.kind = I;
    Task weight{W, task.chunk, task.microBatch};
    tasks(rank).insert(tasks(rank).begin() + position + 1, weight);
  }

  Synthesis step = makeNamed("1f1b", 2, 3);
  Edges edges = makeChain(2);
};
} // namespace

TEST_F(PipelineVerifyTest, Sizes) {
  step.schedule.microBatches = 0;
  EXPECT_EQ(check(), "expected 1 or more ranks, chunks and micro-batches, "
                     "found 2, 2 and 0");
  step.schedule.microBatches = 3;
  step.schedule.placement.ranks = 0;
  EXPECT_EQ(check(), "expected 1 or more ranks, chunks and micro-batches, "
                     "found 0, 2 and 3");
  step.schedule.placement = {2, {}};
  EXPECT_EQ(check(), "expected 1 or more ranks, chunks and micro-batches, "
                     "found 2, 0 and 3");
}

TEST_F(PipelineVerifyTest, Placement) {
  step.schedule.placement.rankOfChunk[1] = 2;
  EXPECT_EQ(check(), "chunk 1 expects a rank below 2, found 2");
  step.schedule.placement.rankOfChunk[1] = -1;
  EXPECT_EQ(check(), "chunk 1 expects a rank below 2, found -1");
}

TEST_F(PipelineVerifyTest, ListsOfEachRank) {
  auto tasks = step.schedule.ranks;
  step.schedule.ranks.pop_back();
  EXPECT_EQ(check(), "expected the tasks of 2 ranks, found those of 1");
  step.schedule.ranks = tasks;
  step.posting.ranks.emplace_back();
  EXPECT_EQ(check(), "expected the transfers of 2 ranks, found those of 3");
}

TEST_F(PipelineVerifyTest, SlotsOfEachChunk) {
  step.slots.at(1, SlotKind::SentGradient) = 0;
  EXPECT_EQ(check(),
            "chunk 1 expects 1 or more slots for gradients to send, found 0");
  step.slots = Slots(1);
  EXPECT_EQ(check(), "expected the slots of 2 chunks, found those of 1");
}

TEST_F(PipelineVerifyTest, Edges) {
  edges.push_back({0, 1});
  EXPECT_EQ(check(), "edge 0->1 is there twice");
  for (Edge edge : {Edge{-1, 1}, Edge{0, 2}, Edge{1, 1}, Edge{1, 0}}) {
    edges = {edge};
    EXPECT_EQ(check(), "edge " + std::to_string(edge.source) + "->" +
                           std::to_string(edge.target) +
                           " expects a later chunk of 2 behind an earlier one");
  }
}

TEST_F(PipelineVerifyTest, TasksThatThereAre) {
  Task known = tasks(1)[0];
  for (Task task :
       {Task{F, 2, 0}, Task{F, -1, 0}, Task{F, 1, 3}, Task{F, 1, -1}}) {
    tasks(1)[0] = task;
    EXPECT_EQ(check(), "rank 1, position 0: " + toString(task) +
                           " is of none of 2 chunks and 3 micro-batches");
  }
  tasks(1)[0] = known;
  tasks(0)[1] = {F, 1, 1};
  EXPECT_EQ(check(),
            "rank 0, position 1: F1[1] expects rank 1, where its chunk "
            "is");
}

TEST_F(PipelineVerifyTest, EachTaskOnce) {
  tasks(0).push_back({F, 0, 1});
  EXPECT_EQ(check(), "rank 0, position 6: F0[1] has run before");
  tasks(0).back() = {I, 0, 1};
  EXPECT_EQ(check(), "rank 0, position 6: I0[1] expects a backward that is "
                     "whole or in parts, found B0[1] before it");
  tasks(0).pop_back();
  split(0, 5);
  tasks(0).push_back({B, 0, 2});
  EXPECT_EQ(check(), "rank 0, position 7: B0[2] expects a backward that is "
                     "whole or in parts, found I0[2] before it");
}

TEST_F(PipelineVerifyTest, EachTaskAfterWhatItNeeds) {
  std::swap(tasks(1)[2], tasks(1)[3]);
  EXPECT_EQ(check(), "rank 1, position 2: B1[1] expects F1[1] before it, found "
                     "it nowhere before");
  std::swap(tasks(1)[2], tasks(1)[3]);
  split(1, 3);
  EXPECT_EQ(check(), "");
  std::swap(tasks(1)[3], tasks(1)[4]);
  EXPECT_EQ(check(), "rank 1, position 3: W1[1] expects I1[1] before it, found "
                     "it nowhere before");
}

TEST_F(PipelineVerifyTest, NoTaskMissing) {
  Task last = tasks(1).back();
  tasks(1).pop_back();
  EXPECT_EQ(check(), "rank 1 expects B1[2] among 5 tasks, found it nowhere");
  tasks(1).pop_back();
  EXPECT_EQ(check(), "rank 1 expects F1[2] among 4 tasks, found it nowhere");
  tasks(1).push_back({F, 1, 2});
  tasks(1).push_back({I, last.chunk, last.microBatch});
  EXPECT_EQ(check(), "rank 1 expects W1[2] among 6 tasks, found it nowhere");
}

TEST_F(PipelineVerifyTest, SlotsThatAreKept) {
  step.slots.at(0, SlotKind::Activation) = 1;
  EXPECT_EQ(check(), "rank 0, position 1: F0[1] expects slot 0 of 1 for "
                     "activations free, found micro-batch 0 in it");
  step.slots.at(0, SlotKind::Activation) = 2;
  step.slots.at(0, SlotKind::WeightActivation) = 1;
  EXPECT_EQ(check(), "rank 0, position 1: F0[1] expects slot 0 of 1 for "
                     "activations for weights free, found micro-batch 0 in it");
  // I0[0] F0[2] I0[1] W0[0] …: two gradients wait for their weights.
  step.slots.at(0, SlotKind::WeightActivation) = 3;
  split(0, 4);
  split(0, 2);
  Task weight = tasks(0)[3];
  tasks(0).erase(tasks(0).begin() + 3);
  tasks(0).insert(tasks(0).begin() + 5, weight);
  EXPECT_EQ(check(), "rank 0, position 4: I0[1] expects slot 0 of 1 for "
                     "gradients for weights free, found micro-batch 0 in it");
  step.slots.at(0, SlotKind::WeightGradient) = 2;
  EXPECT_EQ(check(), "");
}

TEST(PipelineVerifyRanksTest, SlotsThatArePassedOn) {
  Schedule schedule;
  schedule.placement = Placement::interleaved(1, 2);
  schedule.microBatches = 2;
  schedule.ranks = {{{F, 0, 0},
                     {F, 0, 1},
                     {F, 1, 0},
                     {F, 1, 1},
                     {B, 1, 0},
                     {B, 1, 1},
                     {B, 0, 0},
                     {B, 0, 1}}};
  Edges edges = makeChain(2);
  Slots slots = countSlots(schedule, edges);
  auto check = [&] {
    return getMessage(verify(schedule, edges, slots, Posting{{{}}}));
  };
  EXPECT_EQ(check(), "");
  slots.at(0, SlotKind::PassedValue) = 1;
  EXPECT_EQ(check(), "rank 0, position 1: F0[1] expects slot 0 of 1 for values "
                     "passed on free, found micro-batch 0 in it");
  slots.at(0, SlotKind::PassedValue) = 2;
  slots.at(1, SlotKind::PassedGradient) = 1;
  EXPECT_EQ(check(), "rank 0, position 5: B1[1] expects slot 0 of 1 for "
                     "gradients passed on free, found micro-batch 0 in it");
}

TEST_F(PipelineVerifyTest, TransfersThatThereAre) {
  groups(0)[0].push_back({0, false, 3});
  EXPECT_EQ(check(),
            "rank 0, group 0: no task of another rank has the transfer "
            "that is posted");
  groups(0)[0].pop_back();
  groups(0).insert(groups(0).begin(), Group());
  EXPECT_EQ(check(), "rank 0, group 0: expected a transfer, found none");
  groups(0).erase(groups(0).begin());
  groups(0).back().push_back(groups(0).front().front());
  EXPECT_EQ(check(), "rank 0, group " + std::to_string(groups(0).size() - 1) +
                         ": value 0->1[0] is posted twice");
  groups(0).back().pop_back();
  Group sent = groups(0).front();
  groups(0).erase(groups(0).begin());
  EXPECT_EQ(check(),
            "rank 0 expects to send value 0->1[0], found it in no group");
  groups(0).insert(groups(0).begin(), sent);
  groups(1).erase(groups(1).begin());
  EXPECT_EQ(check(),
            "rank 1 expects to receive value 0->1[0], found it in no group");
}

TEST(PipelineVerifyRanksTest, TransfersWhereTheirChunksAre) {
  Synthesis step = makeNamed("gpipe", 3, 1);
  step.posting.ranks[2].push_back({Transfer{0, false, 0}});
  EXPECT_EQ(
      getMessage(verify(step.schedule, makeChain(3), step.slots, step.posting)),
      "rank 2, group 2: value 0->1[0] expects rank 0 or 1");
}

TEST_F(PipelineVerifyTest, MessagesInOneOrder) {
  // Both values in one group: by their names they would find each other.
  for (size_t rank : {0, 1}) {
    std::vector<Group> &list = groups(rank);
    ASSERT_EQ(toString(list[0][0], edges), "value 0->1[0]");
    ASSERT_EQ(toString(list[1][0], edges), "value 0->1[1]");
  }
  step.slots = countSlots(step.schedule, edges, 3);
  for (size_t rank : {0, 1}) {
    groups(rank)[0].push_back(groups(rank)[1][0]);
    groups(rank)[1].erase(groups(rank)[1].begin());
    if (groups(rank)[1].empty())
      groups(rank).erase(groups(rank).begin() + 1);
  }
  std::swap(groups(1)[0][0], groups(1)[0][1]);
  EXPECT_EQ(check(), "message 0 from rank 0 to rank 1: sent is value 0->1[0], "
                     "expected is value 0->1[1]");
}

// What a text book's 1F1B does that sends before it receives: in the middle
// each rank waits for the other to receive.
TEST_F(PipelineVerifyTest, ItEnds) {
  for (size_t rank : {0, 1}) {
    std::vector<Group> single;
    for (const Group &group : groups(rank))
      for (bool isSent : {true, false})
        for (const Transfer &transfer : group)
          if ((transfer.gradient == (rank == 1)) == isSent)
            single.push_back({transfer});
    groups(rank) = single;
  }
  EXPECT_EQ(
      check(),
      "the step does not end: (rank 1, group 4: receive value 0->1[2]) "
      "waits for (the end of rank 1, group 3: send gradient 1->0[1]) waits "
      "for (rank 0, group 4: receive gradient 1->0[1]) waits for (the end "
      "of rank 0, group 3: send value 0->1[2]) waits for (rank 1, group 4: "
      "receive value 0->1[2])");
}
