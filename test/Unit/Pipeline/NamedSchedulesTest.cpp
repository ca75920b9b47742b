// Names of schedules, and that each of them ends for any numbers of ranks and
// micro-batches.

#include "Executor.h"
#include "PipelineFixture.h"
#include "gtest/gtest.h"

using namespace accel::pipeline;

static std::string refuse(llvm::StringRef text) {
  llvm::Expected<Choice> choice = parseChoice(text);
  return choice ? "" : getMessage(choice.takeError());
}

TEST(NamedSchedulesTest, ReadsThem) {
  EXPECT_EQ(cantFail(parseChoice("auto")).named, nullptr);
  EXPECT_EQ(cantFail(parseChoice("zb-h1")).named->name, "zb-h1");
  EXPECT_EQ(cantFail(parseChoice("zbv")).chunksPerRank, 2);
  EXPECT_EQ(cantFail(parseChoice("interleaved:3")).chunksPerRank, 3);
}

TEST(NamedSchedulesTest, RefusesOthers) {
  EXPECT_EQ(refuse("2f2b"),
            "unknown schedule '2f2b', expected gpipe, 1f1b, eager-1f1b, "
            "interleaved:V, zb-h1, zb-h2, zbv, dualpipev or auto");
  for (llvm::StringRef text : {"interleaved", "interleaved:", "interleaved:x",
                               "interleaved:1", "interleaved:-2"})
    EXPECT_EQ(refuse(text), "expected 'interleaved:V' with V chunks on each "
                            "rank, 2 or more, got '" +
                                text.str() + "'");
  EXPECT_EQ(refuse("gpipe:2"), "expected 'gpipe' alone, got 'gpipe:2'");
  EXPECT_EQ(refuse("1f1b:"), "expected '1f1b' alone, got '1f1b:'");
}

TEST(NamedSchedulesTest, RefusesSizes) {
  const NamedSchedule &named = getNamedSchedules().front();
  auto refuse = [&](Shape shape) {
    return getMessage(generate(named, shape).takeError());
  };
  EXPECT_EQ(refuse({0, 1, 1}),
            "schedule 'gpipe' expects 1 or more ranks, got 0");
  EXPECT_EQ(refuse({1, 0, 1}),
            "schedule 'gpipe' expects 1 or more chunks on a rank, got 0");
  EXPECT_EQ(refuse({1, 1, -1}),
            "schedule 'gpipe' expects 1 or more micro-batches, got -1");
}

// Rings of two among them, where the rank before is the rank behind.
TEST(NamedSchedulesTest, AllEndForAnySize) {
  std::mt19937 random(1);
  for (llvm::StringRef name :
       {"gpipe", "1f1b", "eager-1f1b", "interleaved:2", "interleaved:3",
        "interleaved:4", "zb-h1", "zb-h2", "zbv", "dualpipev"})
    for (int64_t ranks = 1; ranks <= 6; ++ranks)
      for (int64_t micro = 1; micro <= 17; ++micro) {
        Synthesis got = makeNamed(name, ranks, micro);
        Edges edges = makeChain(got.schedule.placement.countChunks());
        std::string where = name.str() + ", " + std::to_string(ranks) +
                            " ranks, " + std::to_string(micro);
        EXPECT_EQ(
            getMessage(verify(got.schedule, edges, got.slots, got.posting)), "")
            << where;
        EXPECT_EQ(
            Executor(got.schedule, edges, got.slots, got.posting).run(random),
            "")
            << where;
      }
}
