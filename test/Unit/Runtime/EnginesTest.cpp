// Files with bodies of two engines: each on its own device, whose streams meet
// at events, over memory that both reach; and what is said where that cannot
// be.

#include "RunFixture.h"
#include "WalledDevice.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// x [4] in four micro-batches of one element: the first engine, `null`, reads
/// it and copies it to p, `cpu` copies p to q, and `null` q to y.
Executable twoEngines() {
  Executable executable = tinyExecutable();
  executable.target = "null";
  executable.microBatches = 4;
  Part part{{4}, {{"mb"}}};
  executable.inputs[0].shape = executable.outputs[0].shape = part.shape;
  Program &program = executable.programs[0];
  program.arenas = {{"device", 132, 64, 0}, {"pinned", 68, 64, 0}};
  program.buffers[0] = {"x", "input", "device", 0, 4, 1, 4, "", ""};
  program.buffers[2] = {"y", "output", "device", 128, 4, 1, 4, "", ""};
  program.buffers.push_back({"p", "activation", "pinned", 0, 4, 1, 4, "", ""});
  program.buffers.push_back({"q", "activation", "pinned", 64, 4, 1, 4, "", ""});
  View x = contiguousView(0, {1}), y = contiguousView(2, {1}),
       p = contiguousView(3, {1}), q = contiguousView(4, {1});
  auto there = [](Command command) {
    command.stream = "there";
    return command;
  };
  program.bodies[0].engine = "null";
  program.bodies[1] = {"down",
                       "null",
                       {command(ReadCommand{"input", "x", part, x}, "X"),
                        command(CopyCommand{x, p}, "Down"),
                        command(RecordCommand{"down"}, "Record")}};
  program.bodies.push_back(
      {"there",
       "cpu",
       {there(command(WaitCommand{"down", 1}, "Wait")),
        there(command(CopyCommand{p, q}, "There")),
        there(command(RecordCommand{"there"}, "Record"))}});
  program.bodies.push_back(
      {"up",
       "null",
       {command(WaitCommand{"there", 2}, "Wait for the host"),
        command(CopyCommand{q, y}, "Up"),
        command(WriteCommand{"output", "y", part, y}, "Y")}});
  program.entries[0].loops[0].segments[0].engine = "null";
  program.entries[1].loops = {{4,
                               {{"null", false, {{1, 0}}},
                                {"cpu", true, {{2, 0}}},
                                {"null", false, {{3, 0}}}}}};
  return executable;
}

class Engines : public RunTest {
protected:
  Engines() { options.ownDevice = &kind; }
  DeviceKind kind = makeWalledKind("null");
};

TEST_F(Engines, RunEachOnItsDevice) {
  write(twoEngines());
  options.repeats = 50;
  options.poison = true;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
}

/// What the model device sees of another engine's bodies is the order in which
/// they meet its own.
TEST_F(Engines, AreOrderedOnTheModelDevice) {
  Executable executable = twoEngines();
  auto onSide = [](Command command) {
    command.stream = "side";
    return command;
  };
  std::vector<Command> &down = executable.programs[0].bodies[1].commands;
  down = {down[0],
          command(RecordCommand{"read"}, "Record"),
          onSide(command(WaitCommand{"read"}, "Wait")),
          onSide(down[1]),
          onSide(command(RecordCommand{"copied"}, "Record")),
          command(WaitCommand{"copied"}, "Wait for the copy"),
          down[2]};
  auto runWithout = [&](const std::string &node) {
    model::ModelOptions asked;
    asked.program = executable.programs[0].name;
    int64_t number = 0;
    for (const Body &body : executable.programs[0].bodies)
      for (const Command &command : body.commands) {
        if (command.node == node)
          asked.lost.insert(number);
        ++number;
      }
    EXPECT_EQ(asked.lost.size(), node.empty() ? 0u : 1u);
    kind = model::modelDevice(asked, "null");
    write(executable);
    return run();
  };
  ASSERT_EQ(runWithout(""), "");
  EXPECT_EQ(readNpy(folder / "out/y.npy"), readNpy(folder / "x.npy"));
  EXPECT_THAT(runWithout("Wait for the copy"),
              AllOf(HasSubstr("found a race: copy for node 'There' (body "
                              "'there', stream 'there')"),
                    HasSubstr("reads bytes 0 to 3 of space 'pinned', in buffer "
                              "'p', and copy for node 'Down'"),
                    HasSubstr("writes them, and no event orders the two")));
  EXPECT_THAT(runWithout("Wait for the host"),
              HasSubstr("copy for node 'Up' (body 'up', stream 'compute') on "
                        "micro-batch 0 reads bytes 64 to 67 of space 'pinned', "
                        "in buffer 'q', which nothing has written"));
}

TEST_F(Engines, ReachWhatIsTheHosts) {
  Executable executable = twoEngines();
  Program &program = executable.programs[0];
  program.arenas = {{"device", 196, 64, 0}, {"pinned", 4, 64, 0}};
  program.buffers[3] = {"p", "activation", "device", 192, 4, 1, 4, "", ""};
  program.buffers[4].offset = 0;
  write(executable);
  EXPECT_THAT(run(), HasSubstr("node 'There': expected buffer 'p' where engine "
                               "'cpu' reaches it, found it in space 'device' "
                               "of engine 'null'"));
}

TEST_F(Engines, MustBeThere) {
  Executable executable = twoEngines();
  executable.programs[0].bodies[2].engine = "tpu";
  executable.programs[0].entries[1].loops[0].segments[1].engine = "tpu";
  write(executable);
  EXPECT_THAT(run(), HasSubstr("m.accx' has bodies of engine 'tpu', which this "
                               "acc-run has not: it has 'cpu', 'null'"));
}

TEST_F(Engines, ExecuteAllOrNone) {
  Executable executable = twoEngines();
  for (Body &body : executable.programs[0].bodies)
    body.engine = body.engine == "cpu" ? "null" : "cpu";
  for (Entry &entry : executable.programs[0].entries)
    for (Segment &segment : entry.loops[0].segments)
      segment.engine = segment.engine == "cpu" ? "null" : "cpu";
  executable.target = "cpu";
  write(executable);
  options.ownDevice = nullptr;
  EXPECT_THAT(run(), HasSubstr("has bodies of engine 'null', which executes "
                               "nothing, beside others"));
}

/// What a device's driver would start.
bool hasStarted = false;

TEST_F(Engines, AreLookedForBeforeTheForkByAnotherProcess) {
  write(tinyExecutable());
  kind = makeWalledKind("cpu");
  kind.checkMachine = [](const Executable &, const std::string &) {
    hasStarted = true;
    return Status();
  };
  ASSERT_EQ(run(), "");
  EXPECT_FALSE(hasStarted);
  kind.checkMachine = [](const Executable &, const std::string &) {
    return Status::error("there is no such chip");
  };
  EXPECT_EQ(run(), "there is no such chip");
  kind.checkMachine = [](const Executable &, const std::string &) {
    _exit(3);
    return Status();
  };
  EXPECT_EQ(run(), "the look for the device 'cpu' ended with exit code 3");
  kind.checkMachine = [](const Executable &, const std::string &) {
    raise(SIGKILL);
    return Status();
  };
  EXPECT_THAT(run(),
              HasSubstr("the look for the device 'cpu' ended by signal 9"));
}

} // namespace
