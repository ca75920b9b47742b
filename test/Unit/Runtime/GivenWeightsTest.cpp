// Weights that a run is given: what they must be, and where they go.

#include "Data/Safetensors.h"
#include "Files.h"
#include "RunFixture.h"
#include "TinyEvaluation.h"

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::Not;

namespace {

struct Given {
  std::string name;
  std::vector<int64_t> shape;
  float value;
};

class GivenWeights : public RunTest {
protected:
  GivenWeights() {
    options.warn = [this](const std::string &text) {
      warnings.push_back(text);
    };
    options.step = [this](const StepResult &step) {
      losses.push_back(step.find("loss")->value);
      return Status();
    };
  }
  void writeTraining(const Executable &executable) {
    write(executable, tinyTrainingSections(kernels));
    options.outputs.clear();
  }
  /// A file of tensors of one value each.
  std::string writeWeights(const std::string &name,
                           const std::vector<Given> &tensors) {
    std::vector<SafetensorsEntry> entries;
    std::map<std::string, float> values;
    for (const Given &each : tensors) {
      entries.push_back({each.name, DType::F32, each.shape});
      values[each.name] = each.value;
    }
    std::string text = safetensorsHeader(entries);
    for (const SafetensorsEntry &entry : entries)
      for (int64_t i = 0; i < numElements(entry.shape); ++i)
        text.append(reinterpret_cast<const char *>(&values[entry.name]), 4);
    spill(folder / name, text);
    return folder / name;
  }
  /// What tinyTraining has, with some w.
  static std::vector<Given> weightsOf(float w, float tied) {
    return {{"net/w", {2, 2}, w},
            {"tied", {2, 2}, tied},
            {"rows", {2}, 1},
            {"mask", {3}, 7}};
  }
  std::string kernels;
  std::vector<std::string> warnings;
  std::vector<double> losses;
};

TEST_F(GivenWeights, AreOneValueOfOneParameter) {
  writeTraining(tinyTraining());
  options.weights = writeWeights("w", weightsOf(5, 5));
  EXPECT_EQ(run(), "");
  EXPECT_EQ(losses, std::vector<double>{2 + 5}); // x is 0.5, 1.5
  options.weights = writeWeights("w", weightsOf(5, 6));
  EXPECT_EQ(run(), "expected the same value of 'net/w' and 'tied', which are "
                   "one parameter of the program, found two in '" +
                       options.weights +
                       "': they are weights of a model that does not tie them");
  auto given = weightsOf(5, 5);
  given[1].shape = {4};
  options.weights = writeWeights("w", given);
  EXPECT_EQ(run(), "expected f32 [2, 2] for the parameter 'net/w', found f32 "
                   "[4] in '" +
                       options.weights + "'");
  // One name is enough, and any of them.
  given.erase(given.begin());
  given[0] = {"tied", {2, 2}, 4};
  options.weights = writeWeights("w", given);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(losses.back(), 2 + 4);
  EXPECT_TRUE(warnings.empty());
}

/// Of a checkpoint, whose states have one of their names each.
TEST_F(GivenWeights, AreFoundByAnyName) {
  writeTraining(tinyTraining());
  options.weights = writeWeights("w", weightsOf(5, 5));
  options.checkpoint = folder / "c";
  ASSERT_EQ(run(), ""); // lr is 0.1, x is 0.5, 1.5
  options.checkpoint.clear();
  options.weights = folder / "c";
  Executable executable = tinyTraining();
  auto rename = [&](const std::string &name, const std::string &alias) {
    executable.states[0].name = name;
    executable.states[0].aliases = {alias};
    executable.programs[0].buffers[0].source = name;
    std::get<ReadCommand>(executable.programs[0].bodies[0].commands[0].what)
        .name = name;
    writeTraining(executable);
    return run();
  };
  EXPECT_EQ(rename("tied", "net/w"), "");
  EXPECT_EQ(losses.back(), 2 + (5 - 0.1f * 2));
  EXPECT_EQ(rename("other", "tied"), "");
  EXPECT_EQ(losses.back(), 2 + (5 - 0.1f * 2));
  EXPECT_THAT(rename("other", "another"),
              HasSubstr("expected the parameter 'other' in the checkpoint '"));
  // Two states of other values are no single one.
  executable = tinyTraining();
  executable.states[0].aliases.clear();
  Program &program = executable.programs[0];
  View kept = addBuffer(program, "tied", "state", {2, 2});
  program.buffers.back().source = "tied";
  StatePlan tied = executable.states[3]; // a moment's zeros
  tied.name = "tied";
  tied.role = "parameter";
  executable.states.push_back(tied);
  program.bodies[0].commands.push_back(
      command(ReadCommand{"state", "tied", {{2, 2}, {{}, {}}}, kept}, "tied"));
  options.weights.clear();
  options.checkpoint = folder / "two";
  writeTraining(executable);
  ASSERT_EQ(run(), "");
  options.checkpoint.clear();
  options.weights = folder / "two";
  executable = tinyTraining();
  EXPECT_EQ(rename("net/w", "tied"),
            "expected the same value of 'net/w' and 'tied', which are one "
            "parameter of the program, found two in the checkpoint '" +
                (folder / "two/step-00000001") +
                "': it is of a model that does not tie them");
}

TEST_F(GivenWeights, AreNamedWhereTheyWereFolded) {
  Executable executable = tinyTraining();
  executable.folded = {{"bias", std::vector<int64_t>{3}}, {"head", {}}};
  writeTraining(executable);
  auto given = weightsOf(5, 5);
  options.weights = writeWeights("w", given);
  EXPECT_EQ(run(), "");
  EXPECT_TRUE(warnings.empty());
  given.push_back({"bias", {3}, 1});
  options.weights = writeWeights("w", given);
  EXPECT_EQ(run(), "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              HasSubstr("the program does not read 'bias' of '" +
                        options.weights + "': the exporter folded"));
  given.push_back({"head", {9}, 1});
  options.weights = writeWeights("w", given);
  EXPECT_EQ(run(), "");
  EXPECT_THAT(warnings.back(), HasSubstr("not read 'bias' and 1 more of '"));
  given[4].shape = {2};
  options.weights = writeWeights("w", given);
  EXPECT_EQ(run(), "expected shape [3] of parameter 'bias' in '" +
                       options.weights + "', found [2]");
}

/// From a checkpoint as from a file of the same values.
TEST_F(GivenWeights, AreWidened) {
  writeTraining(tinyTraining());
  options.saveWeights = folder / "w";
  options.checkpoint = folder / "c";
  ASSERT_EQ(run(), "");
  Executable wide = tinyExecutable();
  wide.states = tinyTraining().states;
  wide.states.resize(3);
  for (StatePlan &state : wide.states) {
    state.dtype = DType::F64;
    if (!state.first.section.empty())
      state.first.stored = DType::F32;
    else
      state.first.fill = bytesOf(0.);
  }
  Program &program = wide.programs[0];
  program.buffers[1] = {"w", "state", "device", 64, 32, 1, 32, "", "net/w"};
  View w = contiguousView(1, {2, 2}, DType::F64);
  Part part{{2, 2}, {{}, {}}};
  program.bodies[0].commands = {
      command(ReadCommand{"state", "net/w", part, w}, "W")};
  wide.outputs.push_back({"w", DType::F64, part.shape});
  program.bodies[1].commands.push_back(
      command(WriteCommand{"output", "w", part, w}, "W"));
  write(wide);
  options.checkpoint.clear();
  options.saveWeights.clear();
  std::string found[2];
  for (int i : {0, 1}) {
    options.weights = folder / (i ? "c" : "w");
    ASSERT_EQ(run(), "");
    found[i] = slurp(folder / "out/w.npy");
  }
  EXPECT_EQ(found[0], found[1]);
  double first = 1 - 0.1f * 2; // x is 0.5, 1.5
  first = static_cast<float>(first);
  EXPECT_EQ(found[0].substr(found[0].size() - 32, 8),
            std::string(reinterpret_cast<const char *>(&first), 8));
  // Training goes on with its own bits alone.
  Executable training = tinyTraining();
  training.states[3].dtype = DType::F64; // a moment, that no command reads
  training.states[3].first.fill = bytesOf(0.);
  auto &read =
      std::get<ReadCommand>(training.programs[0].bodies[0].commands[3].what);
  read.target.dtype = DType::F64;
  BufferPlan &moment = training.programs[0].buffers[read.target.buffer];
  moment.bytes = moment.slotStride = 32;
  writeTraining(training);
  options.weights.clear();
  options.resume = folder / "c";
  options.steps = 2;
  EXPECT_THAT(run(), HasSubstr("expected f64 [2, 2] for the moment 'exp_avg/"
                               "net/w', found f32 [2, 2] in '"));
}

/// A frozen parameter that no rank keeps as it was given is copied into each
/// checkpoint: who goes on has it, and so has who goes on from there.
TEST_F(GivenWeights, GoIntoCheckpoints) {
  Executable executable = tinyTraining(2);
  executable.states[0].frozen = true;
  executable.programs[0].buffers[0].source.clear();
  auto train = [&](int64_t steps, std::string weights, std::string from,
                   std::string to) {
    writeTraining(executable);
    options.steps = steps;
    options.weights = weights;
    options.resume = from.empty() ? "" : folder / from;
    options.checkpoint = to.empty() ? "" : folder / to;
    options.saveWeights = folder / "saved";
    return run();
  };
  std::string given = writeWeights("w", {{"net/w", {2, 2}, 5},
                                         {"tied", {2, 2}, 5},
                                         {"rows", {4}, 1},
                                         {"mask", {3}, 7}});
  ASSERT_EQ(train(1, given, "", "a"), "");
  std::string weights = slurp(folder / "saved");
  spill(given, ""); // nobody needs it any more
  ASSERT_EQ(train(2, "", "a", "b"), "");
  ASSERT_EQ(train(3, "", "b", ""), "");
  // x is 0.5, …, 3.5, and each run begins with what it was given of w.
  EXPECT_EQ(losses, (std::vector<double>{8 + 5, 8 + 5, 8 + 5}));
  std::string path = folder / "b/step-00000002/";
  EXPECT_THAT(slurp(path + "checkpoint.json"), HasSubstr("\"net/w\""));
  for (const std::string &file : {folder / "saved", path + "model.safetensors"})
    EXPECT_THAT(slurp(file), HasSubstr(weights.substr(weights.size() - 16)));
  // The model's own are where they were.
  ASSERT_EQ(train(1, "", "", "c"), "");
  EXPECT_THAT(slurp(folder / "c/step-00000001/checkpoint.json"),
              Not(HasSubstr("\"net/w\"")));
}

/// While a run trains, its file must stay what it was.
TEST_F(GivenWeights, AreNotSavedAsOthers) {
  Executable executable = tinyTraining();
  executable.states[0].frozen = true;
  executable.programs[0].buffers[0].source.clear();
  writeTraining(executable);
  options.weights = writeWeights("w", weightsOf(5, 5));
  options.checkpoint = folder / "c";
  options.steps = 200;
  options.saveEvery = 1;
  std::string other = slurp(writeWeights("other", weightsOf(6, 6)));
  options.step = [&](const StepResult &) {
    std::fstream(options.weights, std::ios::in | std::ios::out) << other;
    return Status();
  };
  // The first checkpoint may be written before the file is another, or behind.
  std::string found = "expected the weights of 'net/w' as they were when the "
                      "run began, found other bytes in '" +
                      options.weights + "'; ";
  EXPECT_THAT(run(),
              testing::AnyOf(HasSubstr(found + "the last checkpoint is"),
                             HasSubstr(found + "no checkpoint was saved")));
}

} // namespace
