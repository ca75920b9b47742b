// Ranks that die or hang: the others end soon, the error names who it was, and
// no process is left.

#include "AheadExecutable.h"
#include "Run/WhereIs.h"
#include "RunFixture.h"
#include "TinyTraining.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The processes whose parent is `parent`.
std::vector<pid_t> childrenOf(pid_t parent) {
  std::ifstream stream("/proc/" + std::to_string(parent) + "/task/" +
                       std::to_string(parent) + "/children");
  std::vector<pid_t> children;
  for (pid_t child; stream >> child;)
    children.push_back(child);
  return children;
}

bool isAlive(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return bool(stream >> number >> name >> state) && state != "Z";
}

class Supervise : public RunTest {
protected:
  ~Supervise() override {
    if (launcher > 0)
      kill(launcher, SIGKILL), waitpid(launcher, nullptr, 0);
  }

  /// Starts a run in a process of its own, which writes the error to a pipe.
  void start() {
    ASSERT_EQ(pipe(ends), 0);
    launch();
    // Until all ranks are there and past loading.
    int64_t wanted = 0;
    std::unique_ptr<ExecutableFile> file;
    ASSERT_TRUE(ExecutableFile::open(options.executable, file).ok());
    wanted = file->plan().numRanks();
    for (int i = 0; i < 500; ++i) {
      ranks = childrenOf(launcher);
      if (static_cast<int64_t>(ranks.size()) == wanted)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(static_cast<int64_t>(ranks.size()), wanted);
  }

  void launch() {
    launcher = fork();
    if (launcher == 0) {
      // The tests may run where they are ignored, as in the background.
      for (int one : {SIGINT, SIGTERM, SIGHUP})
        signal(one, SIG_DFL);
      prepare();
      std::string message = run();
      ssize_t written = ::write(ends[1], message.data(), message.size());
      _exit(written < 0 || !message.empty());
    }
    close(ends[1]);
  }

  /// The error; fails if there is none within `seconds`.
  std::string wait(double seconds) {
    std::string text;
    double end = now() + seconds;
    char buffer[4096];
    for (;;) {
      pollfd entry{ends[0], POLLIN, 0};
      int left = static_cast<int>((end - now()) * 1000);
      if (left <= 0 || poll(&entry, 1, left) <= 0)
        return text + " (no end within the limit)";
      ssize_t got = read(ends[0], buffer, sizeof buffer);
      if (got <= 0)
        break;
      text.append(buffer, static_cast<size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(launcher, &status, 0);
    launcher = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    return text;
  }

  void expectNoRanks() {
    for (int i = 0; i < 200; ++i) {
      bool alive = false;
      for (pid_t rank : ranks)
        alive |= isAlive(rank);
      if (!alive)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "a rank is left";
  }

  /// What the launcher does before it runs.
  std::function<void()> prepare = [] {};
  pid_t launcher = 0;
  int ends[2];
  std::vector<pid_t> ranks;
};

TEST_F(Supervise, NamesAKilledRankAndEndsTheOthers) {
  for (int signal : {SIGKILL, SIGTERM}) {
    write(meetingExecutable(4));
    options.repeats = 1000000000;
    options.outputs = folder / "out";
    start();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    double begin = now();
    kill(ranks[2], signal);
    std::string message = wait(5);
    EXPECT_LT(now() - begin, 5);
    EXPECT_THAT(message, HasSubstr("rank 2"));
    EXPECT_THAT(message, HasSubstr("by signal " + std::to_string(signal)));
    // A SIGKILL of nobody's is the kernel's.
    auto kernels = HasSubstr("as the kernel does where memory runs out");
    if (signal == SIGKILL)
      EXPECT_THAT(message, kernels);
    else
      EXPECT_THAT(message, ::testing::Not(kernels));
    expectNoRanks();
    EXPECT_EQ(countFiles(folder / "out"), 0u);
  }
}

TEST_F(Supervise, NamesARankThatIsKilledWhileLoading) {
  // Killed the moment it exists, whatever it is doing.
  write(meetingExecutable(4));
  options.repeats = 1000000000;
  start();
  kill(ranks[0], SIGKILL);
  EXPECT_THAT(wait(5), HasSubstr("rank 0"));
  expectNoRanks();
}

TEST_F(Supervise, AnInterruptEndsEverythingInOrder) {
  for (int signal : {SIGINT, SIGTERM}) {
    write(meetingExecutable(3));
    options.repeats = 1000000000;
    start();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(launcher, signal);
    EXPECT_THAT(wait(5), HasSubstr("interrupted by"));
    expectNoRanks();
    EXPECT_EQ(countFiles(folder / "out"), 0u);
  }
}

TEST_F(Supervise, AnInterruptWaitsForNoCheckpointWhileLoading) {
  Executable executable = tinyTraining(2);
  executable.programs[0].bodies[0].commands.push_back(
      command(KernelCommand{"tiny_hang", {}, {}, 1, 1}, "Conv#4"));
  std::string kernels;
  write(executable, tinyTrainingSections(kernels));
  options.outputs.clear();
  options.steps = 5;
  options.checkpoint = folder / "saved";
  start();
  kill(launcher, SIGTERM);
  EXPECT_THAT(wait(20),
              HasSubstr("interrupted by SIGTERM; no checkpoint was saved"));
  expectNoRanks();
}

TEST_F(Supervise, RanksEndWithTheirParent) {
  write(meetingExecutable(3));
  options.repeats = 1000000000;
  start();
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  launcher = 0;
  expectNoRanks();
  EXPECT_EQ(countFiles(folder / "out"), 0u);
}

TEST_F(Supervise, NamesARankThatEndedByItself) {
  Executable executable = tinyExecutable(2);
  executable.programs[0].bodies[1].commands.push_back(
      command(KernelCommand{"tiny_leave", {}, {}, 1, 1}, "Conv#4"));
  std::string kernels;
  write(executable, tinyTrainingSections(kernels));
  EXPECT_THAT(run(), ::testing::MatchesRegex(
                         "rank [01], in a kernel of node 'Conv#4': ended "
                         "with exit code 3"));
}

TEST_F(Supervise, EndsTheRanksThatHaveStartedWhereOneCannot) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs an account that has no other processes";
  write(meetingExecutable(4));
  options.repeats = 1000000000;
  options.threads = 1;
  options.outputs.clear();
  ASSERT_EQ(chmod(folder.path.c_str(), 0755), 0);
  prepare = [] {
    rlimit three{3, 3};
    if (setrlimit(RLIMIT_NPROC, &three) != 0 || setuid(61234) != 0)
      _exit(2);
  };
  ASSERT_EQ(pipe(ends), 0);
  launch();
  std::string message = wait(20);
  EXPECT_THAT(message, HasSubstr("cannot start rank 2: Resource temporarily"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("did not end")));
}

TEST_F(Supervise, NamesTheCommandsOfAHang) {
  Executable executable = tinyExecutable(2);
  executable.programs[0].bodies[1].commands.push_back(
      command(KernelCommand{"tiny_hang", {}, {}, 1, 1}, "Conv#4"));
  std::string kernels;
  write(executable, tinyTrainingSections(kernels));
  options.hangSeconds = 0.5;
  double begin = now();
  start();
  std::string message = wait(6);
  EXPECT_LT(now() - begin, 6);
  EXPECT_THAT(message, HasSubstr("no rank made progress"));
  EXPECT_THAT(message, HasSubstr("rank 1, in a kernel of node 'Conv#4'"));
  expectNoRanks();
}

TEST_F(Supervise, TellsTheRankThatHangsFromThoseThatWaitForIt) {
  write(meetingExecutable(3));
  options.repeats = 1000000000;
  options.hangSeconds = 1;
  start();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(ranks[1], SIGSTOP);
  std::string message = wait(6);
  EXPECT_THAT(message, HasSubstr("rank 0, waiting for others, "));
  EXPECT_THAT(message, HasSubstr("rank 2, waiting for others, "));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("rank 1, waiting")));
  expectNoRanks();
}

TEST_F(Supervise, NamesTheCommandsOfAllStreams) {
  Executable executable = tinyExecutable(2);
  auto &commands = executable.programs[0].bodies[1].commands;
  KernelCommand hang{"tiny_hang", {}, {}, 1, 1};
  commands.push_back(command(hang, "MatMul#2"));
  commands.push_back(command(hang, "Conv#3"));
  commands.back().stream = "comm";
  std::string kernels;
  write(executable, tinyTrainingSections(kernels));
  options.hangSeconds = 1;
  start();
  EXPECT_THAT(wait(20), HasSubstr("rank 1, in a kernel of node 'MatMul#2' and "
                                  "a kernel of node 'Conv#3'"));
  expectNoRanks();
}

TEST(WhereIs, NamesTheCollectiveAndItsAxes) {
  Executable executable = meetingExecutable(2);
  size_t loading = executable.programs[0].bodies[0].commands.size(),
         last = executable.programs[0].bodies[1].commands.size() - 1;
  RankControl control;
  control.command[1] = static_cast<int64_t>(loading + last);
  EXPECT_EQ(whereIs(executable, control, 1, /*waits=*/true),
            "rank 1, waiting for others, in a collective (all_reduce over dp) "
            "of node 'AllReduce#1'");
}

TEST_F(Supervise, WaitsNotForEverForARankThatDoesNotEnd) {
  write(meetingExecutable(2));
  options.repeats = 1000000000;
  start();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Its end is the tracer's to collect, which does not.
  ASSERT_EQ(ptrace(PTRACE_SEIZE, ranks[1], nullptr, nullptr), 0);
  kill(launcher, SIGTERM);
  EXPECT_THAT(wait(30),
              HasSubstr("interrupted by SIGTERM; rank 1 (process " +
                        std::to_string(ranks[1]) + ", traced by process " +
                        std::to_string(getpid()) + ") did not end by SIGKILL"));
  waitpid(ranks[1], nullptr, __WALL);
  expectNoRanks();
}

TEST_F(Supervise, AFailingRankEndsThoseThatWaitForIt) {
  // Rank 1's input is cut short after it was checked: its read fails while rank
  // 0 waits in the collective.
  write(meetingExecutable(2));
  options.repeats = 1000000000;
  start();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::filesystem::resize_file(
      folder / "x.npy", std::filesystem::file_size(folder / "x.npy") - 4);
  std::string message = wait(5);
  EXPECT_THAT(message, HasSubstr("rank 1: node 'X': expected 4 more bytes"));
  expectNoRanks();
}

TEST_F(Supervise, StreamsMeetAtEventsAndNotElsewhere) {
  // The copy waits on its own stream for an event that the other stream records
  // after the read: without the wait it would copy poison.
  Executable executable = tinyExecutable(2);
  auto &commands = executable.programs[0].bodies[1].commands;
  Command record = command(RecordCommand{"read"}, "Record"),
          wait = command(WaitCommand{"read"}, "Wait"),
          copied = command(RecordCommand{"copied"}, "Record"),
          waitForCopy = command(WaitCommand{"copied"}, "Wait");
  wait.stream = copied.stream = commands[1].stream = "second";
  commands = {commands[0], record,      wait,       commands[1],
              copied,      waitForCopy, commands[2]};
  write(executable);
  options.repeats = 200;
  options.poison = true;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
}

TEST_F(Supervise, RunsWaitForWhatOthersHaveBegunAhead) {
  write(aheadExecutable());
  options.repeats = 200;
  options.poison = true;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
}

} // namespace
