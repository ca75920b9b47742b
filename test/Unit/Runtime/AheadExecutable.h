// An executable that fetches its input a micro-batch ahead, on a stream of its
// own, and waits for it where it is used.

#ifndef ACCEL_TEST_UNIT_RUNTIME_AHEADEXECUTABLE_H
#define ACCEL_TEST_UNIT_RUNTIME_AHEADEXECUTABLE_H

#include "TinyExecutable.h"

namespace accel::rt::test {

/// x [4] in four micro-batches of one element is read by `fetch` (body 2) into
/// two copies and copied to y by `use` (body 1).
inline Executable aheadExecutable() {
  Executable executable = tinyExecutable();
  executable.microBatches = 4;
  Part part{{4}, {{"mb"}}};
  executable.inputs[0].shape = executable.outputs[0].shape = part.shape;
  Program &program = executable.programs[0];
  program.arenas[0].bytes = 256;
  program.buffers[0] = {"x", "input", "device", 0, 4, 2, 64, "", ""};
  program.buffers[1].offset = 128;
  program.buffers[2] = {"y", "output", "device", 192, 4, 1, 4, "", ""};
  program.arenas[0].bytes = 196;
  View x = contiguousView(0, {1}), y = contiguousView(2, {1});
  auto beside = [](Command command) {
    command.stream = "comm";
    return command;
  };
  program.bodies[1] = {"use",
                       "cpu",
                       {command(WaitCommand{"there", 2}, "Wait"),
                        command(CopyCommand{x, y}, "Copy#1"),
                        command(WriteCommand{"output", "y", part, y}, "Y")}};
  program.bodies.push_back(
      {"fetch",
       "cpu",
       {command(RecordCommand{"begun"}, "Record"),
        beside(command(WaitCommand{"begun"}, "Wait")),
        beside(command(ReadCommand{"input", "x", part, x}, "X")),
        beside(command(RecordCommand{"there"}, "Record"))}});
  program.entries[1].loops = {{1, {{"cpu", false, {{2, 0}}}}},
                              {3, {{"cpu", false, {{2, 1}, {1, 0}}}}},
                              {1, {{"cpu", false, {{1, 3}}}}}};
  return executable;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_AHEADEXECUTABLE_H
