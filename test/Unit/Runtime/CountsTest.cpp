// What counting commands comes to, and runs on the device that only counts.

#include "Control/Counts.h"

#include "RunFixture.h"

namespace accel::rt {
namespace {

using test::contiguousView;
using ::testing::HasSubstr;

Program programWithScratch() {
  Program program;
  program.buffers = {{"x", "activation", "device", 0, 64, 1, 64, "", ""},
                     {"s", "scratch", "device", 64, 64, 1, 64, "", ""}};
  return program;
}

/// The counts of one command, executed `times`.
KindCounts count(Command command, uint64_t times, const char *kind) {
  Counts counts{};
  addCosts(programWithScratch(), command, times, counts);
  EntryCounts named = nameCounts(counts);
  return named.count(kind) ? named[kind] : KindCounts();
}

TEST(Counts, AddUpViewsAndArithmetic) {
  GemmCommand gemm;
  gemm.a = gemm.b = gemm.c = contiguousView(0, {2, 2});
  gemm.scratch = contiguousView(1, {8});
  Command command;
  command.what = gemm;
  command.flops = 16;
  KindCounts one = count(command, 1, "gemm");
  EXPECT_EQ(one.commands, 1u);
  EXPECT_EQ(one.bytesRead, 32u); // scratch is the device's own affair
  EXPECT_EQ(one.bytesWritten, 16u);
  EXPECT_EQ(one.flops, 16u);
  gemm.accumulate = true; // c is read as well
  command.what = gemm;
  KindCounts many = count(command, 3, "gemm");
  EXPECT_EQ(many.commands, 3u);
  EXPECT_EQ(many.bytesRead, 3 * 48u);
  EXPECT_EQ(many.bytesWritten, 3 * 16u);
  EXPECT_EQ(many.flops, 48u);
}

TEST(Counts, TakeAGroupForItsMessages) {
  GroupCommand group;
  group.sends = {{contiguousView(0, {4}), "pp", 1, 0}};
  group.recvs = {{contiguousView(0, {4}), "pp", -1, 0},
                 {contiguousView(0, {2}), "pp", -1, 1}};
  Command command;
  command.what = group;
  EXPECT_EQ(count(command, 1, "group").commands, 0u);
  EXPECT_EQ(count(command, 1, "send").bytesRead, 16u);
  EXPECT_EQ(count(command, 2, "recv").commands, 4u);
  EXPECT_EQ(count(command, 2, "recv").bytesWritten, 48u);
}

TEST(Counts, RefuseACallThatDoesSomethingElse) {
  Counts noted{}, counts{};
  counts[0].commands = 2;
  ASSERT_TRUE(noteCounts(counts, /*first=*/true, noted).ok());
  ASSERT_TRUE(noteCounts(counts, /*first=*/false, noted).ok());
  counts[0].commands = 3;
  EXPECT_EQ(noteCounts(counts, /*first=*/false, noted).message(),
            "expected the 2 commands of kind 'gemm' that the first call had, "
            "found 3");
}

class RunNull : public test::RunTest {
protected:
  /// Writes the executable, and no input.
  void writeFor(const std::string &target) {
    Executable executable = test::tinyExecutable();
    executable.target = target;
    std::string engine = target.substr(0, target.find(':'));
    for (Program &program : executable.programs) {
      for (Body &body : program.bodies)
        body.engine = engine;
      for (Entry &entry : program.entries)
        for (Loop &loop : entry.loops)
          for (Segment &segment : loop.segments)
            segment.engine = engine;
    }
    write(executable);
    std::filesystem::remove(folder / "x.npy");
    options.inputs = options.outputs = "";
  }
};

TEST_F(RunNull, CountsWhatItDoesNotExecute) {
  writeFor("cpu");
  options.device = "null";
  options.repeats = 3;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(result.device, "null");
  EXPECT_EQ(result.plannedPeakBytes, result.measuredPeakBytes);
  ASSERT_EQ(result.counts.size(), static_cast<size_t>(result.ranks));
  EXPECT_EQ(result.counts[0]["load"]["read"].commands, 1u);
  EXPECT_EQ(result.counts[0]["forward"]["write"].commands, 1u);
}

TEST_F(RunNull, FindsTheDeviceThatAFileWasCompiledFor) {
  writeFor("null");
  ASSERT_EQ(run(), "");
  EXPECT_EQ(result.device, "null");
  options.device = "cpu";
  EXPECT_THAT(run(), HasSubstr("was compiled for device 'null', found "
                               "--device=cpu: compile it with --target=cpu"));
  options.device = "abacus";
  EXPECT_THAT(run(), HasSubstr("expected a device ('cpu', 'null') for "
                               "--device, found 'abacus'"));
  options.device = "";
  writeFor("abacus:3");
  EXPECT_THAT(run(),
              HasSubstr("was compiled for device 'abacus', which this acc-run "
                        "has not: it has 'cpu', 'null'"));
}

} // namespace
} // namespace accel::rt
