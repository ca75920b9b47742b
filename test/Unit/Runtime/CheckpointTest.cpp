// Checkpoints: any layout goes on from any other, nothing damaged or of another
// program is loaded, and nothing that was saved is ever lost.

#include "Files.h"
#include "RunFixture.h"
#include "SealedManifest.h"
#include "State/CheckpointFolder.h"
#include "TinyTraining.h"

#include <csignal>
#include <filesystem>
#include <set>
#include <sys/file.h>
#include <sys/resource.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

namespace fs = std::filesystem;

class Checkpoint : public RunTest {
protected:
  Checkpoint() {
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
      values.push_back(step.loss);
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

TEST_F(Checkpoint, KeepsAsManyAsAskedFor) {
  ASSERT_EQ(train(training(2), 6), "");
  std::vector<double> unbroken = losses();
  options.saveEvery = 1;
  options.keep = 2;
  ASSERT_EQ(train(training(2), 4, "", folder / "c"), "");
  EXPECT_EQ(names(folder / "c"),
            (std::set<std::string>{"step-00000003", "step-00000004"}));
  // Those that an earlier run left count, too; whoever removes one by hand is
  // not in the way.
  fs::remove_all(folder / "c/step-00000003");
  options.keep = 1;
  ASSERT_EQ(train(training(1), 6, folder / "c", folder / "c"), "");
  EXPECT_EQ(names(folder / "c"), std::set<std::string>{"step-00000006"});
  EXPECT_EQ(losses(),
            std::vector<double>(unbroken.begin() + 4, unbroken.end()));
  ASSERT_EQ(train(training(2), 6, folder / "c"), ""); // it is whole
  options.resume.clear();
  options.keep = 3;
  EXPECT_THAT(run(), HasSubstr("option '--keep' expects --checkpoint"));
}

TEST_F(Checkpoint, SaysWhatItCannotRemove) {
  options.saveEvery = 1;
  options.keep = 1;
  ASSERT_EQ(train(training(1), 1, "", folder / "c"), "");
  std::ofstream(folder / "c/step-00000001/mine.txt") << "notes";
  EXPECT_THAT(train(training(1), 2, folder / "c", folder / "c"),
              AllOf(HasSubstr("cannot remove 'step-00000001', which is older "
                              "than those that --keep keeps"),
                    HasSubstr("the last checkpoint is '" +
                              (folder / "c/step-00000002"))));
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

TEST_F(Checkpoint, NeverMixesRuns) {
  ASSERT_EQ(train(training(2), 3, "", folder / "a"), "");
  ASSERT_EQ(train(training(2), 2, "", folder / "b"), "");
  EXPECT_THAT(train(training(2), 3, "", folder / "a"),
              HasSubstr("expected a folder without checkpoints, found"));
  EXPECT_THAT(train(training(2), 4, folder / "a", folder / "b"),
              HasSubstr("expected no checkpoint in"));
  ASSERT_EQ(train(training(2), 5, folder / "a", folder / "a"), "");
  EXPECT_THAT(train(training(2), 6, folder / "a/step-00000003", folder / "a"),
              HasSubstr("give another --checkpoint"));
  EXPECT_EQ(train(training(2), 6, folder / "a/step-00000003", folder / "d"),
            "");
  EXPECT_EQ(names(folder / "a"),
            (std::set<std::string>{"step-00000003", "step-00000005"}));
  // One run at a time, and what a killed one left is no checkpoint.
  fs::create_directory(folder / "a/.tmp-step-00000007");
  spill(folder / "a/.tmp-step-00000007/model.safetensors", "half");
  {
    CheckpointFolder held;
    ASSERT_TRUE(held.open(folder / "a").ok());
    EXPECT_THAT(train(training(2), 6, folder / "a", folder / "a"),
                HasSubstr("to be the only run that writes checkpoints"));
  }
  EXPECT_EQ(names(folder / "a"),
            (std::set<std::string>{"step-00000003", "step-00000005"}));
  // A reader's lock of the folder is no run's.
  FileHandle reader(open((folder / "a").c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(flock(reader.get(), LOCK_EX | LOCK_NB), 0);
  // Nor does a killed run leave a lock.
  spill(folder / "a/.lock", "");
  EXPECT_EQ(train(training(2), 6, folder / "a", folder / "a"), "");
  EXPECT_EQ(steps[0].step, 6);
  EXPECT_FALSE(fs::exists(folder / "a/.lock"));
}

TEST_F(Checkpoint, GoesOnFromNoOtherThanTheNewest) {
  ASSERT_EQ(train(training(2), 3, "", folder / "a"), "");
  ASSERT_EQ(train(training(2), 5, folder / "a", folder / "a"), "");
  fs::remove(folder / "a/step-00000005/checkpoint.json");
  EXPECT_THAT(
      train(training(2), 6, folder / "a", folder / "a"),
      HasSubstr("expected the file 'checkpoint.json' in the checkpoint '" +
                folder / "a/step-00000005" +
                "', found none: it is damaged; the one before it is '" +
                folder / "a/step-00000003" + "'"));
  // Nothing is written beside it, either, and no error calls it the last.
  EXPECT_THAT(train(training(2), 6, folder / "a/step-00000003", folder / "a"),
              HasSubstr("expected no checkpoint in"));
  EXPECT_THAT(train(training(2), 6, "", folder / "a"),
              HasSubstr("expected a folder without checkpoints"));
  fs::remove_all(folder / "a/step-00000005");
  EXPECT_EQ(train(training(2), 6, folder / "a", folder / "a"), "");
}

TEST_F(Checkpoint, LeavesNoLockThatKeepsOthersOut) {
  // What a killed run left is for all who may write to the folder, and no
  // others.
  std::string path = folder / "shared", lock = path + "/.lock";
  fs::create_directory(path);
  ASSERT_EQ(chmod(path.c_str(), 02775), 0);
  bool isRoot = geteuid() == 0;
  if (isRoot) {
    ASSERT_EQ(chown(path.c_str(), 65534, 65533), 0);
  }
  struct stat shared, info;
  ASSERT_EQ(stat(path.c_str(), &shared), 0);
  auto stale = std::make_unique<CheckpointFolder>();
  ASSERT_TRUE(stale->open(path).ok());
  ASSERT_EQ(stat(lock.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0220u);
  EXPECT_EQ(info.st_uid, shared.st_uid);
  EXPECT_EQ(info.st_gid, shared.st_gid);
  stale.reset();

  // One that was there is left as it is: it could be another name of any file.
  spill(folder / "other", "");
  ASSERT_EQ(chmod((folder / "other").c_str(), 0600), 0);
  ASSERT_EQ(link((folder / "other").c_str(), lock.c_str()), 0);
  {
    CheckpointFolder open;
    ASSERT_TRUE(open.open(path).ok());
    ASSERT_EQ(stat((folder / "other").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
    EXPECT_EQ(info.st_uid, geteuid());
  }

  // And one that may not be opened is said to be in the way.
  ASSERT_EQ(symlink("nowhere", lock.c_str()), 0);
  CheckpointFolder refused;
  EXPECT_THAT(refused.open(path).message(),
              HasSubstr("cannot open '" + lock + "', which locks the folder"));
}

TEST_F(Checkpoint, KeepsTheOthersWhereTheDiskIsFull) {
  auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  // Too small for the first file, and for the second: a state is so large that
  // only its file is in the way of the limit.
  for (auto [state, file] : {std::pair(2, "model.safetensors"),
                             std::pair(3, "optimizer.safetensors")}) {
    Executable executable = training(2);
    Program &program = executable.programs[0];
    StatePlan &large = executable.states[state];
    large.shape = {1 << 16};
    auto &read = std::get<ReadCommand>(program.bodies[0].commands[state].what);
    read.part = {large.shape, {{}}};
    read.target.shape = large.shape;
    read.target.strides = {1};
    BufferPlan &buffer = program.buffers[read.target.buffer];
    buffer.offset = program.arenas[0].bytes;
    buffer.bytes = buffer.slotStride = 1 << 18;
    program.arenas[0].bytes += 1 << 18;
    std::string to = folder / file, path = to + "/step-00000003";
    ASSERT_EQ(train(executable, 3, "", to), "");
    std::string before = slurp(path + "/checkpoint.json");
    options.saveWeights.clear();
    options.resume = to;
    options.steps = 5;
    rlimit small{(1 << 18) - 1, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    std::string message = run();
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_THAT(message,
                HasSubstr("cannot save the checkpoint '" + to +
                          "/step-00000005': cannot write '" + file +
                          "': File too large; the last checkpoint is '" + path +
                          "'"));
    EXPECT_EQ(names(to), std::set<std::string>{"step-00000003"});
    EXPECT_EQ(slurp(path + "/checkpoint.json"), before);
    EXPECT_EQ(train(executable, 5, to, to), "");
  }
  signal(SIGXFSZ, handler);
}

TEST_F(Checkpoint, IsNamedWhereItsFolderIsByNow) {
  // A step that nobody can be told of ends the run as a signal does.
  options.step = [this](const StepResult &step) {
    if (step.step == 1)
      fs::rename(folder / "c", folder / "moved");
    return step.step == 1 ? Status() : Status::error("nobody listens");
  };
  std::string message = train(training(2), 1000000, "", folder / "c");
  EXPECT_THAT(message, HasSubstr("nobody listens after step "));
  EXPECT_THAT(message, HasSubstr("; the last checkpoint is '" +
                                 (folder / "moved") + "/step-"));
  EXPECT_EQ(names(folder / "moved").size(), 1u);
  EXPECT_FALSE(fs::exists(folder / "w.safetensors"));
}

TEST_F(Checkpoint, TakesNoOtherFolderForItsOwn) {
  options.step = [this](const StepResult &step) {
    if (step.step == 1) {
      fs::rename(folder / "c", folder / "moved");
      fs::create_directory(folder / "c");
    }
    return step.step == 1 ? Status() : Status::error("nobody listens");
  };
  EXPECT_THAT(
      train(training(2), 1000000, "", folder / "c"),
      HasSubstr("; the last checkpoint is '" + (folder / "moved") + "/step-"));
  EXPECT_EQ(names(folder / "c").size(), 0u);
}

TEST_F(Checkpoint, IsKnownByItsName) {
  ASSERT_EQ(train(training(1), 3, "", folder / "c"), "");
  for (std::string name :
       {"step-9", "step-9999999999999999999", "step-0000009x", "stop-00000009",
        ".tmp-step-00000009"}) {
    fs::copy(folder / "c/step-00000003", folder / ("c/" + name));
    spill(folder / ("c/" + name + "/checkpoint.json"), "no manifest");
  }
  EXPECT_EQ(train(training(1), 4, folder / "c"), "");
  EXPECT_EQ(steps[0].step, 4);
  fs::remove_all(folder / "c/step-00000003");
  EXPECT_THAT(train(training(1), 4, folder / "c"),
              HasSubstr("a folder of them, found none in"));
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

TEST_F(Checkpoint, NamesTheLastWhereTheFolderIsByNow) {
  // As above: the error comes after the second step was told of.
  write(training(2), tinyTrainingSections(kernels));
  options.outputs.clear();
  options.steps = 5;
  options.saveEvery = 1;
  writeNpy(folder / "x.npy", {4}, {1000, 0, 0, 2});
  auto runAndChange = [&](auto change) {
    options.checkpoint = folder / "c";
    options.step = [&, changed = false](const StepResult &) mutable {
      if (!std::exchange(changed, true))
        change();
      return Status();
    };
    return run();
  };
  EXPECT_THAT(runAndChange([&] { fs::rename(folder / "c", folder / "moved"); }),
              HasSubstr("; the last checkpoint is '" +
                        fs::canonical(folder.path).string() +
                        "/moved/step-00000002'"));
  // A checkpoint may be saved while the folder goes.
  EXPECT_THAT(runAndChange([&] {
                std::error_code ignored;
                while (fs::exists(folder / "c"))
                  fs::remove_all(folder / "c", ignored);
              }),
              HasSubstr("; the folder '" + (folder / "c") +
                        "' of the checkpoints is gone"));
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
  text.replace(text.find("\"version\": 4"), 12, "\"version\": 1");
  spill(path, sealed(text));
  EXPECT_EQ(lastBatch(1, 6, "c", ""), unbroken);
  EXPECT_THAT(warning, HasSubstr("does not tell which data it had"));
  spill(folder / "d.bin", std::string(320, '\1'));
  EXPECT_THAT(lastBatch(1, 6, "c", ""),
              HasSubstr("expected 10 samples in the data"));
}

} // namespace
