// Lists of tasks as loops.

#include "lib/Pipeline/Fold.h"
#include "PipelineFixture.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

/// "2x+1 {F0[0] B0[0]}": two turns, each on the next micro-batch.
static std::string printFold(llvm::ArrayRef<Loop> loops) {
  std::string text;
  for (const Loop &loop : loops) {
    text += (text.empty() ? "" : " ") + std::to_string(loop.trips) + "x+" +
            std::to_string(loop.step) + " {";
    for (const Task &task : loop.tasks)
      text += (&task == &loop.tasks.front() ? "" : " ") + toString(task);
    text += "}";
  }
  return text;
}

TEST(FoldTest, WritesLoops) {
  auto foldNamed = [](llvm::StringRef name, int64_t ranks, int64_t micro) {
    return printFold(fold(makeNamed(name, ranks, micro).schedule.ranks[0]));
  };
  EXPECT_EQ(foldNamed("gpipe", 2, 8), "8x+1 {F0[0]} 8x+1 {B0[0]}");
  EXPECT_EQ(foldNamed("1f1b", 4, 8),
            "3x+1 {F0[0]} 5x+1 {F0[3] B0[0]} 3x+1 {B0[5]}");
  EXPECT_EQ(foldNamed("1f1b", 1, 1), "1x+0 {F0[0] B0[0]}");
  EXPECT_EQ(printFold(fold({})), "");
}

TEST(FoldTest, UnfoldsToWhatItWas) {
  for (llvm::StringRef name : {"gpipe", "1f1b", "eager-1f1b", "interleaved:3",
                               "zb-h1", "zb-h2", "zbv", "dualpipev"})
    for (int64_t ranks = 1; ranks <= 5; ++ranks)
      for (int64_t micro = 1; micro <= 13; ++micro)
        for (const auto &tasks : makeNamed(name, ranks, micro).schedule.ranks)
          EXPECT_EQ(unfold(fold(tasks)), tasks) << name.str();
}

// A schedule's text is as long for many micro-batches as for few.
TEST(FoldTest, IsNoLongerForMoreMicroBatches) {
  for (llvm::StringRef name : {"gpipe", "1f1b", "eager-1f1b", "interleaved:2",
                               "zb-h1", "zb-h2", "zbv", "dualpipev"}) {
    auto count = [&](int64_t micro) {
      size_t tasks = 0;
      for (const auto &rank : makeNamed(name, 4, micro).schedule.ranks)
        for (const Loop &loop : fold(rank))
          tasks += loop.tasks.size();
      return tasks;
    };
    EXPECT_EQ(count(40), count(80)) << name.str();
    EXPECT_LE(count(80), 120u) << name.str();
  }
}
