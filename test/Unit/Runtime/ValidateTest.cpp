// An executable is checked as a program: each way of being none is named.

#include "ValidateFixture.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

TEST(Validate, TakesProgramsThatAreOnes) {
  EXPECT_EQ(check(tinyExecutable()), "");
  EXPECT_EQ(check(twoStreams()), "");
  EXPECT_EQ(check(tinyTraining(2, 3)), "");
}

TEST(Validate, Places) {
  EXPECT_THAT(tiny([](Program &p) { p.buffers[2].offset = 255; }),
              HasSubstr("within the 192 bytes"));
  EXPECT_THAT(tiny([](Program &p) { p.buffers[2].offset = 129; }),
              HasSubstr("'y' at a multiple of 64 bytes, found it at 129"));
  EXPECT_THAT(tiny([](Program &p) {
                std::get<CopyCommand>(commandsOf(p)[1].what).source.shape = {3};
                std::get<CopyCommand>(commandsOf(p)[1].what).source.offset = 2;
              }),
              HasSubstr("elements of f32 at multiples of 4 bytes"));
  EXPECT_THAT(tiny([](Program &p) {
                View y = contiguousView(2, {4});
                y.shape = {0, int64_t(1) << 40, int64_t(1) << 40};
                y.strides = {0, 0, 0};
                commandsOf(p)[1].what = FillCommand{{0, 0, 0, 0}, y};
              }),
              HasSubstr("found a view of impossible shape"));
  EXPECT_THAT(tiny([](Program &p) { p.buffers[2].slots = INT64_MIN; }),
              HasSubstr("within the 192 bytes"));
  EXPECT_THAT(tiny([](Program &p) { p.arenas[0].bytes = 256; }),
              HasSubstr("expected the 144 bytes that buffers need"));
  EXPECT_THAT(tiny([](Program &p) { p.arenas[0].alignment = 96; }),
              HasSubstr("an arena of impossible size"));
  EXPECT_THAT(tiny([](Program &p) { p.buffers[2].name = "x"; }),
              HasSubstr("found two buffers called 'x'"));
  EXPECT_THAT(tiny([](Program &p) { p.buffers[2].role = "stat"; }),
              HasSubstr("expected the role of a buffer, found 'stat'"));
  EXPECT_THAT(tiny([](Program &p) { p.buffers[2].aliasOf = "q"; }),
              HasSubstr("a buffer of the same space that 'y' shares"));
  EXPECT_THAT(tiny([](Program &p) { p.buffers[1].source = "u"; }),
              HasSubstr("found no state 'u' for buffer 'w'"));
  EXPECT_THAT(tiny([](Program &p) { p.stage = 1; }),
              HasSubstr("expected one program for each of 1 stages"));
  EXPECT_THAT(tiny([](Program &p) {
                View y = contiguousView(2, {4});
                y.strides = {0};
                commandsOf(p)[1].what = FillCommand{{0, 0, 0, 0}, y};
              }),
              HasSubstr("a view whose elements lie apart"));
  // What is read may be one element, and not half of one and half of the next.
  auto readBy = [](int64_t stride) {
    return tiny([&](Program &p) {
      View x = contiguousView(0, {2, 2}), y = contiguousView(2, {2, 2});
      x.strides = {stride, 1};
      commandsOf(p)[1].what = CopyCommand{x, y};
    });
  };
  EXPECT_EQ(readBy(0), "");
  EXPECT_EQ(readBy(2), "");
  EXPECT_THAT(readBy(1),
              HasSubstr("a view whose elements lie apart, to be read, of "
                        "buffer 'x'"));
  EXPECT_THAT(tiny([](Program &p) {
                commandsOf(p)[1].what =
                    CoordinateCommand{{}, contiguousView(2, {0}, DType::I64)};
              }),
              HasSubstr("expected a view of i64, of one element"));
  EXPECT_THAT(tiny([](Program &p) {
                commandsOf(p)[1].what =
                    FillCommand{{0, 0, 0, 256}, contiguousView(2, {4})};
              }),
              HasSubstr("expected a value of the view's element type"));
}

TEST(Validate, Entries) {
  EXPECT_THAT(tiny([](Program &p) { p.entries[0].name = "lead"; }),
              HasSubstr("'eval' and 'forward', each once at most, found "
                        "'lead'"));
  EXPECT_THAT(tiny([](Program &p) { p.entries.pop_back(); }),
              HasSubstr("expected an entry beside 'load'"));
  EXPECT_THAT(tiny([](Program &p) { p.entries.push_back(p.entries[0]); }),
              HasSubstr("each once at most, found 'load'"));
  EXPECT_THAT(tiny([](Program &p) { p.entries[1].loops.clear(); }),
              HasSubstr("expected a run of body 'body', found none"));
  EXPECT_THAT(tiny([](Program &p) { p.entries[0].name = "eval"; }),
              HasSubstr("reads of states in the entry 'load'"));
  EXPECT_THAT(tiny([](Program &p) {
                auto &runs = p.entries[1].loops[0].segments[0].runs;
                runs.push_back(runs[0]);
              }),
              HasSubstr("body 'body' to run once, or once for each micro-"));
  Executable training = tinyTraining();
  training.unshiftedLabels = "labels";
  EXPECT_THAT(check(training), HasSubstr("the input of labels 'labels'"));
  // Of several programs.
  Executable two = tinyExecutable();
  two.programs.push_back(two.programs[0]);
  EXPECT_THAT(check(two), HasSubstr("expected one program for each of 1"));
  two.mesh = {{"pp", 2}};
  two.programs[1].stage = 1;
  EXPECT_THAT(check(two), HasSubstr("no mesh axis 'dp'"));
}

TEST(Validate, WhatIsDeclaredIsUsed) {
  EXPECT_THAT(tiny([](Program &p) {
                p.bodies.push_back({"idle", "cpu", {}});
              }),
              HasSubstr("expected a run of body 'idle', found none"));
  Executable executable = tinyExecutable();
  executable.outputs.push_back(executable.outputs[0]);
  executable.outputs[1].name = "z";
  EXPECT_THAT(check(executable),
              HasSubstr("expected a run that writes output 'z', found none"));
  executable = tinyExecutable();
  executable.states[0].axes = {{}, {}, {"dp"}};
  EXPECT_THAT(
      check(executable),
      HasSubstr("expected axes for each dimension of state 'w', found 3 "
                "for 2"));
  executable = tinyExecutable();
  executable.inputs[0].batchDim = 1;
  EXPECT_THAT(check(executable),
              HasSubstr("expected a dimension along which the samples of input "
                        "or output 'x' lie, found 1"));
  executable.inputs[0].batchDim = 0;
  executable.inputs.push_back(executable.inputs[0]);
  executable.inputs[1].name = "z";
  EXPECT_THAT(check(executable),
              HasSubstr("expected a run that reads input 'z', found none"));
  executable = tinyExecutable(); // a parameter that the model does not use
  executable.states.push_back(executable.states[0]);
  executable.states[1].name = "u";
  executable.states[1].aliases.clear();
  EXPECT_EQ(check(executable), "");
  std::vector<SectionData> sections = tinySections();
  sections.push_back(sections[0]);
  sections[1].name = "state:u";
  EXPECT_THAT(check(tinyExecutable(), sections),
              HasSubstr("expected a state or constant in section 'state:u', "
                        "found none"));
  sections[1].name = "ir:plan";
  sections.push_back(sections[0]);
  sections[2].name = std::string(kCodePrefix) + "cpu.so";
  EXPECT_EQ(check(tinyExecutable(), sections), "");
  // The writer notes the kernels that it sees called.
  executable = tinyExecutable();
  executable.sections = {{"state:w", DType::F32, {2, 2}, 0, 16, 0}};
  executable.kernels = {{"kernel_0", 1}};
  EXPECT_THAT(validate(executable).message(),
              HasSubstr("expected a call of kernel 'kernel_0', found none"));
}

TEST(Validate, ReadsOfWhatWasWritten) {
  EXPECT_THAT(
      tiny([](Program &p) { commandsOf(p).erase(commandsOf(p).begin()); }),
      HasSubstr("byte 0 of space 'device', in buffer 'x', which nothing "
                "has written, in a copy for node 'Copy#1'"));
  EXPECT_THAT(tiny([](Program &p) {
                commandsOf(p)[0].releases = {contiguousView(0, {4})};
              }),
              HasSubstr("in buffer 'x', which was released,"));
  // A state that is not loaded.
  Executable training = tinyTraining();
  training.programs[0].bodies[0].commands.erase(
      training.programs[0].bodies[0].commands.begin());
  EXPECT_THAT(check(training), HasSubstr("in buffer 'net/w', which nothing"));
  // What a value was computed for reads another.
  Executable streams = twoStreams();
  std::get<CopyCommand>(commandsOf(streams.programs[0])[4].what).source =
      contiguousView(0, {4});
  EXPECT_THAT(check(streams),
              HasSubstr("found a value that nothing reads, in "
                        "buffer 'z', in a copy for node 'ToZ'"));
  // Of two results one may be of no use.
  auto makesTwo = [](bool isUseful) {
    return tiny([&](Program &p) {
      p.arenas[0].bytes = 272;
      p.buffers.push_back(
          {"z", "activation", "device", 192, 16, 1, 16, "", ""});
      p.buffers.push_back(
          {"u", "activation", "device", 256, 16, 1, 16, "", ""});
      View x = contiguousView(0, {4}), y = contiguousView(2, {4}),
           z = contiguousView(3, {4}), u = contiguousView(4, {4});
      KernelCommand two{"two", {x}, {isUseful ? y : u, z}, 1, 1};
      auto &commands = commandsOf(p);
      auto at = commands.begin() + 1;
      if (isUseful)
        *at = command(two, "Two");
      else
        commands.insert(at, command(two, "Two"));
    });
  };
  EXPECT_EQ(makesTwo(true).find("nothing reads"), std::string::npos);
  EXPECT_THAT(makesTwo(false),
              HasSubstr("found a value that nothing reads, in buffer 'u'"));
  // Two buffers at one place.
  EXPECT_THAT(tiny([](Program &p) {
                p.buffers[2].offset = 0;
                p.arenas[0].bytes = 80;
                View y = contiguousView(2, {4});
                commandsOf(p).insert(
                    commandsOf(p).begin() + 1,
                    command(FillCommand{{0, 0, 0, 0}, y}, "Fill"));
              }),
              HasSubstr("expected what it writes of buffer 'y' to overlap "
                        "nothing else of it, found bytes that are also in its "
                        "operand of buffer 'x'"));
}

TEST(Validate, Engines) {
  EXPECT_THAT(tiny([](Program &p) { p.bodies[1].engine = ""; }),
              HasSubstr("expected the engine of body 'body'"));
  EXPECT_THAT(tiny([](Program &p) { p.bodies[1].engine = "null"; }),
              HasSubstr("expected a stream of one engine, found 'compute' in "
                        "bodies of 'cpu' and 'null' of program 'main'"));
  EXPECT_THAT(
      tiny([](Program &p) {
        p.entries[1].loops[0].segments[0].engine = "null";
      }),
      HasSubstr("expected a segment with bodies of its engine 'null', found "
                "body 'body' of 'cpu'"));
  EXPECT_THAT(tiny([](Program &p) {
                p.entries[1].loops[0].segments[0].capturable = true;
              }),
              HasSubstr("expected no file in a segment that may be captured, "
                        "found a read of node 'X' in body 'body'"));
}

TEST(Validate, WaitsStandBehindTheirRecords) {
  // In the order of the streams the record comes first all the same.
  EXPECT_THAT(streams([](Program &p) {
                std::swap(commandsOf(p)[2], commandsOf(p)[3]);
              }),
              HasSubstr("expected a record of event 'z' to stand before the "
                        "waits for it, found it behind one, for node 'Wait'"));
}

TEST(Validate, StreamsAndEvents) {
  EXPECT_THAT(streams([](Program &p) { commandsOf(p)[4].stream = "third"; }),
              HasSubstr("found a race: it and a command of another stream"));
  EXPECT_THAT(streams([](Program &p) { commandsOf(p)[1].stream = "third"; }),
              HasSubstr("race"));
  EXPECT_THAT(streams([](Program &p) { commandsOf(p)[4].stream = ""; }),
              HasSubstr("expected the name of a stream"));
  EXPECT_THAT(streams([](Program &p) {
                commandsOf(p).erase(commandsOf(p).begin() + 6);
              }),
              HasSubstr("in buffer 'y'"));
  EXPECT_THAT(streams([](Program &p) {
                std::get<WaitCommand>(commandsOf(p)[3].what).event = "q";
              }),
              HasSubstr("which no command can record before it, for "
                        "node 'Wait'"));
  EXPECT_THAT(
      streams([](Program &p) { commandsOf(p).push_back(commandsOf(p)[2]); }),
      HasSubstr("event 'z' to be recorded once"));
  EXPECT_THAT(streams([](Program &p) {
                for (int i = 0; i < 40; ++i) {
                  commandsOf(p).push_back(
                      command(RecordCommand{std::to_string(i)}, "Record"));
                  commandsOf(p).back().stream = std::to_string(i);
                }
              }),
              HasSubstr("expected at most 40 streams"));
  auto fillOf = [](int64_t buffer) {
    return command(FillCommand{{0, 0, 0, 0}, contiguousView(buffer, {4})}, "F");
  };
  // Two writes without an order, and a write beside a read.
  EXPECT_THAT(streams([&](Program &p) {
                Command fill = fillOf(3);
                fill.stream = "side";
                commandsOf(p).insert(commandsOf(p).begin() + 1, fill);
              }),
              HasSubstr("found a race"));
  EXPECT_THAT(
      streams([&](Program &p) {
        Command fill = fillOf(3);
        fill.stream = "side";
        commandsOf(p)[4] = fill;
        commandsOf(p).insert(
            commandsOf(p).begin() + 2,
            command(CopyCommand{contiguousView(3, {4}), contiguousView(2, {4})},
                    "ToY"));
        std::swap(commandsOf(p)[2], commandsOf(p)[3]);
      }),
      HasSubstr("found a race"));
  // A segment's end holds no stream up.
  EXPECT_THAT(
      streams([](Program &p) {
        Body second{"second", "cpu", {commandsOf(p).back()}};
        commandsOf(p).pop_back();
        commandsOf(p).pop_back();
        p.bodies.push_back(second);
        p.entries[1].loops[0].segments.push_back({"cpu", false, {{2, 0}}});
      }),
      HasSubstr("in buffer 'y'"));
}

TEST(Validate, IsDoneInTimeOrRefused) {
  // Many small writes, each of which many large reads meet.
  EXPECT_THAT(
      tiny([](Program &p) {
        p.arenas[0].bytes = 192 + (1 << 15);
        for (int64_t i = 0; i < 2; ++i)
          p.buffers.push_back({"z" + std::to_string(i), "communication",
                               "device", 192 + (i << 14), 1 << 14, 1, 1 << 14,
                               "", ""});
        for (int64_t i = 0; i < 4096; ++i) {
          View one = contiguousView(3, {1});
          one.offset = 4 * i;
          commandsOf(p).push_back(
              command(FillCommand{{0, 0, 0, 0}, one}, "Fill"));
        }
        CopyCommand copy{contiguousView(3, {4096}), contiguousView(4, {4096})};
        for (int i = 0; i < 600; ++i)
          commandsOf(p).push_back(command(copy, "Copy"));
      }),
      HasSubstr("found too many pieces"));
}

TEST(Validate, CollectivesAndMessages) {
  Executable executable = tinyTraining(2);
  auto &update = commandsOf(executable.programs[0], 3);
  auto &collective = std::get<CollectiveCommand>(update[1].what);
  collective.axes = {"dp", "dp"};
  EXPECT_THAT(check(executable), HasSubstr("mesh axis 'dp' twice"));
  collective.axes = {"dp"};
  Command other = update[1];
  other.stream = "comm";
  std::get<CollectiveCommand>(other.what).inputs.clear();
  std::get<CollectiveCommand>(other.what).outputs.clear();
  update.insert(update.begin(), other);
  EXPECT_THAT(check(executable), HasSubstr("collectives of different streams"));
  EXPECT_THAT(tiny([](Program &p) {
                commandsOf(p).push_back(command(
                    SendCommand{contiguousView(0, {4}), "dp", 1, 0}, "S"));
              }),
              HasSubstr("found a message of node 'S' that no rank receives"));
  EXPECT_THAT(
      tiny([](Program &p) {
        commandsOf(p).push_back(
            command(SendCommand{contiguousView(0, {4}), "dp", 1, 0}, "S"));
        commandsOf(p).push_back(
            command(RecvCommand{contiguousView(1, {2}), "dp", -1, 0}, "R"));
      }),
      HasSubstr("what node 'R' receives to have the shape that node 'S'"));
}

TEST(Validate, KernelsAreCalledAsTheyWereCompiled) {
  // The writer signs what it is given: the file is changed as a struct.
  Executable executable = tinyTraining();
  Program &program = executable.programs[0];
  for (const Body &body : program.bodies)
    for (const Command &command : body.commands)
      if (auto kernel = kernelSignature(program, command))
        executable.kernels.push_back(*kernel);
  executable.sections = {{"state:w", DType::F32, {2, 2}, 0, 16, 0}};
  ASSERT_EQ(validate(executable).message(), "");
  auto refused = [&](const std::function<void(KernelCommand &)> &change) {
    Executable changed = executable;
    for (Command &command : changed.programs[0].bodies[3].commands)
      if (auto *kernel = std::get_if<KernelCommand>(&command.what))
        change(*kernel);
    return validate(changed).message();
  };
  const char *message = "expected the rows and views that kernel 'tiny_update' "
                        "was compiled for, found others";
  EXPECT_THAT(refused([](KernelCommand &k) { k.rows = 2147483647; }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) { k.grid = 2; }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) {
                k.form = {{"thread_scratch", int64_t(64)}};
              }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) { k.inputs[3].shape = {1}; }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) {
                k.inputs[2].strides = {1, 2};
              }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) { k.inputs[0].dtype = DType::I32; }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) { k.outputs.pop_back(); }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) {
                std::swap(k.outputs[3], k.outputs[4]);
                k.outputs[1].buffer = k.outputs[6].buffer; // not in place now
              }),
              HasSubstr(message));
  EXPECT_THAT(refused([](KernelCommand &k) { k.function = "tiny_accumulate"; }),
              HasSubstr("that kernel 'tiny_accumulate'"));
}

} // namespace
