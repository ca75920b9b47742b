// What the executor captures: what the plan, the communication and the device
// together say can be.

#include "Control/SharedControl.h"
#include "Device/Null/NullDevice.h"
#include "Execute/Executor.h"
#include "ForwardingDevice.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// What streams were asked for, and what the executor knows of it.
struct Asked {
  int captures = 0, replays = 0, steps = 0;
  uint64_t commands = 0;
  uint64_t progress = 0;
};

/// Tells nothing of single commands, as a device that replays a graph.
class QuietWatcher : public StreamWatcher {
public:
  explicit QuietWatcher(StreamWatcher &watcher) : watcher(watcher) {}
  void begins(size_t stream, Work &, int64_t) override {
    watcher.advances(stream, 1);
  }
  void rests(size_t stream) override { watcher.rests(stream); }
  void fails() override { watcher.fails(); }
  bool isOver() const override { return watcher.isOver(); }

private:
  StreamWatcher &watcher;
};

class NotedStreams : public Streams {
public:
  NotedStreams(std::unique_ptr<Streams> streams, Asked &asked)
      : streams(std::move(streams)), asked(asked) {}
  void enqueue(const Step &step, Turn turn) override {
    ++asked.steps;
    streams->enqueue(step, turn);
  }
  Status capture(const std::vector<Step> &steps,
                 std::unique_ptr<Graph> &graph) override {
    ++asked.captures;
    return streams->capture(steps, graph);
  }
  void replay(Graph &graph, Turn turn) override {
    ++asked.replays;
    streams->replay(graph, turn);
  }
  Failure join() override { return streams->join(); }

private:
  std::unique_ptr<Streams> streams;
  Asked &asked;
};

/// The null device, which notes what its streams are asked for.
class NotedDevice : public ForwardingDevice {
public:
  NotedDevice(bool capturesHost, bool isQuiet)
      : ForwardingDevice(null::makeDevice(nullptr)), capturesHost(capturesHost),
        isQuiet(isQuiet) {}
  bool capturesHostTasks() const override { return capturesHost; }
  size_t mostCaptured() const override { return 0; }
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override {
    std::unique_ptr<Streams> made;
    quiet = std::make_unique<QuietWatcher>(watcher);
    ACCEL_RT_RETURN_IF_ERROR(
        inner->makeStreams(plan, isQuiet ? *quiet : watcher, made));
    streams = std::make_unique<NotedStreams>(std::move(made), asked);
    return Status();
  }

  Asked asked;

private:
  bool capturesHost, isQuiet;
  std::unique_ptr<QuietWatcher> quiet;
};

class Nothing : public HostTask {
public:
  Status run(const Address *, int64_t) override { return Status(); }
};

/// Says of its tasks what the test wants.
class SaidComm : public Comm {
public:
  SaidComm(Work::Kind kind, bool isCapturable)
      : kind(kind), isCapturable(isCapturable) {}
  Status allocate(const ArenaPlan &, Address &address) override {
    address = {uint64_t(1) << 43};
    return Status();
  }
  Status prepare(const Program &, const Command &, Work &work) override {
    EXPECT_EQ(work.places.size(), 2u);
    work.kind = kind;
    work.isCapturable = isCapturable;
    work.task = std::make_unique<Nothing>();
    return Status();
  }

private:
  Work::Kind kind;
  bool isCapturable;
};

/// A step of two micro-batches: a copy and a collective that are to be
/// captured.
Asked run(Work::Kind kind, bool isCapturable, bool capturesHost,
          bool isQuiet = false, bool poison = false) {
  Executable executable = meetingExecutable(1);
  executable.microBatches = 2;
  Program &program = executable.programs[0];
  std::vector<Command> commands = program.bodies[1].commands;
  commands[1].releases = {contiguousView(0, {16}, DType::I8)};
  program.bodies[1].commands = {commands[1], commands[3], commands[4]};
  program.entries[1].loops = {{2, {{"cpu", true, {{1, 0}}}}}};
  TemporaryFolder folder;
  // The executor believes what it is given: no check comes before it here.
  std::unique_ptr<ExecutableFile> file;
  EXPECT_TRUE(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "m.accx")
          .ok());
  EXPECT_TRUE(ExecutableFile::open(folder / "m.accx", file).ok());
  NotedDevice device(capturesHost, isQuiet);
  SaidComm comm(kind, isCapturable);
  SharedControl center;
  ControlSize size;
  size.ranks = 1;
  EXPECT_TRUE(center.create(size, /*spin=*/50).ok());
  std::unique_ptr<ControlPlane> control = center.makePlane(0);
  auto transfer = [](const Command &, Work &work) {
    work.kind = Work::Kind::Host;
    work.isCapturable = false;
    work.task = std::make_unique<Nothing>();
    return Status();
  };
  Executor executor(program, Coordinates::of(executable.mesh, 0),
                    {{{"cpu", &device}}, &comm, transfer, control.get()},
                    poison);
  Status status = executor.prepare(*file);
  EXPECT_TRUE(status.ok()) << status.message();
  uint64_t before = control->self().progress;
  EXPECT_TRUE(executor.run("forward").ok());
  device.asked.progress = control->self().progress - before;
  for (const KindCounts &kind : executor.takeCounts())
    device.asked.commands += kind.commands;
  return device.asked;
}

TEST(Capture, HasTheHostsTasksWhereTheDeviceCaptures) {
  Asked asked = run(Work::Kind::Host, true, /*capturesHost=*/true);
  EXPECT_EQ(asked.captures, 1);
  EXPECT_EQ(asked.replays, 2);
  EXPECT_EQ(asked.steps, 0);
}

TEST(Capture, HasNoTaskOfTheHostsWhereTheDeviceCannot) {
  Asked asked = run(Work::Kind::Host, true, /*capturesHost=*/false);
  EXPECT_EQ(asked.captures, 0);
  EXPECT_EQ(asked.steps, 2 * 3);
}

TEST(Capture, HasNoTaskThatItsMakerKeepsOut) {
  EXPECT_EQ(run(Work::Kind::Host, false, true).captures, 0);
  EXPECT_EQ(run(Work::Kind::Device, false, false).captures, 0);
}

TEST(Capture, HasThePoisonOfWhatIsReleased) {
  // A fill by the device: nothing is drained for it, and nothing copied.
  Asked asked = run(Work::Kind::Device, true, /*capturesHost=*/false,
                    /*isQuiet=*/false, /*poison=*/true);
  EXPECT_EQ(asked.captures, 1);
  EXPECT_EQ(asked.progress, 2u * 4);
}

TEST(Capture, IsCountedByItsStepsWhateverTheDeviceTells) {
  Asked told = run(Work::Kind::Host, true, true),
        quiet = run(Work::Kind::Host, true, true, /*isQuiet=*/true);
  EXPECT_EQ(quiet.progress, 2u * 3); // two turns of three commands
  EXPECT_EQ(told.progress, quiet.progress);
  EXPECT_EQ(quiet.commands, 2u * 3);
  EXPECT_EQ(told.commands, quiet.commands);
}

TEST(Capture, HasCollectivesThatTheDeviceEnqueues) {
  Asked asked = run(Work::Kind::Device, true, /*capturesHost=*/false);
  EXPECT_EQ(asked.captures, 1);
  EXPECT_EQ(asked.steps, 0);
}

} // namespace
