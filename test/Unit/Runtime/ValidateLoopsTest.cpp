// What the check of an executable says of loops: how often they turn, which
// micro-batches their runs come to, and what only a second turn shows.

#include "AheadExecutable.h"
#include "ValidateFixture.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// tinyTraining in four micro-batches; `change` gets the loop.
std::string trainingLoop(const std::function<void(Program &, Loop &)> &change) {
  Executable executable = tinyTraining(1, 4);
  Program &program = executable.programs[0];
  change(program, program.entries[1].loops[1]);
  std::string kernels;
  return check(executable, tinyTrainingSections(kernels));
}

/// What the check says of `count` turns of the main body, changed.
std::string turns(Executable executable, int64_t count, const Change &change) {
  executable.microBatches = 2;
  executable.programs[0].entries[1].loops[0].trips = count;
  return changed(std::move(executable), change);
}

Command fillOf(int64_t buffer) {
  return command(FillCommand{{0, 0, 0, 0}, contiguousView(buffer, {4})}, "F");
}
Command copyOf(int64_t from, int64_t to, const char *stream = "compute") {
  Command made = command(
      CopyCommand{contiguousView(from, {4}), contiguousView(to, {4})}, "Copy");
  made.stream = stream;
  return made;
}

} // namespace

TEST(ValidateLoops, TurnsAndMicroBatches) {
  EXPECT_EQ(trainingLoop([](Program &, Loop &) {}), "");
  auto trips = [](int64_t count) {
    return trainingLoop([&](Program &, Loop &loop) { loop.trips = count; });
  };
  const char *range = "expected a loop of 1 to 4 turns in entry 'step', found ";
  EXPECT_THAT(trips(0), HasSubstr(std::string(range) + "0"));
  EXPECT_THAT(trips(5), HasSubstr(std::string(range) + "5"));
  EXPECT_THAT(trips(INT64_MIN), HasSubstr(range));
  EXPECT_THAT(trips(3), HasSubstr("expected body 'forward' to run once, or "
                                  "once for each micro-batch"));
  // One turn would be a program, of another batch.
  EXPECT_THAT(trips(1), HasSubstr("expected body 'forward', which reads or "
                                  "writes a micro-batch's part, to run once "
                                  "for each micro-batch"));
  EXPECT_THAT(trainingLoop([](Program &, Loop &loop) {
                loop.segments[0].runs[0].microBatch = 1;
              }),
              HasSubstr("a micro-batch of 4 for body 'forward'"));
  EXPECT_THAT(trainingLoop([](Program &, Loop &loop) {
                loop.segments[0].runs[0].microBatch = -1;
              }),
              HasSubstr("a micro-batch of 4 for body 'forward'"));
  // Of three turns two from micro-batch 0 on, and two from 1 on.
  EXPECT_THAT(trainingLoop([](Program &p, Loop &loop) {
                loop.trips = 2;
                Loop again = loop;
                again.segments[0].runs[0].microBatch = 1;
                auto &loops = p.entries[1].loops;
                loops.insert(loops.begin() + 2, again);
              }),
              HasSubstr("body 'forward' to run once, or once for each"));
}

TEST(ValidateLoops, MayBePeeled) {
  EXPECT_EQ(trainingLoop([](Program &p, Loop &loop) {
              Loop first = loop, last = loop;
              first.trips = last.trips = 1;
              last.segments[0].runs[0].microBatch = 3;
              loop.trips = 2;
              loop.segments[0].runs[0].microBatch = 1;
              auto &loops = p.entries[1].loops;
              loops.insert(loops.begin() + 2, last);
              loops.insert(loops.begin() + 1, first);
            }),
            "");
}

/// `side` copies z away, and nothing waits for it but the end of the call.
TEST(ValidateLoops, RacesAcrossTurns) {
  Change unfinished = [](Program &p) {
    p.arenas[0].bytes = 320;
    p.buffers.push_back(
        {"out", "communication", "device", 256, 16, 1, 16, "", ""});
    auto &commands = commandsOf(p);
    commands = {commands[0],          commands[1],  commands[2],    commands[3],
                copyOf(3, 4, "side"), copyOf(0, 2), commands.back()};
  };
  EXPECT_EQ(turns(twoStreams(), 1, unfinished), "");
  EXPECT_THAT(
      turns(twoStreams(), 2, unfinished),
      HasSubstr("found a race: it and a command of another stream touch "
                "the same bytes of buffer 'z'"));
}

/// Events are a turn's own: a wait finds no record of the turn before.
TEST(ValidateLoops, EventsOfOneTurn) {
  Change late = [](Program &p) {
    std::swap(commandsOf(p)[2], commandsOf(p)[6]);
  };
  EXPECT_THAT(turns(twoStreams(), 1, late),
              HasSubstr("found a wait for event"));
  EXPECT_THAT(turns(twoStreams(), 2, late),
              HasSubstr("found a wait for event"));
  EXPECT_EQ(turns(twoStreams(), 2, [](Program &) {}), "");
}

/// A prologue writes z, the loop reads it, then another takes its bytes.
TEST(ValidateLoops, BuffersReusedAcrossTurns) {
  Change reuse = [](Program &p) {
    p.arenas[0].bytes = 256;
    p.buffers.push_back({"z", "activation", "device", 192, 16, 1, 16, "", ""});
    p.buffers.push_back(
        {"out", "communication", "device", 192, 16, 1, 16, "", ""});
    p.bodies.push_back({"first", "cpu", {fillOf(3)}});
    auto &loops = p.entries[1].loops;
    loops.insert(loops.begin(), {1, {{"cpu", false, {{2, 0}}}}});
    commandsOf(p)[1] = copyOf(3, 2);
    commandsOf(p).push_back(copyOf(0, 4));
  };
  EXPECT_EQ(turns(tinyExecutable(), 1, reuse), "");
  EXPECT_THAT(turns(tinyExecutable(), 2, reuse),
              HasSubstr("in buffer 'z', which buffer 'out' has overwritten,"));
  // What the last turn leaves is what follows the loop finds.
  EXPECT_THAT(
      turns(tinyExecutable(), 2,
            [](Program &p) {
              p.arenas[0].bytes = 256;
              p.buffers.push_back(
                  {"z", "activation", "device", 192, 16, 1, 16, "", ""});
              p.buffers.push_back(
                  {"out", "communication", "device", 192, 16, 1, 16, "", ""});
              p.bodies.push_back(
                  {"last", "cpu", {copyOf(3, 2), commandsOf(p)[2]}});
              commandsOf(p) = {commandsOf(p)[0], copyOf(0, 3), copyOf(0, 4)};
              p.entries[1].loops.push_back({1, {{"cpu", false, {{2, 0}}}}});
            }),
      HasSubstr("in buffer 'z', which buffer 'out' has overwritten,"));
}

/// A loop sends as often as it turns.
TEST(ValidateLoops, CountsMessagesOfEveryTurn) {
  Change sent = [](Program &p) {
    p.arenas[0].bytes = 256;
    p.buffers.push_back(
        {"z", "communication", "device", 192, 16, 1, 16, "", ""});
    commandsOf(p).push_back(
        command(SendCommand{contiguousView(0, {4}), "dp", 1, 0}, "S"));
    p.bodies.push_back(
        {"last",
         "cpu",
         {command(RecvCommand{contiguousView(3, {4}), "dp", -1, 0}, "R")}});
    p.entries[1].loops.push_back({1, {{"cpu", false, {{2, 0}}}}});
  };
  EXPECT_EQ(turns(tinyExecutable(), 1, sent), "");
  EXPECT_THAT(turns(tinyExecutable(), 2, sent),
              HasSubstr("that no rank receives"));
}

/// A wait for another body's event finds it recorded, turn by turn.
TEST(ValidateLoops, EventsOfOthers) {
  auto ahead = [](const Change &change) {
    return changed(aheadExecutable(), change);
  };
  auto runs = [](Program &p, size_t loop) -> std::vector<accel::rt::Run> & {
    return p.entries[1].loops[loop].segments[0].runs;
  };
  EXPECT_EQ(ahead([](Program &) {}), "");
  // With one copy the next is fetched over it.
  EXPECT_THAT(ahead([](Program &p) { p.buffers[0].slots = 1; }),
              HasSubstr("found a race"));
  EXPECT_THAT(ahead([](Program &p) {
                auto &commands = p.bodies[1].commands;
                commands.erase(commands.begin());
              }),
              HasSubstr("in buffer 'x', which nothing has written"));
  const char *early = "to wait for events of bodies that run before it";
  // In a turn, a turn too early, in the last one alone; of nobody; of itself.
  EXPECT_THAT(ahead([&](Program &p) {
                runs(p, 0)[0] = {1, 0};
                runs(p, 1) = {{1, 1}, {2, 0}};
                runs(p, 2)[0] = {2, 3};
              }),
              HasSubstr(early));
  EXPECT_THAT(ahead([&](Program &p) { std::swap(runs(p, 0), runs(p, 2)); }),
              HasSubstr(early));
  for (int64_t other : {1, 3, 1 << 20})
    EXPECT_THAT(ahead([&](Program &p) {
                  p.bodies[1].commands[0] =
                      command(WaitCommand{"there", other}, "Wait");
                }),
                HasSubstr(early));
  EXPECT_THAT(
      ahead([&](Program &p) {
        p.bodies[1].commands[0] = command(WaitCommand{"nowhere", 2}, "Wait");
      }),
      HasSubstr("found a wait for event 'nowhere'"));
}

/// Turn by turn this would be a thousand million commands, and no test would
/// see its end.
TEST(ValidateLoops, AreNotUnrolled) {
  Executable executable = twoStreams();
  Program &program = executable.programs[0];
  program.arenas[0].bytes = 320;
  program.buffers.push_back(
      {"out", "communication", "device", 256, 16, 1, 16, "", ""});
  commandsOf(program).insert(commandsOf(program).end(), 1000, fillOf(4));
  executable.microBatches = 1 << 20;
  program.entries[1].loops[0].trips = 1 << 20;
  EXPECT_EQ(check(executable), "");
}
