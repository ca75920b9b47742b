// Ten thousand random schedules, as they are and with one thing spoilt: the
// verifier accepts those that an executor with synchronous sends runs to their
// end, and no other.

#include "Executor.h"
#include "PipelineFixture.h"
#include "lib/Pipeline/PostTransfers.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

namespace {

struct Step {
  Schedule schedule;
  Edges edges;
  Slots slots{0};
  Posting posting;

  std::string verify() const {
    return getMessage(accel::pipeline::verify(schedule, edges, slots, posting));
  }
  std::string run(std::mt19937 &random) const {
    return Executor(schedule, edges, slots, posting).run(random);
  }
};

/// Tasks in any order that keeps what they need before them, on chunks
/// anywhere, with skip connections.
Step makeRandomStep(std::mt19937 &random) {
  Step step;
  Placement &placement = step.schedule.placement;
  placement.ranks = 1 + random() % 4;
  int64_t chunks = placement.ranks + random() % (placement.ranks + 3);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    placement.rankOfChunk.push_back(
        chunk < placement.ranks ? chunk : random() % placement.ranks);
  for (int64_t chunk = chunks; chunk > 1; --chunk)
    std::swap(placement.rankOfChunk[chunk - 1],
              placement.rankOfChunk[random() % chunk]);
  step.edges = makeChain(chunks);
  for (int64_t source = 0; source < chunks; ++source)
    for (int64_t target = source + 2; target < chunks; ++target)
      if (random() % 4 == 0)
        step.edges.push_back({source, target});
  step.schedule.microBatches = 1 + random() % 6;
  step.schedule.ranks.resize(placement.ranks);

  std::vector<Task> open;
  std::set<std::tuple<TaskKind, int64_t, int64_t>> done;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t micro = 0; micro < step.schedule.microBatches; ++micro) {
      open.push_back({TaskKind::Forward, chunk, micro});
      if (random() % 2) {
        open.push_back({TaskKind::Backward, chunk, micro});
      } else {
        open.push_back({TaskKind::BackwardInput, chunk, micro});
        open.push_back({TaskKind::BackwardWeight, chunk, micro});
      }
    }
  // Half of them keep micro-batches in order, as schedules of people do.
  bool inOrder = random() % 2;
  auto isReady = [&](const Task &task) {
    auto has = [&](TaskKind kind, int64_t chunk) {
      return done.count({kind, chunk, task.microBatch}) > 0;
    };
    if (task.kind == TaskKind::BackwardWeight)
      return has(TaskKind::BackwardInput, task.chunk);
    bool isForward = task.kind == TaskKind::Forward;
    if (!isForward && !has(TaskKind::Forward, task.chunk))
      return false;
    for (const Edge &edge : step.edges) {
      if (isForward && edge.target == task.chunk &&
          !has(TaskKind::Forward, edge.source))
        return false;
      if (!isForward && edge.source == task.chunk &&
          !has(TaskKind::Backward, edge.target) &&
          !has(TaskKind::BackwardInput, edge.target))
        return false;
    }
    for (const Task &other : open)
      if (inOrder && other.chunk == task.chunk &&
          (other.kind == TaskKind::Forward) == isForward &&
          other.kind != TaskKind::BackwardWeight &&
          other.microBatch < task.microBatch)
        return false;
    return true;
  };
  while (!open.empty()) {
    std::vector<size_t> ready;
    for (size_t number = 0; number < open.size(); ++number)
      if (isReady(open[number]))
        ready.push_back(number);
    size_t chosen = ready[random() % ready.size()];
    Task task = open[chosen];
    open.erase(open.begin() + chosen);
    done.insert({task.kind, task.chunk, task.microBatch});
    step.schedule.ranks[placement.rankOfChunk[task.chunk]].push_back(task);
  }
  return step;
}

enum class Damage { Swap, Drop, Duplicate, Move, CutSlots };

/// False: there is nothing to spoil in this way.
bool spoil(Step &step, Damage damage, std::mt19937 &random) {
  auto &ranks = step.schedule.ranks;
  auto &tasks = ranks[random() % ranks.size()];
  if (tasks.size() < 2)
    return false;
  size_t from = random() % tasks.size(), to = random() % tasks.size();
  switch (damage) {
  case Damage::Swap:
    std::swap(tasks[from], tasks[to]);
    return from != to;
  case Damage::Drop:
    tasks.erase(tasks.begin() + from);
    return true;
  case Damage::Duplicate:
    tasks.insert(tasks.begin() + to, Task(tasks[from]));
    return true;
  case Damage::Move: {
    auto &others = ranks[random() % ranks.size()];
    if (&others == &tasks)
      return false;
    others.insert(others.begin() + random() % (others.size() + 1), tasks[from]);
    tasks.erase(tasks.begin() + from);
    return true;
  }
  case Damage::CutSlots: {
    int64_t chunk = random() % step.slots.countChunks();
    SlotKind kind = SlotKind(random() % size_t(SlotKind::ReceivedValue));
    return --step.slots.at(chunk, kind) > 0;
  }
  }
  llvm_unreachable("all kinds are listed");
}

} // namespace

TEST(RandomSchedulesTest, AcceptedExactlyIfTheyRun) {
  std::mt19937 random(2026);
  int64_t valid = 0, tooFewSlots = 0;
  int64_t corrupted = 0, swapsThatRun = 0;
  for (int64_t number = 0; valid < 10000; ++number) {
    Step step = makeRandomStep(random);
    step.slots = countSlots(step.schedule, step.edges, 1 + random() % 4);
    Costs costs = Costs::makeEven(step.slots.countChunks());
    for (ChunkCost &chunk : costs.chunks)
      chunk.forward = 1 + random() % 3;
    costs.secondsPerTransfer = (random() % 3) * 0.5;
    llvm::Expected<Posting> posting =
        postTransfers(step.schedule, step.edges, step.slots, costs);
    if (!posting) {
      consumeError(posting.takeError());
      ++tooFewSlots;
      // Whatever order it is posted in, it hangs; with a slot for each it does
      // not.
      step.slots =
          countSlots(step.schedule, step.edges, step.schedule.microBatches);
      posting = postTransfers(step.schedule, step.edges, step.slots, costs);
    }
    ASSERT_TRUE(bool(posting)) << getMessage(posting.takeError());
    step.posting = std::move(*posting);
    ASSERT_EQ(step.verify(), "") << "schedule " << number;
    ASSERT_EQ(step.run(random), "") << "schedule " << number;
    ++valid;

    Damage damage = Damage(number % 5);
    if (!spoil(step, damage, random))
      continue;
    ++corrupted;
    std::string refused = step.verify();
    // Some tasks may be exchanged; of everything else nothing may pass.
    if (damage != Damage::Swap)
      ASSERT_NE(refused, "") << "schedule " << number;
    ASSERT_EQ(refused.empty(), step.run(random).empty())
        << "schedule " << number << ": " << refused;
    swapsThatRun += refused.empty();
  }
  EXPECT_GT(corrupted, 7500);
  EXPECT_GT(tooFewSlots, 100);
  RecordProperty("corrupted", corrupted);
  RecordProperty("tooFewSlots", tooFewSlots);
  RecordProperty("swapsThatRun", swapsThatRun);
}

// Lists of transfers spoilt: groups exchanged, joined, cut in two, transfers
// dropped or moved. What is accepted runs.
TEST(RandomSchedulesTest, AcceptedPostingsRun) {
  std::mt19937 random(7);
  int64_t refused = 0, accepted = 0;
  while (refused + accepted < 5000) {
    Step step = makeRandomStep(random);
    step.slots =
        countSlots(step.schedule, step.edges, step.schedule.microBatches);
    step.posting =
        cantFail(postTransfers(step.schedule, step.edges, step.slots,
                               Costs::makeEven(step.slots.countChunks())));
    auto &groups = step.posting.ranks[random() % step.posting.ranks.size()];
    if (groups.size() < 2)
      continue;
    size_t one = random() % (groups.size() - 1);
    switch (random() % 5) {
    case 0:
      std::swap(groups[one], groups[random() % groups.size()]);
      break;
    case 1:
      groups[one].append(groups[one + 1]);
      groups.erase(groups.begin() + one + 1);
      break;
    case 2:
      if (groups[one].size() < 2)
        continue;
      groups.insert(groups.begin() + one, Group{groups[one].pop_back_val()});
      break;
    case 3:
      groups.erase(groups.begin() + one);
      break;
    case 4:
      groups[random() % groups.size()].push_back(groups[one].front());
      break;
    }
    if (!step.verify().empty()) {
      ++refused;
      continue;
    }
    ++accepted;
    ASSERT_EQ(step.run(random), "");
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
  RecordProperty("refused", refused);
  RecordProperty("accepted", accepted);
}
