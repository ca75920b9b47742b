// Training programs that are run: first values that no file holds, or another
// type, and steps counted from the state's.

#include "Data/Safetensors.h"
#include "RunFixture.h"
#include "TinyTraining.h"

#include <csignal>

#include <sys/resource.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class Train : public RunTest {
protected:
  Train() {
    options.step = [this](const StepResult &step) {
      steps.push_back(step);
      return Status();
    };
  }
  void writeTraining(const Executable &executable) {
    write(executable, tinyTrainingSections(kernels));
  }
  std::string kernels;
  std::vector<StepResult> steps;
};

TEST_F(Train, ReportsEveryStepInOrder) {
  // x is 0.5, 1.5, …: g is 8 for any layout of four.
  for (auto [ranks, microBatches] : {std::pair(1, 2), std::pair(2, 1)}) {
    steps.clear();
    writeTraining(tinyTraining(ranks, microBatches));
    options.steps = 40;
    ASSERT_EQ(run(), "");
    ASSERT_EQ(steps.size(), 40u);
    float w = 1;
    for (int i = 0; i < 40; ++i) {
      float lr = static_cast<float>(i + 1) / 10;
      EXPECT_EQ(steps[i].step, i + 1);
      ASSERT_EQ(steps[i].reports.size(), 3u);
      EXPECT_EQ(steps[i].find("loss")->value, 8 + w);
      EXPECT_EQ(steps[i].find("grad_norm")->value, 8);
      EXPECT_EQ(steps[i].find("lr")->value, lr);
      EXPECT_EQ(steps[i].verdict, Verdict::Done);
      EXPECT_EQ(steps[i].samples, 4);
      EXPECT_EQ(steps[i].last, i == 39);
      w -= lr * 8;
    }
    EXPECT_EQ(result.seconds.size(), 40u);
    EXPECT_EQ(result.plannedPeakBytes, result.measuredPeakBytes);
  }
}

TEST_F(Train, GoesOnAfterStepsThatAreSkipped) {
  for (auto [ranks, microBatches] : {std::pair(1, 2), std::pair(2, 1)}) {
    steps.clear();
    writeTraining(tinyTraining(ranks, microBatches));
    // g is 734, of which the kernel skips every third step.
    writeNpy(folder / "x.npy", {4}, {182, 183, 184, 185});
    options.steps = 7;
    ASSERT_EQ(run(), "");
    ASSERT_EQ(steps.size(), 7u);
    float w = 1;
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(steps[i].step, i + 1);
      EXPECT_EQ(steps[i].verdict,
                i % 3 == 2 ? Verdict::Skipped : Verdict::Done);
      EXPECT_EQ(steps[i].find("loss")->value, 734 + w);
      if (i % 3 != 2)
        w -= static_cast<float>(i + 1) / 10 * 734;
    }
    EXPECT_EQ(result.skippedSteps, 2);
  }
}

TEST_F(Train, TellsNoStepAfterOneThatCouldNotBeTold) {
  // The log has no gaps, and what stood in the way of the first is said.
  options.step = [this](const StepResult &step) {
    steps.push_back(step);
    return Status::error("no reader of step " + std::to_string(step.step));
  };
  options.steps = 40;
  writeTraining(tinyTraining(2));
  EXPECT_EQ(run(), "no reader of step 1");
  EXPECT_EQ(steps.size(), 1u);
  // Nor is it forgotten where the ranks have ended before it was told.
  options.canTellStep = [] { return false; };
  EXPECT_EQ(run(), "no reader of step 1");
  EXPECT_EQ(steps.size(), 2u);
}

TEST_F(Train, WarnsOfMemoryThatThePlanDoesNotCountWith) {
  Executable executable = tinyTraining();
  // A rank has what this process has, whatever other tests left in it.
  executable.programs[0].arenas[0].reserve = int64_t(1) << 40;
  ::testing::internal::CaptureStderr();
  writeTraining(executable);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  executable.programs[0].arenas[0].reserve = 0;
  writeTraining(executable);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("more than the 0.0 MiB reserved in the plan"));
}

TEST_F(Train, CountsStepsFromTheStates) {
  Executable executable = tinyTraining();
  for (StatePlan &state : executable.states)
    if (state.role == "counter")
      state.first.fill = bytesOf<int64_t>(41);
  writeTraining(executable);
  options.steps = 2;
  ASSERT_EQ(run(), "");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step, 42);
  EXPECT_EQ(steps[1].step, 43);
}

TEST_F(Train, RefusesCountersThatCountNoSteps) {
  for (int64_t count : {int64_t(-1), INT64_MIN, INT64_MAX}) {
    Executable executable = tinyTraining();
    executable.states[5].first.fill = bytesOf(count);
    writeTraining(executable);
    options.steps = 2;
    EXPECT_THAT(run(), HasSubstr("expected a counter of steps from 0 to"));
    EXPECT_THAT(run(), HasSubstr("found " + std::to_string(count)));
  }
  EXPECT_TRUE(steps.empty());
}

TEST_F(Train, FillsStridedViews) {
  // The two columns of a buffer of its own, filled one at a time.
  Executable executable = tinyTraining();
  Program &program = executable.programs[0];
  program.arenas[0].bytes += 64;
  program.buffers.push_back({"pairs", "scratch", "device",
                             program.arenas[0].bytes - 64, 24, 1, 24, "", ""});
  View pairs =
      contiguousView(static_cast<int64_t>(program.buffers.size()) - 1, {3, 2});
  View column = pairs;
  column.shape = {3};
  column.strides = {2};
  auto &load = program.bodies[0].commands;
  Part part{{3}, {{}}};
  load.push_back(command(FillCommand{bytesOf(5.f), pairs}, "Fill"));
  load.push_back(command(ReadCommand{"state", "mask", part, column}, "mask"));
  executable.outputs.push_back({"pairs", DType::F32, {3, 2}});
  program.bodies[3].commands.push_back(command(
      WriteCommand{"output", "pairs", {{3, 2}, {{}, {}}}, pairs}, "pairs"));
  writeTraining(executable);
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/pairs.npy"),
            (std::vector<float>{7, 5, 7, 5, 7, 5}));
}

TEST_F(Train, WidensWeightsOfAnotherType) {
  // A forward program in f64 whose state is f32 in its section, transposed.
  Executable executable = tinyExecutable(2);
  StatePlan &state = executable.states[0];
  state.dtype = DType::F64;
  state.first.stored = DType::F32;
  Program &program = executable.programs[0];
  program.arenas[0].bytes += 64;
  program.buffers.push_back(
      {"wide", "state", "device", 192, 32, 1, 32, "", "w"});
  View wide = contiguousView(3, {2, 2}, DType::F64);
  Part part{{2, 2}, {{}, {}}};
  program.bodies[0].commands = {
      command(ReadCommand{"state", "w", part, wide}, "W")};
  executable.outputs.push_back({"wide", DType::F64, part.shape});
  program.bodies[1].commands.push_back(
      command(WriteCommand{"output", "wide", part, wide}, "Wide"));
  for (bool transposed : {true, false}) {
    if (!transposed)
      state.first.permutation.clear();
    write(executable);
    ASSERT_EQ(run(), "");
    FileHandle file(open((folder / "out/wide.npy").c_str(), O_RDONLY));
    TensorRange range;
    ASSERT_TRUE(openNpy(file.get(), "wide.npy", range).ok());
    EXPECT_EQ(range.dtype, DType::F64);
    double values[4];
    ASSERT_TRUE(
        readRange(file.get(), "wide.npy", range.offset, values, 32).ok());
    EXPECT_EQ(std::vector<double>(values, values + 4),
              (transposed ? std::vector<double>{1, 3, 2, 4}
                          : std::vector<double>{1, 2, 3, 4}));
  }
}

TEST_F(Train, ContinuesInTheOrderOfTheData) {
  std::vector<uint16_t> tokens(10 * 8);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<uint16_t>(i);
  std::ofstream(folder / "d.bin", std::ios::binary)
      .write(reinterpret_cast<char *>(tokens.data()), 160);
  options.data = folder / "d.bin";
  auto lastBatch = [&](int64_t finished, int64_t count) {
    Executable executable = tinyTraining(1, 2, 8);
    for (StatePlan &state : executable.states)
      if (state.role == "counter")
        state.first.fill = bytesOf(finished);
    writeTraining(executable);
    options.steps = count;
    EXPECT_EQ(run(), "");
    std::ifstream stream(folder / "out/seen.input_ids.npy", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_EQ(lastBatch(0, 3), lastBatch(2, 1));
  EXPECT_NE(lastBatch(0, 3), lastBatch(3, 1));
}

TEST_F(Train, FindsAFullDiskBeforeItTrains) {
  writeTraining(tinyTraining());
  options.outputs.clear();
  options.saveWeights = folder / "w.safetensors";
  ASSERT_EQ(run(), "");
  std::string before = options.saveWeights;
  auto size = std::filesystem::file_size(before);
  // A file system with room for the header: a limit on the size of files.
  steps.clear();
  rlimit old, small{size - 4, size - 4};
  getrlimit(RLIMIT_FSIZE, &old);
  small.rlim_max = old.rlim_max;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message = run();
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("cannot write"));
  EXPECT_TRUE(steps.empty());
  EXPECT_EQ(std::filesystem::file_size(before), size);
}

TEST_F(Train, SavesFrozenStatesFromTheirFile) {
  // Nothing of a frozen state need stay in memory.
  Executable executable = tinyTraining(2);
  executable.states[0].frozen = true;
  executable.programs[0].buffers[0].source.clear();
  writeTraining(executable);
  options.saveWeights = folder / "w.safetensors";
  ASSERT_EQ(run(), "");
  std::ifstream stream(folder / "w.safetensors", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  float w[4] = {1, 3, 2, 4};
  EXPECT_THAT(text, HasSubstr(std::string(reinterpret_cast<char *>(w), 16)));
  executable.states[0].frozen = false;
  writeTraining(executable);
  EXPECT_THAT(run(), HasSubstr("expected a buffer that keeps state 'net/w'"));
}

TEST_F(Train, KeepsPaddingOutOfFiles) {
  // 'net/w' is a transposed row of 2 x 2, 'rows' are 3 of 4 over two ranks.
  Executable executable = tinyTraining(2);
  executable.states[0].logicalShape = {1, 2};
  executable.states[0].first.bytes = 8;
  executable.states[0].first.hash = hashBytes(kTinyState, 8);
  executable.states[1].logicalShape = {3};
  writeTraining(executable);
  options.saveWeights = folder / "w.safetensors";
  ASSERT_EQ(run(), "");
  FileHandle file(open(options.saveWeights.c_str(), O_RDONLY));
  std::vector<SafetensorsEntry> entries;
  uint64_t start = 0;
  ASSERT_TRUE(
      readSafetensors(file.get(), options.saveWeights, entries, start).ok());
  // x is 0.5 … 3.5: g = 8, lr = 0.1.
  std::map<std::string, std::vector<float>> expected{
      {"net/w", {1 - 0.8f, 2 - 0.8f}},
      {"tied", {1 - 0.8f, 2 - 0.8f}},
      {"rows", {-7, -7, -7}},
      {"mask", {7, 7, 7}}};
  ASSERT_EQ(entries.size(), expected.size());
  for (const SafetensorsEntry &entry : entries) {
    std::vector<float> values(entry.bytes / 4);
    ASSERT_TRUE(readRange(file.get(), "w", start + entry.begin, values.data(),
                          entry.bytes)
                    .ok());
    EXPECT_EQ(values, expected[entry.name]) << entry.name;
    EXPECT_EQ(entry.shape.size(),
              entry.name.substr(0, 3) == "net" || entry.name == "tied" ? 2u
                                                                       : 1u);
  }
  // A gradient of the padded shape comes in the parameter's own.
  EXPECT_EQ(readNpy(folder / "out/net%2Fw.grad.npy"),
            (std::vector<float>{8, 8}));
}

} // namespace
