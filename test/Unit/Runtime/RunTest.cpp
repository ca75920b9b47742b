// Whole runs of hand-made executables: files in, ranks, files out, and every
// way in which that is refused.

#include "Device/CPU/CpuDevice.h"
#include "RunFixture.h"

#include <csignal>

#include <sys/resource.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class RunExecutable : public RunTest {};

TEST_F(RunExecutable, CopiesItsInput) {
  for (int64_t ranks : {1, 2, 4}) {
    write(tinyExecutable(ranks));
    options.repeats = 3;
    ASSERT_EQ(run(), "");
    EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
    EXPECT_EQ(result.ranks, ranks);
    EXPECT_EQ(result.seconds.size(), 3u);
    EXPECT_EQ(result.plannedPeakBytes, 192u);
    EXPECT_EQ(result.measuredPeakBytes, 192u);
    EXPECT_EQ(result.touchedPeakBytes, 144u);
    EXPECT_EQ(countFiles(folder / "out"), 1u);
  }
}

TEST_F(RunExecutable, TransposesWeightsAndMultiplies) {
  Executable executable = tinyExecutable();
  // y [2, 2] = x [2, 2] · w, the state w being the section's transpose.
  for (auto *tensors : {&executable.inputs, &executable.outputs})
    (*tensors)[0].shape = {2, 2};
  View x = contiguousView(0, {2, 2}), w = contiguousView(1, {2, 2}),
       y = contiguousView(2, {2, 2});
  Part part{{2, 2}, {{}, {}}};
  GemmCommand gemm;
  gemm.a = x, gemm.b = w, gemm.c = y;
  executable.programs[0].arenas[0].bytes = 192 + (1 << 15);
  executable.programs[0].buffers.push_back(
      {"scratch", "scratch", "device", 192, 1 << 15, 1, 1 << 15, "", ""});
  gemm.scratch = contiguousView(3, {1 << 15}, DType::I8);
  executable.programs[0].bodies[1].commands = {
      command(ReadCommand{"input", "x", part, x}, "X"), command(gemm, "MatMul"),
      command(WriteCommand{"output", "y", part, y}, "Y")};
  write(executable);
  ASSERT_EQ(run(), "");
  // x = [.5 1.5; 2.5 3.5], w = [1 3; 2 4]
  EXPECT_EQ(readNpy(folder / "out/y.npy"),
            (std::vector<float>{3.5, 7.5, 9.5, 21.5}));
}

// Poison shows what the check of a file cannot see: it takes a strided view for
// all the bytes from its first element to its last.

TEST_F(RunExecutable, PoisonShowsAReadOfReleasedBytes) {
  Executable executable = tinyExecutable();
  Program &program = executable.programs[0];
  program.arenas[0].bytes = 256;
  program.buffers.push_back(
      {"z", "activation", "device", 192, 16, 1, 16, "", ""});
  View x = contiguousView(0, {4}), y = contiguousView(2, {4}),
       z = contiguousView(3, {4}), ends = contiguousView(3, {2}), middle = ends,
       yMiddle = contiguousView(2, {2});
  ends.strides = {3};
  middle.offset = yMiddle.offset = 4;
  auto &commands = program.bodies[1].commands;
  commands = {commands[0],
              command(CopyCommand{x, z}, "Copy#1"),
              command(CopyCommand{z, y}, "Copy#2"),
              command(FillCommand{{0, 0, 0, 0}, ends}, "Fill"),
              command(CopyCommand{middle, yMiddle}, "Copy#3"),
              commands[2]};
  commands[2].releases = {middle}; // too early
  write(executable);
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
  options.poison = true;
  ASSERT_EQ(run(), "");
  EXPECT_TRUE(std::isnan(readNpy(folder / "out/y.npy")[1]));
}

TEST_F(RunExecutable, PoisonShowsAReadOfUnwrittenBytes) {
  Executable executable = tinyExecutable();
  View ends = contiguousView(2, {2}), x = contiguousView(0, {2});
  ends.strides = {3};
  executable.programs[0].bodies[1].commands[1].what = CopyCommand{x, ends};
  write(executable);
  options.poison = true;
  ASSERT_EQ(run(), "");
  EXPECT_TRUE(std::isnan(readNpy(folder / "out/y.npy")[2]));
}

TEST_F(RunExecutable, RefusesWrongInputs) {
  write(tinyExecutable());
  std::filesystem::remove(folder / "x.npy");
  EXPECT_THAT(run(), HasSubstr("expected input 'x' (f32 [4]) as 'x.npy' or "
                               "'input_0.pb'"));
  writeNpy(folder / "x.npy", {2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(run(), HasSubstr("expected f32 [4] for input 'x', found f32 "
                               "[2, 2]"));
  std::string header = npyHeader(DType::I32, {4});
  std::ofstream(folder / "x.npy") << header << std::string(16, '\1');
  EXPECT_THAT(run(), HasSubstr("expected f32 [4] for input 'x', found i32 "
                               "[4]"));
  std::filesystem::remove(folder / "x.npy");
  std::filesystem::create_symlink("x.npy", folder / "x.npy");
  EXPECT_THAT(run(), HasSubstr("cannot open '" + (folder / "x.npy") +
                               "': Too many levels"));
  std::filesystem::remove(folder / "x.npy");
  writeNpy(folder / "x.npy", {4}, {1, 2, 3});
  EXPECT_THAT(run(), HasSubstr("expected 16 bytes of elements, found 12"));
  options.inputs = folder / "none";
  EXPECT_THAT(run(), HasSubstr("expected a folder of inputs"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(RunExecutable, WritesALossThatNoStepReports) {
  Executable executable = tinyExecutable();
  executable.outputs[0].name = "loss";
  std::get<WriteCommand>(executable.programs[0].bodies[1].commands[2].what)
      .name = "loss";
  write(executable);
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/loss.npy"), readNpy(folder / "x.npy"));
}

TEST_F(RunExecutable, RefusesPlansThatNoAddressSpaceHolds) {
  Executable executable = tinyExecutable();
  executable.programs[0].arenas[0].reserve = int64_t(1) << 50;
  write(executable);
  EXPECT_THAT(run(), HasSubstr("cannot set aside the 1125899906842816 bytes of "
                               "arenas and libraries"));
}

TEST_F(RunExecutable, RefusesAnotherNumberOfRanks) {
  write(tinyExecutable(2));
  options.ranks = 3;
  EXPECT_THAT(run(), HasSubstr("expected 2 ranks as the mesh"));
  EXPECT_THAT(run(), HasSubstr("dp=2"));
  options.ranks = 2;
  EXPECT_EQ(run(), "");
}

TEST_F(RunExecutable, RefusesAMachineWithoutTheFeatures) {
  Executable executable = tinyExecutable();
  executable.features = {"fpu", "sse4_2", "warp-drive"};
  write(executable);
  EXPECT_THAT(run(), HasSubstr("compiled for a CPU with warp-drive, which"));
}

TEST_F(RunExecutable, RefusesMissingShortAndChangedWeights) {
  Executable executable = tinyExecutable();
  FirstValue &first = executable.states[0].first;
  first.section.clear();
  first.path = "weights.bin";
  first.offset = 8;
  write(executable, {});
  EXPECT_THAT(run(), HasSubstr("cannot open the weights"));
  std::filesystem::create_directory(folder / "weights.bin");
  EXPECT_THAT(run(), HasSubstr("cannot use '" + (folder / "weights.bin") +
                               "': expected a regular file"));
  std::filesystem::remove(folder / "weights.bin");
  auto spill = [&](size_t bytes, bool change) {
    std::ofstream stream(folder / "weights.bin", std::ios::binary);
    std::string text(8, 'x');
    text.append(reinterpret_cast<const char *>(kTinyState), 16);
    text.resize(bytes);
    if (change)
      text.back() ^= 1;
    stream << text;
  };
  spill(23, false);
  EXPECT_THAT(run(), HasSubstr("in bytes 8 to 24"));
  EXPECT_THAT(run(), HasSubstr("found a file of 23 bytes"));
  spill(24, true);
  EXPECT_THAT(run(), HasSubstr("expected the weights of 'w' as they were "
                               "compiled"));
  EXPECT_EQ(countFiles(folder / "out"), 0u);
  spill(24, false);
  EXPECT_EQ(run(), "");
}

TEST_F(RunExecutable, KeepsTheOldOutputsWhenItCannotWriteNewOnes) {
  write(tinyExecutable());
  options.outputs = folder / "none/out";
  EXPECT_THAT(run(), HasSubstr("cannot make the folder"));
  options.outputs = folder / "x.npy";
  EXPECT_THAT(run(), HasSubstr("Not a directory"));
  // A file system that is full: here, a limit on the size of files.
  options.outputs = folder / "out";
  ASSERT_EQ(run(), "");
  std::vector<float> before = readNpy(folder / "out/y.npy");
  rlimit old, small{64, 64};
  getrlimit(RLIMIT_FSIZE, &old);
  small.rlim_max = old.rlim_max;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message = run();
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("cannot write"));
  EXPECT_EQ(readNpy(folder / "out/y.npy"), before);
  EXPECT_EQ(countFiles(folder / "out"), 1u);
}

TEST_F(RunExecutable, NamesTheNodeOfACommandThatCannotBePrepared) {
  Executable executable = tinyExecutable(2);
  KernelCommand kernel{"kernel_7", {contiguousView(0, {4})}, {}, 4, 1};
  executable.programs[0].bodies[1].commands.push_back(
      command(kernel, "Gelu#3"));
  write(executable);
  EXPECT_THAT(run(), HasSubstr("node 'Gelu#3': expected a kernel 'kernel_7'"));
}

TEST_F(RunExecutable, TakesNoFileThatCannotBeOpenedForACpuWithoutFeatures) {
  rlimit old;
  getrlimit(RLIMIT_NOFILE, &old);
  rlimit none{0, old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  std::vector<std::string> missing;
  Status status = cpu::findMissingFeatures({"fpu"}, missing);
  setrlimit(RLIMIT_NOFILE, &old);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "cannot read the features of this CPU from '/proc/cpuinfo': Too "
            "many open files (the limit is 'ulimit -n': raise it)");
}

} // namespace
