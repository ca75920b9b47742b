// Of several ranks that fail by themselves the error is told that comes first
// in the program, whoever was faster: the same in every run.

#include "Device/CPU/CpuDevice.h"
#include "ForwardingDevice.h"
#include "RunFixture.h"

#include <algorithm>
#include <chrono>
#include <sys/mman.h>
#include <thread>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// What a command does on a rank, by the first value that it reads.
using Fail = Status (*)(const std::string &node, float value);

class FailingTask : public HostTask {
public:
  FailingTask(std::string node, Fail fail)
      : node(std::move(node)), fail(fail) {}
  Status run(const Address *views, int64_t) override {
    return fail(node, *static_cast<const float *>(cpu::at(views[0])));
  }

private:
  std::string node;
  Fail fail;
};

/// The CPU, whose copies do nothing but fail.
class FailingDevice : public ForwardingDevice {
public:
  FailingDevice(std::unique_ptr<Device> cpu, Fail fail)
      : ForwardingDevice(std::move(cpu)), fail(fail) {}
  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    task = std::make_unique<FailingTask>(command.node, fail);
    return Status();
  }

private:
  Fail fail;
};

/// Whether the slower rank is at work, so that it is not told to stop before.
std::atomic<bool> *hasBegun = nullptr;

class FirstFailure : public RunTest {
protected:
  FirstFailure() {
    void *shared = mmap(nullptr, sizeof *hasBegun, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(shared, MAP_FAILED);
    hasBegun = new (shared) std::atomic<bool>(false);
  }
  ~FirstFailure() override { munmap(hasBegun, sizeof *hasBegun); }

  /// Two ranks, which read 0.5 and 4.5 first, and copy one half by A, then the
  /// other by B.
  std::string runWith(Fail fail) {
    Executable executable = tinyExecutable(2);
    std::vector<Command> &commands = executable.programs[0].bodies[1].commands;
    auto first = std::find_if(commands.begin(), commands.end(), [](auto &one) {
      return std::holds_alternative<CopyCommand>(one.what);
    });
    auto &half = std::get<CopyCommand>(first->what);
    half.source.shape = half.target.shape = {2};
    first->node = "A";
    Command other = *first;
    other.node = "B";
    std::get<CopyCommand>(other.what).source.offset = 2 * sizeof(float);
    std::get<CopyCommand>(other.what).target.offset = 2 * sizeof(float);
    commands.insert(first + 1, other);
    write(executable);
    kind = *findDevice("cpu");
    kind.make = [fail](const ExecutableFile &file, ThreadPool &pool,
                       std::atomic<uint64_t> *populated,
                       std::unique_ptr<Device> &device) {
      std::unique_ptr<Device> cpu;
      ACCEL_RT_RETURN_IF_ERROR(cpu::makeDevice(file, pool, populated, cpu));
      device = std::make_unique<FailingDevice>(std::move(cpu), fail);
      return Status();
    };
    options.ownDevice = &kind;
    return run();
  }
  DeviceKind kind;
};

void sleepWhileOthersFail() {
  hasBegun->store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

void waitForSlower() {
  while (!hasBegun->load())
    std::this_thread::yield();
}

TEST_F(FirstFailure, IsThatOfTheFirstCommand) {
  EXPECT_EQ(runWith([](const std::string &node, float value) {
              bool isFirstRank = value < 4;
              if (isFirstRank && node == "A")
                return Status();
              if (isFirstRank) {
                waitForSlower();
                return Status::error("early");
              }
              sleepWhileOthersFail();
              return Status::error("late");
            }),
            "rank 1: node 'A': late");
}

TEST_F(FirstFailure, IsThatOfTheFirstRankOfOneCommand) {
  EXPECT_EQ(runWith([](const std::string &, float value) {
              if (value < 4)
                sleepWhileOthersFail();
              else
                waitForSlower();
              return Status::error("no copy");
            }),
            "rank 0: node 'A': no copy");
}

/// What a rank says because another one has died is no cause.
TEST_F(FirstFailure, IsTheDeathThatOthersFailFor) {
  EXPECT_THAT(runWith([](const std::string &node, float value) {
                if (value < 4) {
                  waitForSlower();
                  if (node == "B")
                    raise(SIGKILL);
                  return Status();
                }
                sleepWhileOthersFail();
                return Status::error("a rank is gone");
              }),
              HasSubstr("ended by signal 9"));
}

} // namespace
