// Reads and writes of the parts of all micro-batches at once: which bytes of
// the files they are, and what files may not say of them.

#include "RunFixture.h"
#include "WalledDevice.h"

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// Two ranks share each of two micro-batches of x [16]. All that a rank has of
/// it is read at once; each micro-batch writes its own as y, and puts it where
/// all are written as z.
Executable stagedExecutable() {
  Executable executable = tinyExecutable(2);
  executable.microBatches = 2;
  Part part{{16}, {{"mb", "dp"}}};
  executable.inputs[0].shape = executable.outputs[0].shape = part.shape;
  executable.outputs.push_back({"z", DType::F32, part.shape});
  Program &program = executable.programs[0];
  program.arenas = {{"device", 144, 64, 1 << 28}, {"pinned", 96, 64, 0}};
  program.buffers[0] = {"x", "input", "pinned", 0, 32, 1, 32, "", ""};
  program.buffers.push_back({"z", "output", "pinned", 64, 32, 1, 32, "", ""});
  View x = contiguousView(0, {2, 4}), z = contiguousView(3, {2, 4}),
       y = contiguousView(2, {4}), ownX = contiguousView(0, {4}),
       ownZ = contiguousView(3, {4});
  ownX.axes = ownZ.axes = {{"mb", 16}};
  program.bodies[1].commands = {
      command(ReadCommand{"input", "x", part, x, true}, "X")};
  program.bodies.push_back(
      {"own",
       "cpu",
       {command(CopyCommand{ownX, y}, "Own"),
        command(CopyCommand{ownX, ownZ}, "Put"),
        command(WriteCommand{"output", "y", part, y}, "Y")}});
  program.bodies.push_back(
      {"write",
       "cpu",
       {command(WriteCommand{"output", "z", part, z, true}, "Z")}});
  program.entries[1].loops = {{1, {{"cpu", false, {{1, 0}}}}},
                              {2, {{"cpu", false, {{2, 0}}}}},
                              {1, {{"cpu", false, {{3, 0}}}}}};
  return executable;
}

class EachMicroBatch : public RunTest {
protected:
  void expectCopies() {
    write(stagedExecutable());
    ASSERT_EQ(run(), "");
    std::vector<float> x = readNpy(folder / "x.npy");
    EXPECT_EQ(readNpy(folder / "out/y.npy"), x);
    EXPECT_EQ(readNpy(folder / "out/z.npy"), x);
  }
};

TEST_F(EachMicroBatch, IsReadAndWrittenAtOnce) { expectCopies(); }

TEST_F(EachMicroBatch, IsReadWhereTheHostCannotReach) {
  options.ownDevice = &walledDevice();
  options.poison = true;
  expectCopies();
}

TEST_F(EachMicroBatch, IsReadOnTheModelDevice) {
  for (const char *order : {"seed:3", "last"}) {
    model::ModelOptions asked;
    ASSERT_TRUE(model::Order::parse(order, asked.order).ok());
    DeviceKind kind = model::modelDevice(asked, "cpu");
    options.ownDevice = &kind;
    expectCopies();
  }
}

TEST_F(EachMicroBatch, HasAPlaceForEach) {
  auto error = [&](auto change) {
    Executable executable = stagedExecutable();
    change(executable.programs[0].bodies);
    return writeExecutableFile(executable, tinySections(), folder / "m.accx")
        .message();
  };
  auto readOf = [](std::vector<Body> &bodies) -> ReadCommand & {
    return std::get<ReadCommand>(bodies[1].commands[0].what);
  };
  auto writeOf = [](std::vector<Body> &bodies) -> WriteCommand & {
    return std::get<WriteCommand>(bodies[3].commands[0].what);
  };
  EXPECT_THAT(error([&](auto &bodies) {
                readOf(bodies).target = contiguousView(0, {4});
              }),
              HasSubstr("expected a view of the part's shape, for each "
                        "micro-batch"));
  EXPECT_THAT(
      error([&](auto &bodies) {
        writeOf(bodies).view.shape = {1, 4};
      }),
      HasSubstr("expected a view of the part's shape, for each micro-batch"));
  EXPECT_THAT(
      error([&](auto &bodies) { readOf(bodies).eachMicroBatch = false; }),
      HasSubstr("expected a view of the part's shape"));
  // One of two micro-batches.
  EXPECT_THAT(error([&](auto &bodies) {
                readOf(bodies).eachMicroBatch = false;
                readOf(bodies).target = contiguousView(0, {4});
              }),
              HasSubstr("to run once for each micro-batch"));
  EXPECT_THAT(error([&](auto &bodies) {
                auto &state = std::get<ReadCommand>(bodies[0].commands[0].what);
                state.eachMicroBatch = true;
                state.target.shape = {2, 1, 2};
                state.target.strides = {2, 2, 1};
                state.part.shape = {1, 2};
              }),
              HasSubstr("expected an input or an output of each micro-batch, "
                        "found state 'w'"));
}

} // namespace
