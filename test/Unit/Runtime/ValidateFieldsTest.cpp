// Each field of an executable has its limits: one step over each is refused,
// and by the check that is there for it.

#include "ValidateFixture.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// tinyExecutable with its copy of x to y in place of which `what` stands.
std::string instead(decltype(Command::what) what) {
  return tiny([&](Program &p) { commandsOf(p)[1].what = std::move(what); });
}
std::string file(const std::function<void(Executable &)> &change,
                 int64_t ranks = 1) {
  Executable executable = tinyExecutable(ranks);
  change(executable);
  return check(std::move(executable));
}
std::string training(const std::function<void(Executable &)> &change) {
  Executable executable = tinyTraining(2, 3);
  change(executable);
  return check(std::move(executable));
}
View x() { return contiguousView(0, {4}); }
View y() { return contiguousView(2, {4}); }

TEST(ValidateFields, OfArenas) {
  const char *impossible = "found an arena of impossible size";
  auto arena = [](ArenaPlan plan) {
    return tiny([&](Program &p) { p.arenas.push_back(plan); });
  };
  EXPECT_EQ(arena({"more", 0, 8, 0}), "");
  EXPECT_THAT(arena({"more", -1, 64, 0}), HasSubstr(impossible));
  EXPECT_THAT(arena({"more", int64_t(1) << 60, 64, 0}), HasSubstr(impossible));
  EXPECT_THAT(arena({"more", 0, 4, 0}), HasSubstr(impossible));
  EXPECT_THAT(arena({"more", 0, 1 << 23, 0}), HasSubstr(impossible));
  EXPECT_THAT(arena({"more", 0, 64, -1}), HasSubstr(impossible));
  EXPECT_THAT(arena({"device", 0, 64, 0}), HasSubstr("two arenas of space"));
}

TEST(ValidateFields, OfFiles) {
  auto arena = [](const std::function<void(ArenaPlan &)> &change) {
    return tiny([&](Program &p) {
      p.arenas.push_back({"nvme", 0, 4096, 0, StoragePlan{"/d", 4096, 1}});
      change(p.arenas.back());
    });
  };
  const char *impossible = "has no folder or is moved in impossible blocks";
  EXPECT_EQ(arena([](ArenaPlan &) {}), "");
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage.reset(); }),
              HasSubstr("to say which file it is"));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.space = "host"; }),
              HasSubstr("to say which file it is"));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage->path = ""; }),
              HasSubstr(impossible));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.alignment = 2048; }),
              HasSubstr(impossible));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage->blockBytes = 4097; }),
              HasSubstr(impossible));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage->blockBytes = 0; }),
              HasSubstr(impossible));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage->blockBytes = 2LL << 30; }),
              HasSubstr(impossible));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage->queueDepth = 0; }),
              HasSubstr(impossible));
  EXPECT_THAT(arena([](ArenaPlan &p) { p.storage->queueDepth = 4097; }),
              HasSubstr(impossible));
}

TEST(ValidateFields, OfBuffers) {
  auto buffer = [](const std::function<void(BufferPlan &)> &change) {
    return tiny([&](Program &p) {
      p.arenas[0].bytes = 256;
      p.buffers.push_back({"z", "scratch", "device", 192, 16, 1, 16, "", ""});
      change(p.buffers[3]);
    });
  };
  const char *within = "expected buffer 'z' within the 256 bytes";
  EXPECT_EQ(buffer([](BufferPlan &) {}), "");
  EXPECT_THAT(buffer([](BufferPlan &z) { z.space = "moon"; }),
              HasSubstr("found no arena of space 'moon' for buffer 'z'"));
  EXPECT_THAT(buffer([](BufferPlan &z) { z.offset = -64; }), HasSubstr(within));
  EXPECT_THAT(buffer([](BufferPlan &z) { z.bytes = z.slotStride = -8; }),
              HasSubstr(within));
  EXPECT_THAT(buffer([](BufferPlan &z) {
                z.slots = 2;
                z.slotStride = 8;
              }),
              HasSubstr(within));
  EXPECT_THAT(buffer([](BufferPlan &z) {
                z.slots = 2;
                z.slotStride = 20;
              }),
              HasSubstr("expected buffer 'z' at a multiple of"));
  EXPECT_THAT(buffer([](BufferPlan &z) { z.section = "none"; }),
              HasSubstr("expected a section that fits for buffer 'z'"));
  EXPECT_THAT(buffer([](BufferPlan &z) {
                z.section = "state:w";
                z.bytes = z.slotStride = 8;
              }),
              HasSubstr("expected a section that fits for buffer 'z'"));
  EXPECT_EQ(buffer([](BufferPlan &z) { z.aliasOf = "x"; }), "");
  const char *shares = "a buffer of the same space that 'z' shares";
  EXPECT_THAT(tiny([](Program &p) {
                p.buffers[0].aliasOf = "w";
                p.buffers.push_back(
                    {"z", "scratch", "device", 0, 16, 1, 16, "", "", "x"});
                p.buffers[3].aliasOf = "x";
              }),
              HasSubstr(shares));
  EXPECT_THAT(
      tiny([](Program &p) {
        p.arenas.push_back({"shared", 16, 64, 0});
        p.buffers.push_back({"z", "scratch", "shared", 0, 16, 1, 16, "", ""});
        p.buffers[3].aliasOf = "x";
      }),
      HasSubstr(shares));
}

TEST(ValidateFields, OfViews) {
  auto view = [](const std::function<void(View &)> &change) {
    View source = x();
    source.shape = {2};
    change(source);
    View target = y();
    target.shape = source.shape;
    target.strides = source.strides;
    return instead(CopyCommand{source, target});
  };
  auto target = [](const std::function<void(View &)> &change) {
    View target = y();
    change(target);
    return instead(FillCommand{{0, 0, 0, 0}, target});
  };
  EXPECT_THAT(target([](View &v) {
                v.strides = {1, 1};
              }),
              HasSubstr("a view of impossible shape"));
  EXPECT_THAT(
      target([](View &v) {
        v = contiguousView(2, {1, 1, 1, 1, 1, 1, 1, 1, 4});
      }),
      HasSubstr("expected tensors of at most 8 dimensions, found one of 9"));
  // So many elements that they are one.
  EXPECT_THAT(view([](View &v) {
                v.shape = {int64_t(1) << 30, int64_t(1) << 30};
                v.strides = {0, 0};
              }),
              HasSubstr("a view of impossible shape"));
  EXPECT_THAT(view([](View &v) {
                v.offset = 4;
                v.strides = {-1};
              }),
              HasSubstr("a view of impossible strides"));
  EXPECT_THAT(view([](View &v) {
                v.axes = {{"moon", 0}};
              }),
              HasSubstr("a view along no axis"));
  EXPECT_THAT(view([](View &v) {
                v.axes = {{"dp", -8}};
              }),
              HasSubstr("a view along no axis"));
  EXPECT_THAT(view([](View &v) {
                v.axes = {{"dp", 2}};
              }),
              HasSubstr("elements of f32 at multiples of 4 bytes"));
  EXPECT_THAT(view([](View &v) { v.offset = -4; }),
              HasSubstr("a view that leaves buffer 'x'"));
  // Copies are for what a micro-batch leaves to itself.
  auto copies = [](const char *role, int64_t slots) {
    return tiny([&](Program &p) {
      p.arenas[0].bytes = 256;
      p.buffers.push_back({"z", role, "device", 192, 16, slots, 16, "", ""});
      commandsOf(p).push_back(
          command(FillCommand{{0, 0, 0, 0}, contiguousView(3, {4})}, "Fill"));
    });
  };
  EXPECT_EQ(copies("communication", 2), "");
  EXPECT_THAT(copies("state", 2), HasSubstr("expected one copy of buffer 'z'"));
  EXPECT_THAT(copies("constant", 2),
              HasSubstr("expected one copy of buffer 'z'"));
  EXPECT_THAT(copies("packed", 2),
              HasSubstr("expected one copy of buffer 'z'"));
  EXPECT_THAT(copies("communication", 1 << 20),
              HasSubstr("expected buffer 'z' within"));
}

TEST(ValidateFields, OfCommands) {
  auto kernel = [](const std::function<void(KernelCommand &)> &change) {
    KernelCommand command{"k", {x()}, {y()}, 1, 1};
    change(command);
    return instead(command);
  };
  EXPECT_EQ(kernel([](KernelCommand &) {}), "");
  EXPECT_THAT(kernel([](KernelCommand &k) { k.rows = -1; }),
              HasSubstr("expected rows and a grid of at least 1"));
  EXPECT_THAT(kernel([](KernelCommand &k) { k.grid = 0; }),
              HasSubstr("expected rows and a grid of at least 1"));
  EXPECT_THAT(kernel([](KernelCommand &k) { k.inputNames = {"q"}; }),
              HasSubstr("found no input 'q'"));
  // The writer signs commands before their views are checked.
  for (int64_t buffer : {-(int64_t(1) << 40), int64_t(1) << 40}) {
    EXPECT_THAT(kernel([&](KernelCommand &k) { k.inputs[0].buffer = buffer; }),
                HasSubstr("a view of no buffer"));
    EXPECT_THAT(kernel([&](KernelCommand &k) { k.outputs[0].buffer = buffer; }),
                HasSubstr("a view of no buffer"));
  }
  EXPECT_THAT(kernel([](KernelCommand &k) {
                k.scratch = contiguousView(0, {1}, DType::I8);
              }),
              HasSubstr("expected scratch in a buffer of role 'scratch', found "
                        "it in 'x' of role 'input'"));
  // Scratch lies apart from its inputs and outputs, and from what is read
  // later.
  auto withScratch = [](int64_t offset, KernelCommand kernel, bool isMore) {
    return tiny([&](Program &p) {
      p.arenas[0].bytes = std::max<int64_t>(192, offset + 64);
      p.buffers.push_back(
          {"z", "scratch", "device", offset, 16, 1, 16, "", ""});
      kernel.scratch = contiguousView(3, {16}, DType::I8);
      auto at = commandsOf(p).begin() + 1;
      if (isMore)
        commandsOf(p).insert(at, command(kernel, "K"));
      else
        at->what = kernel;
    });
  };
  KernelCommand whole{"k", {x()}, {y()}, 1, 1}, alone{"k", {}, {}, 1, 1};
  EXPECT_EQ(withScratch(192, whole, false), "");
  EXPECT_THAT(withScratch(0, whole, false),
              HasSubstr("to overlap nothing else of it, found bytes that are "
                        "also in its operand of buffer 'x'"));
  EXPECT_THAT(withScratch(128, whole, false),
              HasSubstr("to overlap nothing else of it"));
  EXPECT_EQ(withScratch(192, alone, true), "");
  EXPECT_THAT(withScratch(0, alone, true), HasSubstr("in buffer 'x', which"));
  View square = contiguousView(0, {2, 2});
  EXPECT_THAT(instead(CopyCommand{square, y()}),
              HasSubstr("expected views of one shape and element type"));
  EXPECT_THAT(instead(CopyCommand{contiguousView(0, {4}, DType::I32), y()}),
              HasSubstr("expected views of one shape and element type"));
  EXPECT_THAT(instead(CoordinateCommand{{}, contiguousView(2, {}, DType::I32)}),
              HasSubstr("expected a view of i64, of one element"));
  EXPECT_THAT(
      instead(CoordinateCommand{{"moon"}, contiguousView(2, {}, DType::I64)}),
      HasSubstr("found no mesh axis 'moon'"));
  CollectiveCommand collective;
  collective.kind = "all_reduce";
  collective.combine = "sum";
  collective.inputs = {y()};
  EXPECT_THAT(instead(collective), HasSubstr("as many outputs as inputs"));
  collective.outputs = {y()};
  collective.axes = {"mb"};
  EXPECT_THAT(instead(collective), HasSubstr("found no mesh axis 'mb'"));
  EXPECT_THAT(
      tiny([](Program &p) {
        commandsOf(p).push_back(command(
            RecvCommand{contiguousView(1, {4}), "dp", INT64_MIN, 0}, "R"));
      }),
      HasSubstr("found a message from nowhere"));
}

TEST(ValidateFields, OfTransfers) {
  auto read = [](const std::function<void(ReadCommand &)> &change) {
    return tiny([&](Program &p) {
      change(std::get<ReadCommand>(commandsOf(p)[0].what));
    });
  };
  EXPECT_THAT(read([](ReadCommand &r) { r.source = "output"; }),
              HasSubstr("expected a read of an input or a state, found one of "
                        "'output'"));
  EXPECT_THAT(read([](ReadCommand &r) { r.target.buffer = 1; }),
              HasSubstr("expected the state 'w' in the buffer that keeps it, "
                        "found 'x'"));
  EXPECT_THAT(read([](ReadCommand &r) { r.part.axes.clear(); }),
              HasSubstr("expected axes for each of 1 dimensions, found 0"));
  EXPECT_THAT(read([](ReadCommand &r) { r.name = "q"; }),
              HasSubstr("found no input or output 'q'"));
  EXPECT_THAT(tiny([](Program &p) {
                p.buffers[1].source.clear();
                std::get<ReadCommand>(commandsOf(p, 0)[0].what).name = "u";
              }),
              HasSubstr("found no state 'u'"));
  EXPECT_THAT(tiny([](Program &p) {
                std::get<WriteCommand>(commandsOf(p)[2].what).target = "state";
              }),
              HasSubstr("expected a write of an output, found one of 'state'"));
  const char *whole = "expected the shape and type of the tensor";
  for (bool output : {false, true}) {
    auto tensor = [&](Executable &e) -> TensorPlan & {
      return (output ? e.outputs : e.inputs)[0];
    };
    EXPECT_THAT(file([&](Executable &e) { tensor(e).shape = {8}; }),
                HasSubstr(whole));
    EXPECT_THAT(file([&](Executable &e) { tensor(e).dtype = DType::I32; }),
                HasSubstr(whole));
    EXPECT_THAT(file([&](Executable &e) {
                  tensor(e).shape = {-2, -2};
                }),
                HasSubstr("found sizes out of range for input or output"));
    EXPECT_THAT(file([&](Executable &e) {
                  tensor(e).shape = {1 << 30, 1 << 30};
                }),
                HasSubstr("found sizes out of range for input or output"));
  }
  EXPECT_THAT(file(
                  [](Executable &e) {
                    auto &commands = commandsOf(e.programs[0]);
                    std::get<ReadCommand>(commands[0].what).part.shape = {7};
                  },
                  2),
              HasSubstr("a part that mesh axis 'dp' does not divide"));
}

TEST(ValidateFields, OfTables) {
  EXPECT_THAT(file([](Executable &e) { e.programs.clear(); }),
              HasSubstr("expected at least one program, found none"));
  EXPECT_THAT(file([](Executable &e) { e.inputs.push_back(e.inputs[0]); }),
              HasSubstr("found two of input or output 'x'"));
  EXPECT_THAT(file([](Executable &e) { e.mesh.push_back(e.mesh[0]); }),
              HasSubstr("found mesh axis 'dp' twice"));
  EXPECT_THAT(file([](Executable &e) {
                e.mesh = {{"dp", 1 << 20}, {"tp", 2}};
              }),
              HasSubstr("expected a mesh of 1 to 1048576 ranks"));
  EXPECT_THAT(file([](Executable &e) {
                e.mesh.push_back({"pp", 2});
              }),
              HasSubstr("a program for each of 2 stages, found 1"));
  EXPECT_THAT(file([](Executable &e) {
                e.folded = {{"old", std::vector<int64_t>{1 << 30, 1 << 30}}};
              }),
              HasSubstr("found sizes out of range for 'old'"));
  std::vector<SectionData> twice = tinySections();
  twice.push_back(twice[0]);
  EXPECT_THAT(check(tinyExecutable(), twice),
              HasSubstr("found section 'state:w' twice"));
}

TEST(ValidateFields, OfStates) {
  auto state = [](const std::function<void(StatePlan &)> &change) {
    return file([&](Executable &e) { change(e.states[0]); });
  };
  EXPECT_THAT(state([](StatePlan &s) {
                s.shape = {1 << 30, 1 << 30};
              }),
              HasSubstr("found sizes out of range for state 'w'"));
  for (std::vector<int64_t> shape : {std::vector<int64_t>{2}, {2, 2, 2}})
    EXPECT_THAT(state([&](StatePlan &s) { s.logicalShape = shape; }),
                HasSubstr("a logical shape within the shape of state 'w'"));
  EXPECT_THAT(state([](StatePlan &s) {
                s.axes = {{"moon"}, {}};
              }),
              HasSubstr("found no mesh axis 'moon'"));
  // Parts of a dimension that there is, of its size, which shares divide.
  for (auto &order : {Interleaved{2, {1, 1}, 1}, Interleaved{0, {}, 1},
                      Interleaved{0, {2, 1}, 1}, Interleaved{0, {1, 1}, 2},
                      Interleaved{0, {1, 1}, 0}, Interleaved{-1, {1, 1}, 1},
                      Interleaved{0, {1, 1}, 1, 2}, Interleaved{0, {1}, 1, 3},
                      Interleaved{0, {1, 1}, 1, 0}})
    EXPECT_THAT(state([&](StatePlan &s) {
                  s.axes = {{}, {}};
                  s.interleaved = order;
                }),
                HasSubstr("expected parts of a dimension of state 'w'"));
  EXPECT_THAT(state([&](StatePlan &s) {
                s.axes = {{}, {}};
                s.interleaved = Interleaved{0, {1, 1}, 1};
              }),
              HasSubstr("expected the shape of the state, shared as it is"));
  EXPECT_THAT(
      state([](StatePlan &s) { s.first.stored = DType::F32; }),
      HasSubstr("a conversion to a wider float, found one of f32 to f32"));
  EXPECT_THAT(state([](StatePlan &s) {
                s.first.stored = DType::F64;
                s.dtype = DType::F32;
                s.first.bytes = 32;
              }),
              HasSubstr("a conversion to a wider float, found one of f64"));
  EXPECT_THAT(state([](StatePlan &s) { s.first.offset = 17; }),
              HasSubstr("expected a range of a section for state 'w'"));
  EXPECT_THAT(state([](StatePlan &s) { s.first.hash.reset(); }),
              HasSubstr("expected a hash of the first value of state 'w'"));
  EXPECT_THAT(state([](StatePlan &s) { s.first.section = "none"; }),
              HasSubstr("expected a range of a section for state 'w'"));
  for (std::vector<int64_t> permutation : {std::vector<int64_t>{0, 0}, {0}})
    EXPECT_THAT(state([&](StatePlan &s) { s.first.permutation = permutation; }),
                HasSubstr("expected a permutation for state 'w'"));
}

TEST(ValidateFields, OfTrainingSteps) {
  auto report = [](const std::function<void(TensorPlan &)> &change) {
    return training([&](Executable &e) {
      for (TensorPlan &output : e.outputs)
        if (output.name == "loss")
          change(output);
    });
  };
  const char *number = "expected an output 'loss', a number of type f32 or f64";
  EXPECT_EQ(report([](TensorPlan &) {}), "");
  EXPECT_THAT(report([](TensorPlan &t) { t.name = "lost"; }),
              HasSubstr(number));
  EXPECT_THAT(report([](TensorPlan &t) { t.shape = {2}; }), HasSubstr(number));
  EXPECT_THAT(report([](TensorPlan &t) { t.dtype = DType::I32; }),
              HasSubstr(number));
  // More commands than can be checked in seconds.
  EXPECT_THAT(file([](Executable &e) {
                e.microBatches = 1 << 20;
                auto &commands = commandsOf(e.programs[0]);
                commands.resize(17, commands[1]);
                auto &runs = e.programs[0].entries[1].loops[0].segments[0].runs;
                runs.assign(1 << 20, {1, 0});
              }),
              HasSubstr("expected at most 16777216 commands in the runs"));
}

TEST(ValidateFields, OfAttention) {
  auto attention = [](const std::function<void(AttentionCommand &)> &change) {
    return tiny([&](Program &p) {
      p.arenas[0].bytes = 256;
      p.buffers.push_back({"z", "activation", "device", 192, 8, 1, 8, "", ""});
      AttentionCommand attention;
      attention.query = attention.key = attention.value =
          contiguousView(0, {1, 1, 2, 2});
      attention.output = contiguousView(2, {1, 1, 2, 2});
      attention.logSumExp = contiguousView(3, {1, 1, 2});
      attention.causal = true;
      change(attention);
      commandsOf(p)[1].what = attention;
      View seen = contiguousView(3, {1, 1, 2}), kept = contiguousView(2, {});
      kept.shape = seen.shape, kept.strides = seen.strides;
      commandsOf(p).insert(commandsOf(p).begin() + 2,
                           command(CopyCommand{seen, kept}, "Copy"));
    });
  };
  EXPECT_EQ(attention([](AttentionCommand &a) { a.rowOffset = 3; }), "");
  EXPECT_EQ(
      attention([](AttentionCommand &a) { a.rowSteps["dp"] = int64_t(3); }),
      "");
  EXPECT_THAT(
      attention([](AttentionCommand &a) { a.rowSteps["xp"] = int64_t(3); }),
      HasSubstr("'xp'"));
  EXPECT_NE(
      attention([](AttentionCommand &a) { a.rowSteps["mb"] = int64_t(3); }),
      "");
  EXPECT_THAT(
      attention([](AttentionCommand &a) { a.rowSteps["dp"] = int64_t(-3); }),
      HasSubstr("expected offsets of rows and columns"));
  EXPECT_THAT(attention([](AttentionCommand &a) { a.rowSteps["dp"] = 0.5; }),
              HasSubstr("expected offsets of rows and columns"));
  // Keys that came from another rank: of causal attention, and only where a
  // rank's keys are not all.
  EXPECT_EQ(attention([](AttentionCommand &a) {
              a.columnSteps["dp"] = int64_t(3);
              a.turn = 1;
            }),
            "");
  EXPECT_THAT(
      attention([](AttentionCommand &a) { a.columnSteps["xp"] = int64_t(3); }),
      HasSubstr("'xp'"));
  EXPECT_THAT(
      attention([](AttentionCommand &a) { a.columnSteps["dp"] = int64_t(-3); }),
      HasSubstr("expected offsets of rows and columns"));
  EXPECT_THAT(attention([](AttentionCommand &a) { a.turn = 1; }),
              HasSubstr("expected offsets of rows and columns"));
  EXPECT_THAT(attention([](AttentionCommand &a) {
                a.columnSteps["dp"] = int64_t(3);
                a.turn = -1;
              }),
              HasSubstr("expected offsets of rows and columns"));
  EXPECT_THAT(attention([](AttentionCommand &a) {
                a.causal = false;
                a.columnSteps["dp"] = int64_t(3);
              }),
              HasSubstr("expected offsets of rows and columns"));
  // Rows and keys that are apart, of causal attention.
  EXPECT_EQ(attention([](AttentionCommand &a) { a.stride = 2; }), "");
  EXPECT_THAT(attention([](AttentionCommand &a) { a.stride = 0; }),
              HasSubstr("a stride of at least 1"));
  EXPECT_THAT(attention([](AttentionCommand &a) {
                a.causal = false;
                a.stride = 2;
              }),
              HasSubstr("a stride of at least 1"));
  const char *offsets = "expected offsets of rows and columns of at least 0";
  EXPECT_THAT(attention([](AttentionCommand &a) { a.rowOffset = -1; }),
              HasSubstr(offsets));
  EXPECT_THAT(
      attention([](AttentionCommand &a) { a.columnOffset = int64_t(1) << 60; }),
      HasSubstr(offsets));
  EXPECT_THAT(attention([](AttentionCommand &a) {
                a.causal = false;
                a.columnOffset = 1;
              }),
              HasSubstr(offsets));
  EXPECT_THAT(attention([](AttentionCommand &a) {
                a.logSumExp = contiguousView(3, {1, 1, 3});
              }),
              HasSubstr("'z'"));
  // What holds a value is no scratch.
  EXPECT_THAT(attention([](AttentionCommand &a) {
                a.scratch = contiguousView(0, {1}, DType::I8);
              }),
              HasSubstr("expected scratch in a buffer of role 'scratch', found "
                        "it in 'x' of role 'input'"));
  // It is written: the copy reads it.
  EXPECT_THAT(attention([](AttentionCommand &a) { a.logSumExp.reset(); }),
              HasSubstr("'z'"));
}

TEST(ValidateFields, OfSignatures) {
  Program program = tinyExecutable().programs[0];
  program.buffers.push_back(program.buffers[0]);
  auto sign = [&](View in, View out) {
    auto kernel = kernelSignature(
        program, command(KernelCommand{"k", {in}, {out}, 1, 1}, "K"));
    EXPECT_TRUE(kernel);
    return kernel ? kernel->signature : 0;
  };
  View in = contiguousView(0, {4}), out = contiguousView(3, {4});
  uint64_t inPlace = sign(in, in);
  EXPECT_EQ(sign(in, out), inPlace) << "another buffer at the same place";
  EXPECT_NE(sign(in, y()), inPlace);
  // Each thing that a form says is another form.
  auto signForm = [&](Form form) {
    KernelCommand kernel{"k", {in}, {out}, 1, 1};
    kernel.form = std::move(form);
    return kernelSignature(program, command(kernel, "K"))->signature;
  };
  std::set<uint64_t> forms = {inPlace,
                              signForm({{"stages", int64_t(2)}}),
                              signForm({{"stages", int64_t(3)}}),
                              signForm({{"blocks", int64_t(2)}}),
                              signForm({{"stages", 2.0}}),
                              signForm({{"stages", "2"}}),
                              signForm({{"stages", std::vector<int64_t>{2}}})};
  EXPECT_EQ(forms.size(), 7u);
  auto elsewhere =
      [&](const std::function<void(BufferPlan &, View &)> &change) {
        BufferPlan before = program.buffers[3];
        View moved = out;
        change(program.buffers[3], moved);
        EXPECT_NE(sign(in, moved), inPlace);
        program.buffers[3] = before;
      };
  elsewhere([](BufferPlan &b, View &) { b.space = "shared"; });
  elsewhere([](BufferPlan &b, View &) { b.offset = 64; });
  elsewhere([](BufferPlan &b, View &) { b.slotStride = 32; });
  elsewhere([](BufferPlan &, View &v) { v.offset = 4; });
  elsewhere([](BufferPlan &b, View &) { b.slots = 2; });
  elsewhere([](BufferPlan &, View &v) { v.axes = {{"dp", 8}}; });
  in.axes = {{"dp", 8}};
  EXPECT_EQ(sign(in, in), inPlace);
  elsewhere([](BufferPlan &, View &v) { v.axes = {{"mb", 8}}; });
  elsewhere([](BufferPlan &, View &v) { v.axes = {{"dp", 4}}; });
  // Code of attention gets offsets as numbers; what is not there is compiled
  // in.
  auto signAttention = [&](const auto &change) {
    AttentionCommand attention;
    attention.kernel = "softmax";
    attention.causal = true;
    change(attention);
    return kernelSignature(program, command(attention, "A"))->signature;
  };
  uint64_t plain = signAttention([](AttentionCommand &) {});
  EXPECT_EQ(signAttention([](AttentionCommand &a) {
              a.rowOffset = 1;
              a.rowSteps["dp"] = int64_t(4);
            }),
            plain)
      << "the code is told which rows it works on";
  EXPECT_NE(signAttention([](AttentionCommand &a) { a.logSumExp = x(); }),
            plain);
  auto signGrad = [&](const auto &change) {
    AttentionGradCommand grad;
    grad.kernel = "softmax_grad";
    grad.causal = true;
    change(grad);
    return kernelSignature(program, command(grad, "A"))->signature;
  };
  plain = signGrad([](AttentionGradCommand &) {});
  EXPECT_EQ(signGrad([](AttentionGradCommand &g) { g.columnOffset = 1; }),
            plain);
  EXPECT_NE(signGrad([](AttentionGradCommand &g) { g.output = x(); }), plain);
  EXPECT_NE(
      signGrad([](AttentionGradCommand &g) { g.logSumExpGradient = x(); }),
      plain);
  // Without a softmax of its own an attention calls no generated code.
  EXPECT_FALSE(kernelSignature(program, command(AttentionCommand{}, "A")));
  EXPECT_FALSE(kernelSignature(program, command(AttentionGradCommand{}, "A")));
}

} // namespace
