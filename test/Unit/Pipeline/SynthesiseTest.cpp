// The search for a schedule against the named ones, on pipelines whose chunks
// are not alike.

#include "Executor.h"
#include "PipelineFixture.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

namespace {
/// Between 2 and 8 ranks of 1 to 3 chunks; a chunk takes between half as long
/// and twice as long as the mean, its parts vary, so do its bytes; room for
/// between p and 2 p micro-batches on a rank, as 1F1B and ZB-H2 have, and for p
/// chunks more, which interleaving takes.
Problem makeProblem(std::mt19937 &random) {
  Problem problem;
  problem.ranks = 2 + random() % 7;
  int64_t perRank = 1 + random() % 3;
  int64_t chunks = problem.ranks * perRank;
  problem.microBatches = problem.ranks * (1 + random() % 4) + random() % 3;
  problem.edges = makeChain(chunks);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    double forward = drawNumber(random, 0.5, 2);
    double input = forward * drawNumber(random, 0.8, 1.3);
    double weight = forward * drawNumber(random, 0.6, 1.2);
    int64_t bytes = 64 + random() % 65;
    problem.costs.chunks.push_back(
        {forward, input + weight, input, weight, bytes / 4, bytes});
  }
  problem.costs.secondsPerTransfer = drawNumber(random, 0, 0.2);
  problem.cap.slots =
      (problem.ranks + random() % (problem.ranks + 1)) * perRank;
  if (perRank > 1)
    problem.cap.slots += problem.ranks;
  problem.cap.bytes = problem.cap.slots * 144;
  return problem;
}
} // namespace

TEST(SynthesiseTest, NeverWorseThanNamedSchedulesAndOftenBetter) {
  std::mt19937 random(100), turns(1);
  int better = 0, none = 0;
  double gain = 0, mostGain = 0;
  for (int number = 0; number < 100; ++number) {
    Problem problem = makeProblem(random);
    llvm::Expected<Synthesis> got = synthesise(problem);
    ASSERT_TRUE(bool(got)) << getMessage(got.takeError());
    EXPECT_TRUE(fits(*got, problem));
    EXPECT_EQ(getMessage(verify(got->schedule, problem.edges, got->slots,
                                got->posting)),
              "");
    EXPECT_EQ(Executor(got->schedule, problem.edges, got->slots, got->posting)
                  .run(turns),
              "");
    double best = std::numeric_limits<double>::infinity();
    for (const Synthesis &named : evaluateNamed(problem))
      best = std::min(best, named.simulation.seconds);
    EXPECT_LE(got->simulation.seconds, best) << "profile " << number;
    if (best == std::numeric_limits<double>::infinity()) {
      ++none;
      continue;
    }
    better += got->simulation.seconds < best * (1 - 1e-9);
    gain += 1 - got->simulation.seconds / best;
    mostGain = std::max(mostGain, 1 - got->simulation.seconds / best);
  }
  EXPECT_GE(better, 50);
  RecordProperty("better", better);
  RecordProperty("nothingNamedFits", none);
  RecordProperty("meanGain", std::to_string(gain / (100 - none)));
  RecordProperty("mostGain", std::to_string(mostGain));
}

TEST(SynthesiseTest, TakesTheNamedOneWhereNothingIsBetter) {
  // GPipe and 1F1B are as fast, and GPipe stands first in the table.
  Problem problem{1, 4, {}, Costs::makeEven(1), {}};
  llvm::Expected<Synthesis> got = synthesise(problem);
  ASSERT_TRUE(bool(got));
  EXPECT_EQ(got->name, "gpipe");
  problem.cap.slots = 1;
  got = synthesise(problem);
  ASSERT_TRUE(bool(got));
  EXPECT_EQ(got->name, "1f1b");
}

TEST(SynthesiseTest, KeepsToTheLeastMemory) {
  for (int64_t perRank : {1, 2, 3}) {
    Problem problem{
        3, 6, makeChain(3 * perRank), Costs::makeEven(3 * perRank), {}};
    problem.cap.slots = perRank;
    llvm::Expected<Synthesis> got = synthesise(problem);
    ASSERT_TRUE(bool(got));
    EXPECT_TRUE(fits(*got, problem));
    EXPECT_EQ(got->name, "auto");
  }
}

TEST(SynthesiseTest, IsDeterministic) {
  std::mt19937 random(3);
  Problem problem = makeProblem(random);
  llvm::Expected<Synthesis> one = synthesise(problem),
                            two = synthesise(problem);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->name, two->name);
  EXPECT_EQ(one->schedule.ranks, two->schedule.ranks);
  EXPECT_EQ(one->posting.ranks, two->posting.ranks);
}

TEST(SynthesiseTest, FollowsSkips) {
  Problem problem{3, 5, makeChain(6), Costs::makeEven(6), {}};
  problem.edges.push_back({0, 5});
  problem.edges.push_back({1, 3});
  llvm::Expected<Synthesis> got = synthesise(problem);
  ASSERT_TRUE(bool(got));
  EXPECT_EQ(getMessage(
                verify(got->schedule, problem.edges, got->slots, got->posting)),
            "");
}

TEST(SynthesiseTest, Refuses) {
  auto refuse = [](const Problem &problem) {
    llvm::Expected<Synthesis> got = synthesise(problem);
    return got ? "" : getMessage(got.takeError());
  };
  EXPECT_EQ(refuse({0, 1, {}, Costs::makeEven(1), {}}),
            "expected 1 or more ranks and micro-batches, got 0 and 1");
  EXPECT_EQ(refuse({1, 0, {}, Costs::makeEven(1), {}}),
            "expected 1 or more ranks and micro-batches, got 1 and 0");
  EXPECT_EQ(refuse({2, 1, makeChain(3), Costs::makeEven(3), {}}),
            "expected a multiple of 2 chunks, as many on each rank, got 3");
  EXPECT_EQ(refuse({2, 1, {}, Costs(), {}}),
            "expected a multiple of 2 chunks, as many on each rank, got 0");
  Problem problem{2, 1, makeChain(4), Costs::makeEven(4), {}};
  problem.cap.slots = 1;
  EXPECT_EQ(refuse(problem),
            "a rank of 2 chunks expects as many slots, the cap is 1");
  problem.cap = {4, 9};
  for (int64_t chunk : {0, 1, 2, 3})
    problem.costs.chunks[chunk].inputBytes = 4 + chunk;
  // 4 + 6 and 5 + 7 interleaved, 4 + 7 and 5 + 6 as a V.
  EXPECT_EQ(refuse(problem), "the activations of one micro-batch need 11 bytes "
                             "of a rank, the cap is 9");
  problem.cap.bytes = 11;
  llvm::Expected<Synthesis> got = synthesise(problem);
  ASSERT_TRUE(bool(got));
  EXPECT_EQ(got->schedule.placement.rankOfChunk, Placement::vee(2).rankOfChunk);
}
