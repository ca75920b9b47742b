// Trainings that save checkpoints, for the tests of those.

#ifndef ACCEL_TEST_UNIT_RUNTIME_CHECKPOINTFIXTURE_H
#define ACCEL_TEST_UNIT_RUNTIME_CHECKPOINTFIXTURE_H

#include "Files.h"
#include "RunFixture.h"
#include "TinyTraining.h"

#include <filesystem>
#include <set>

namespace accel::rt::test {

namespace fs = std::filesystem;

class CheckpointFixture : public RunTest {
protected:
  CheckpointFixture() {
    options.step = [this](const StepResult &step) {
      steps.push_back(step);
      return Status();
    };
    options.warn = [this](const std::string &text) { warning = text; };
  }
  /// The same training on one rank or two: 'rows' is padded on two.
  static Executable training(int64_t ranks) {
    Executable executable = tinyTraining(ranks, 2 / ranks);
    if (ranks == 2)
      executable.states[1].logicalShape = {2};
    return executable;
  }
  /// Runs up to `count` steps in all; `from` empty: from the start.
  std::string train(const Executable &executable, int64_t count,
                    const std::string &from = "", const std::string &to = "") {
    steps.clear();
    write(executable, tinyTrainingSections(kernels));
    options.outputs.clear();
    options.steps = count;
    options.resume = from;
    options.checkpoint = to;
    if (to.empty())
      options.saveEvery = options.keep = 0;
    options.saveWeights = folder / "w.safetensors";
    return run();
  }
  std::vector<double> losses() const {
    std::vector<double> values;
    for (const StepResult &step : steps)
      values.push_back(step.find("loss")->value);
    return values;
  }
  std::set<std::string> names(const std::string &path) const {
    std::set<std::string> found;
    for (const auto &entry : fs::directory_iterator(path))
      found.insert(entry.path().filename());
    return found;
  }

  std::string kernels, warning;
  std::vector<StepResult> steps;
};

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_CHECKPOINTFIXTURE_H
