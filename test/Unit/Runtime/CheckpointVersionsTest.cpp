// Checkpoints of earlier versions: what they lack follows from what they have.

#include "Files.h"
#include "RunFixture.h"
#include "SealedManifest.h"
#include "TinyTraining.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class CheckpointVersions : public RunTest {
protected:
  CheckpointVersions() {
    options.step = [this](const StepResult &step) {
      numbers.push_back(step.step);
      return Status();
    };
  }
  /// Training that counts updates, too, from `updates` on: the kernel leaves
  /// that count alone.
  void writeTraining(int64_t updates) {
    Executable executable = tinyTraining();
    Program &program = executable.programs[0];
    StatePlan state = executable.states[5];
    state.name = "counter/step";
    state.first.fill = bytesOf(updates);
    executable.states.push_back(state);
    View view = TinyBuffers(program, /*goesOn=*/true)
                    .add(state.name, "state", {}, DType::I64);
    program.bodies[0].commands.push_back(
        command(ReadCommand{"state", state.name, {}, view}, state.name));
    write(executable, tinyTrainingSections(kernels));
  }
  std::string kernels;
  std::vector<int64_t> numbers;
};

// Before version 5 no step was skipped, and there was one count.
TEST_F(CheckpointVersions, CountCallsByUpdates) {
  writeTraining(/*updates=*/3);
  options.outputs.clear();
  options.steps = 3;
  options.checkpoint = folder / "c";
  ASSERT_EQ(run(), "");
  options.checkpoint.clear();
  options.resume = folder / "c";
  options.steps = 4;
  std::string path = folder / "c/step-00000003/checkpoint.json",
              text = slurp(path);
  size_t from = text.find("\"counter/call\""), to = text.find('}', from);
  ASSERT_NE(from, std::string::npos);
  text.erase(from, text.find('"', to) - from);
  spill(path, sealed(text));
  EXPECT_THAT(run(), HasSubstr("expected the counter 'counter/call' in the "
                               "checkpoint"));
  text.replace(text.find("\"version\": 5"), 12, "\"version\": 4");
  spill(path, sealed(text));
  numbers.clear();
  ASSERT_EQ(run(), "");
  EXPECT_EQ(numbers, std::vector<int64_t>{4});
}

} // namespace
