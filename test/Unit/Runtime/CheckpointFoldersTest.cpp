// Folders of checkpoints: which one a run goes on from, which are removed, and
// that nothing that was saved is ever lost.

#include "CheckpointFixture.h"
#include "State/CheckpointFolder.h"

#include <csignal>
#include <sys/file.h>
#include <sys/resource.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class CheckpointFolders : public CheckpointFixture {};

TEST_F(CheckpointFolders, KeepsAsManyAsAskedFor) {
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

TEST_F(CheckpointFolders, SaysWhatItCannotRemove) {
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

TEST_F(CheckpointFolders, NeverMixesRuns) {
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

TEST_F(CheckpointFolders, GoesOnFromNoOtherThanTheNewest) {
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

TEST_F(CheckpointFolders, LeavesNoLockThatKeepsOthersOut) {
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

TEST_F(CheckpointFolders, KeepsTheOthersWhereTheDiskIsFull) {
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

TEST_F(CheckpointFolders, IsNamedWhereItsFolderIsByNow) {
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

TEST_F(CheckpointFolders, TakesNoOtherFolderForItsOwn) {
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

TEST_F(CheckpointFolders, IsKnownByItsName) {
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

TEST_F(CheckpointFolders, NamesTheLastWhereTheFolderIsByNow) {
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

} // namespace
