// Checkpoints: any layout goes on from any other, and nothing damaged or of
// another program is loaded.

#include "CheckpointFixture.h"
#include "SealedManifest.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class Checkpoint : public CheckpointFixture {};

TEST_F(Checkpoint, GoesOnFromAnyLayout) {
  ASSERT_EQ(train(training(1), 6), "");
  std::vector<double> unbroken = losses();
  std::string weights = slurp(options.saveWeights);
  for (int64_t before : {1, 2})
    for (int64_t after : {1, 2}) {
      fs::remove_all(folder / "c");
      options.saveEvery = 2;
      ASSERT_EQ(train(training(before), 3, "", folder / "c"), "");
      EXPECT_EQ(names(folder / "c"),
                (std::set<std::string>{"step-00000002", "step-00000003"}));
      for (std::string from : {"c", "c/step-00000002/"}) {
        ASSERT_EQ(train(training(after), 6, folder / from), "");
        auto first = unbroken.begin() + (from == "c" ? 3 : 2);
        EXPECT_EQ(losses(), std::vector<double>(first, unbroken.end()));
        EXPECT_EQ(steps[0].step, first - unbroken.begin() + 1);
        EXPECT_TRUE(steps.back().last);
        EXPECT_EQ(slurp(options.saveWeights), weights);
      }
      // The same state gives the same files, whoever wrote them.
      static std::string model, optimizer;
      std::string path = folder / "c/step-00000003/";
      if (model.empty()) {
        model = slurp(path + "model.safetensors");
        optimizer = slurp(path + "optimizer.safetensors");
      }
      EXPECT_EQ(slurp(path + "model.safetensors"), model);
      EXPECT_EQ(slurp(path + "optimizer.safetensors"), optimizer);
    }
}

// Two states that ranks keep in one buffer: rows of their own on one rank, and
// on two, of which the second has padding alone.
TEST_F(Checkpoint, KnowsTheRowsOfAStackByTheirOwnNames) {
  ASSERT_EQ(train(training(1), 4), "");
  std::vector<double> unbroken = losses();
  for (int64_t before : {1, 2})
    for (int64_t after : {1, 2}) {
      fs::remove_all(folder / "c");
      auto stacked = [](int64_t ranks) {
        return stackedTraining(ranks, 2 / ranks, 2 * ranks - 2);
      };
      ASSERT_EQ(train(stacked(before), 2, "", folder / "c"), "");
      ASSERT_EQ(train(stacked(after), 4, folder / "c"), "");
      EXPECT_EQ(losses(),
                std::vector<double>(unbroken.begin() + 2, unbroken.end()));
      for (const std::string &text :
           {slurp(folder / "c/step-00000002/checkpoint.json"),
            slurp(folder / "c/step-00000002/model.safetensors"),
            slurp(options.saveWeights)}) {
        EXPECT_THAT(text, HasSubstr("\"row.0\""));
        EXPECT_THAT(text, HasSubstr("\"row.1\""));
        EXPECT_THAT(text, testing::Not(HasSubstr("\"rows\"")));
      }
    }
}

TEST_F(Checkpoint, CountsStepsInAll) {
  ASSERT_EQ(train(training(2), 3, "", folder / "c"), "");
  // For whoever cannot write what comes after it.
  EXPECT_EQ(result.lastCheckpoint,
            "; the last checkpoint is '" + (folder / "c/step-00000003") + "'");
  std::string weights = slurp(options.saveWeights);
  for (int64_t count : {3, 2}) {
    ASSERT_EQ(train(training(1), count, folder / "c", folder / "c"), "");
    EXPECT_THAT(warning, HasSubstr("step-00000003' has seen 3 of " +
                                   std::to_string(count) + " steps: none"));
    EXPECT_TRUE(steps.empty());
    EXPECT_EQ(slurp(options.saveWeights), weights);
  }
  EXPECT_EQ(names(folder / "c"), std::set<std::string>{"step-00000003"});
  EXPECT_THAT(train(training(1), 0, folder / "c"),
              HasSubstr("option '--resume' expects --steps"));
  options.saveEvery = 2;
  options.resume.clear();
  options.steps = 4;
  EXPECT_THAT(run(), HasSubstr("option '--save-every' expects --checkpoint"));
}

/// Steps go on while a checkpoint is written, from a copy, or wait: its bytes
/// are the same, and where the run has ended all of them are there.
TEST_F(Checkpoint, IsOfItsStepWhateverComesWhileItIsWritten) {
  options.saveEvery = 3;
  std::map<std::string, std::string> files;
  for (bool sync : {true, false})
    for (int64_t ranks : {1, 2}) {
      fs::remove_all(folder / "c");
      options.checkpointSync = sync;
      ASSERT_EQ(train(training(ranks), 40, "", folder / "c"), "");
      EXPECT_EQ(names(folder / "c").size(), 14u);
      int64_t told = 0;
      for (const StepResult &step : steps) {
        EXPECT_LE(step.savedStep, step.step);
        if (!step.savedStep)
          continue;
        EXPECT_GT(step.savedStep, told);
        told = step.savedStep;
        if (sync) {
          EXPECT_EQ(step.savedStep, step.step);
        }
      }
      EXPECT_EQ(told, 40) << "the last one is there before its step is told";
      for (const std::string &name : names(folder / "c"))
        for (const char *file :
             {"model.safetensors", "optimizer.safetensors"}) {
          std::string path = name + "/" + file,
                      text = slurp(folder / ("c/" + path));
          EXPECT_EQ(files.emplace(path, text).first->second, text) << path;
        }
    }
  options.checkpointSync = true;
  EXPECT_THAT(train(training(1), 1), // no folder
              HasSubstr("option '--checkpoint-sync' expects --checkpoint"));
}

/// Not only where the next checkpoint is due.
TEST_F(Checkpoint, EndsTheRunWhereWritingMeanwhileFails) {
  options.begin = [this](const RunStart &) {
    fs::remove_all(folder / "c");
    return Status();
  };
  options.saveEvery = 20000;
  EXPECT_THAT(train(training(2), 39999, "", folder / "c"),
              HasSubstr("cannot save the checkpoint '" +
                        (folder / "c/step-00020000") +
                        "': cannot write '.tmp-step-00020000'"));
  EXPECT_GE(steps.size(), 19999u);
  EXPECT_LT(steps.size(), 38000u);
}

TEST_F(Checkpoint, NamesTheFileThatIsDamaged) {
  ASSERT_EQ(train(training(2), 3, "", folder / "c"), "");
  ASSERT_EQ(train(training(1), 3, folder / "c"), "");
  for (std::string name :
       {"checkpoint.json", "model.safetensors", "optimizer.safetensors"}) {
    std::string path = folder / "c/step-00000003/" + name, text = slurp(path);
    // Every byte of what is hashed whole would take minutes.
    for (size_t at = 0; at < text.size(); at += 23) {
      std::string other = text;
      other[at] ^= 4;
      spill(path, other);
      EXPECT_THAT(train(training(1), 4, folder / "c"), HasSubstr(name)) << at;
      EXPECT_TRUE(steps.empty());
    }
    for (size_t length : {size_t(0), size_t(7), text.size() - 1}) {
      spill(path, text.substr(0, length));
      EXPECT_THAT(train(training(1), 4, folder / "c"), HasSubstr(name));
    }
    fs::remove(path);
    EXPECT_NE(train(training(1), 4, folder / "c"), "");
    spill(path, text);
  }
  EXPECT_EQ(train(training(1), 4, folder / "c"), "");
  EXPECT_THAT(train(training(1), 4, folder / "none"),
              HasSubstr("expected a checkpoint, or a folder of them, found "
                        "none in"));
}

TEST_F(Checkpoint, HoldsItsFilesAgainstTheManifest) {
  ASSERT_EQ(train(training(1), 3, "", folder / "c"), "");
  std::string path = folder / "c/step-00000003/";
  auto withChange = [&](std::string name, std::string from, std::string to) {
    std::string text = slurp(path + name), changed = text;
    changed.replace(changed.find(from), from.size(), to);
    spill(path + name, name == kManifestFile ? sealed(changed) : changed);
    std::string message = train(training(1), 4, folder / "c");
    spill(path + name, text);
    return message;
  };
  // A field that means nothing to who reads tensors.
  EXPECT_THAT(
      withChange("model.safetensors", "\"pt\"", "\"tf\""),
      HasSubstr("model.safetensors': it is damaged: the header does not "
                "match its hash in the manifest"));
  EXPECT_THAT(withChange(kManifestFile, "\"net/w\"", "\"net/v\""),
              HasSubstr("expected the state 'net/v' in '" + path +
                        "model.safetensors', found none"));
  fs::remove(path + "optimizer.safetensors");
  EXPECT_THAT(train(training(1), 4, folder / "c"),
              HasSubstr("cannot open '" + path + "optimizer.safetensors'"));
}

TEST_F(Checkpoint, RefusesThatOfAnotherProgram) {
  ASSERT_EQ(train(training(2), 3, "", folder / "c"), "");
  auto error = [&](auto change) {
    Executable executable = training(1);
    change(executable);
    return train(executable, 4, folder / "c");
  };
  EXPECT_THAT(error([](Executable &e) { e.seed = 8; }),
              HasSubstr("expected a program with seed 7"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].logicalShape = {1}; }),
              HasSubstr("expected f32 [1] for the parameter 'rows', found f32 "
                        "[2] in"));
  EXPECT_THAT(error([](Executable &e) {
                e.states[2].dtype = DType::I32;
                for (Command &command : e.programs[0].bodies[0].commands)
                  if (auto &read = std::get<ReadCommand>(command.what);
                      read.name == "mask")
                    read.target.dtype = DType::I32;
              }),
              HasSubstr("expected i32 [3] for the buffer 'mask', found f32 "
                        "[3] in"));
  // Another name: one is missing, and one is too many.
  EXPECT_THAT(error([](Executable &e) {
                auto rename = [](std::string &name) {
                  if (name == "exp_avg/net/w")
                    name = "momentum/net/w";
                };
                rename(e.states[3].name);
                for (Command &command : e.programs[0].bodies[0].commands)
                  rename(std::get<ReadCommand>(command.what).name);
                for (BufferPlan &buffer : e.programs[0].buffers)
                  rename(buffer.source);
              }),
              HasSubstr("expected the moment 'momentum/net/w' in the "
                        "checkpoint"));
  EXPECT_THAT(error([](Executable &e) {
                auto &load = e.programs[0].bodies[0].commands;
                load.erase(load.begin() + 3);
                e.programs[0].buffers[3].source.clear();
                e.states.erase(e.states.begin() + 3);
              }),
              HasSubstr("which the program does not have: it is of another "
                        "optimizer"));
}

TEST_F(Checkpoint, RefusesStatesThatAreKeptNowhere) {
  Executable executable = training(1);
  executable.programs[0].buffers[0].source.clear();
  EXPECT_THAT(train(executable, 3, "", folder / "c"),
              HasSubstr("expected a buffer that keeps state 'net/w', found "
                        "none: its value cannot be saved"));
  options.saveWeights.clear();
  options.checkpoint = folder / "c";
  EXPECT_THAT(run(), HasSubstr("expected a buffer that keeps state 'net/w'"));
}

TEST_F(Checkpoint, SavesNoStepWithoutANumber) {
  // From the third step on the loss is NaN (TinyKernels.cpp).
  write(training(2), tinyTrainingSections(kernels));
  options.outputs.clear();
  options.steps = 5;
  options.checkpoint = folder / "c";
  options.saveEvery = 1;
  writeNpy(folder / "x.npy", {4}, {1000, 0, 0, 2});
  EXPECT_THAT(run(), HasSubstr("step 3: the loss is not finite"));
  EXPECT_EQ(names(folder / "c"),
            (std::set<std::string>{"step-00000001", "step-00000002"}));
}

TEST_F(Checkpoint, GoesOnInTheOrderOfTheData) {
  std::vector<uint16_t> tokens(10 * 8);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<uint16_t>(i);
  spill(folder / "d.bin",
        std::string(reinterpret_cast<char *>(tokens.data()), 160));
  options.data = folder / "d.bin";
  options.seed = 5;
  auto lastBatch = [&](int64_t ranks, int64_t count, std::string from,
                       std::string to) {
    write(tinyTraining(ranks, 4 / ranks, 8), tinyTrainingSections(kernels));
    options.steps = count;
    options.resume = from.empty() ? "" : folder / from;
    options.checkpoint = to.empty() ? "" : folder / to;
    std::string message = run();
    return message.empty() ? slurp(folder / "out/seen.input_ids.npy") : message;
  };
  std::string unbroken = lastBatch(1, 6, "", "");
  EXPECT_NE(lastBatch(1, 3, "", "c"), unbroken);
  options.seed.reset(); // it is the checkpoint's
  EXPECT_EQ(lastBatch(1, 6, "c", ""), unbroken);
  options.seed = 6;
  EXPECT_THAT(lastBatch(1, 6, "c", ""),
              HasSubstr("expected 5 as the data's seed, as the checkpoint"));
  options.seed.reset();
  // Other data of the same length: a bit of one token.
  std::string data = slurp(folder / "d.bin"), other = data;
  other[97] ^= 1;
  spill(folder / "e.bin", other);
  options.data = folder / "e.bin";
  EXPECT_THAT(lastBatch(1, 6, "c", ""),
              HasSubstr("expected the data of '" + (folder / "d.bin") +
                        "' as the checkpoint '" + (folder / "c") +
                        "/step-00000003' had them, found others in '" +
                        (folder / "e.bin") + "'"));
  // The same data elsewhere are the same data.
  spill(folder / "e.bin", data);
  EXPECT_EQ(lastBatch(1, 6, "c", ""), unbroken);
  options.data = folder / "d.bin";
  // A checkpoint of version 1 does not tell.
  std::string path = folder / "c/step-00000003/checkpoint.json",
              text = slurp(path);
  size_t from = text.find(", \"file\""), to = text.find(", \"read\"");
  text.erase(from, to - from);
  text.replace(text.find("\"version\": 5"), 12, "\"version\": 1");
  spill(path, sealed(text));
  EXPECT_EQ(lastBatch(1, 6, "c", ""), unbroken);
  EXPECT_THAT(warning, HasSubstr("does not tell which data it had"));
  spill(folder / "d.bin", std::string(320, '\1'));
  EXPECT_THAT(lastBatch(1, 6, "c", ""),
              HasSubstr("expected 10 samples in the data"));
}

} // namespace
