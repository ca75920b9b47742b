// Evaluations between steps: when they come, how they end, and that they take
// nothing of the training along.

#include "Files.h"
#include "RunFixture.h"
#include "TinyEvaluation.h"

#include <csignal>
#include <filesystem>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

namespace fs = std::filesystem;

class Evaluate : public RunTest {
protected:
  Evaluate() {
    options.warn = [this](const std::string &text) { warning = text; };
    options.step = [this](const StepResult &step) {
      steps.push_back(step);
      return Status();
    };
  }
  void writeTraining(const Executable &executable) {
    write(executable, tinyTrainingSections(kernels));
    options.outputs.clear();
    options.evalInputs = folder.path;
  }
  std::string kernels, warning;
  std::vector<StepResult> steps;
};

TEST_F(Evaluate, ComesAfterTheStepsThatItDivides) {
  writeTraining(tinyEvaluation(2));
  options.evalEvery = 2;
  options.steps = 5;
  options.checkpoint = folder / "c";
  options.saveEvery = 3;
  ASSERT_EQ(run(), "");
  // x is 0.5, …, 3.5, so that g is 8: the loss of a step is of w before it.
  for (int i : {0, 2, 4})
    EXPECT_FALSE(steps[i].evalLoss);
  for (int i : {1, 3})
    EXPECT_EQ(*steps[i].evalLoss,
              static_cast<float>(steps[i + 1].find("loss")->value - 8));
  EXPECT_EQ(warning, "");
  // Their numbers count from the first step of all, and none may be due.
  options.checkpoint.clear();
  options.saveEvery = 0;
  options.resume = folder / "c/step-00000003";
  options.steps = 4;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(steps.back().evalLoss, steps[3].evalLoss);
  EXPECT_EQ(warning, "");
  options.evalEvery = 3;
  options.steps = 5;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(warning, "option '--eval-every' 3 evaluates nothing in a run of "
                     "the steps 4 to 5");
}

/// What a loss is made of is told by no file.
TEST_F(Evaluate, DividesWhatTermsComeTo) {
  writeTraining(tinyQuotient());
  options.entry = "eval";
  options.evalInputs.clear();
  options.outputs = folder / "out";
  ASSERT_EQ(run(), "");
  EXPECT_EQ(*result.evalLoss, kTinyState[1] / kTinyState[3]);
  EXPECT_EQ(countFiles(options.outputs), 0u);
}

/// What is due is saved before an evaluation, which may fail: before the first
/// one, where it is written while the others are made.
TEST_F(Evaluate, TakesNoCheckpointAlong) {
  Executable executable = tinyEvaluation();
  executable.programs[0].bodies[4].commands.push_back(
      command(KernelCommand{"tiny_leave", {}, {}, 1, 1}, "Leave"));
  writeTraining(executable);
  options.evalEvery = 2;
  options.steps = 4;
  options.checkpoint = folder / "c";
  options.saveEvery = 2;
  for (bool sync : {false, true}) {
    fs::remove_all(options.checkpoint);
    options.checkpointSync = sync;
    EXPECT_THAT(run(),
                HasSubstr("ended with exit code 3; the last checkpoint is '" +
                          (folder / "c/step-00000002") + "'"));
  }
}

/// A TensorProto of zeros, of fewer than 128 bytes a field.
std::string tensorProto(const TensorPlan &tensor, const std::string &name) {
  std::string text;
  auto add = [&](char field, const std::string &bytes) {
    text += {field, static_cast<char>(bytes.size())};
    text += bytes;
  };
  for (int64_t size : tensor.shape)
    text += {'\x08', static_cast<char>(size)};
  text += {'\x10', tensor.dtype == DType::I64 ? '\x07' : '\x01'};
  if (!name.empty())
    add('\x42', name);
  int64_t bytes = numElements(tensor.shape) * dtypeBytes(tensor.dtype);
  text += {'\x4a', static_cast<char>(bytes % 128 + 128),
           static_cast<char>(bytes / 128)};
  return text + std::string(static_cast<size_t>(bytes), 0);
}

/// The files of a test set have the numbers of the model's inputs, whichever of
/// them an entry reads; a file that names its tensor is that one's.
TEST_F(Evaluate, FindsItsInputsInTheSameFolder) {
  Executable executable = tinyEvaluation(1, 1, 8);
  writeTraining(executable);
  fs::remove(folder / "x.npy");
  for (bool named : {true, false}) {
    for (size_t i = 0; i < executable.inputs.size(); ++i) {
      const TensorPlan &input = executable.inputs[i];
      spill(folder / ("input_" + std::to_string(i) + ".pb"),
            tensorProto(input, named ? input.name : ""));
    }
    options.entry = "";
    options.evalEvery = 1;
    EXPECT_EQ(run(), "") << named;
    EXPECT_TRUE(steps.back().evalLoss);
  }
  // Of those that there are, none is another's.
  fs::remove(folder / "input_2.pb");
  options.entry = "eval";
  options.evalEvery = 0;
  options.evalInputs.clear();
  EXPECT_EQ(run(), "expected input 'labels' (i64 [2, 8]) as 'labels.npy' or "
                   "'input_2.pb' in '" +
                       folder.path + "', found neither");
}

/// Tokens of an evaluation of `batches` batches, and x and labels of the steps.
class EvaluateData : public Evaluate {
protected:
  void writeTokens(uintmax_t batches) {
    writeTraining(tinyEvaluation(1, 1, 8));
    options.evalInputs.clear(); // which the data would leave unread
    options.data = folder / "d.bin";
    options.evalData = folder / "e.bin";
    options.dataLabels = "same";
    spill(options.data, std::string(32, 0));
    spill(options.evalData, "");
    fs::resize_file(options.evalData, 32 * batches);
  }
};

TEST_F(EvaluateData, SaysOfWhichBatchAnErrorIs) {
  writeTokens(1 << 22);
  options.evalEvery = 2;
  options.steps = 2;
  options.step = [&](const StepResult &) {
    fs::resize_file(options.evalData, 16);
    return Status();
  };
  EXPECT_THAT(run(), HasSubstr(" of 4194304 of the evaluation: node 'labels': "
                               "expected "));
}

/// The signal comes when the checkpoint is there, and with it the evaluation.
TEST_F(EvaluateData, GivesUpWhereTheRunIsToEnd) {
  for (int64_t count : {2, 3}) {
    steps.clear();
    writeTokens(1 << 22);
    options.evalEvery = options.saveEvery = 2;
    options.steps = count;
    options.checkpoint = folder / std::to_string(count);
    options.saveWeights = folder / "w";
    options.step = [&](const StepResult &step) {
      steps.push_back(step);
      while (step.step == 1 &&
             !fs::exists(options.checkpoint + "/step-00000002"))
        ;
      if (step.step == 1)
        raise(SIGTERM);
      return Status();
    };
    EXPECT_EQ(run(), "interrupted by SIGTERM after step 2 of " +
                         std::to_string(count) + "; the last checkpoint is '" +
                         options.checkpoint + "/step-00000002'");
    EXPECT_EQ(result.interruptedBy, SIGTERM);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_FALSE(steps[1].evalLoss);
    EXPECT_FALSE(fs::exists(options.saveWeights));
  }
}

} // namespace
