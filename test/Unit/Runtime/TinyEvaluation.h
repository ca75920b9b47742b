// The hand-made training executable with another entry beside the step.

#ifndef ACCEL_TEST_UNIT_RUNTIME_TINYEVALUATION_H
#define ACCEL_TEST_UNIT_RUNTIME_TINYEVALUATION_H

#include "TinyTraining.h"

namespace accel::rt::test {

/// A contiguous view of a new buffer behind those of the first arena.
inline View addBuffer(Program &program, const std::string &name,
                      const std::string &role, std::vector<int64_t> shape,
                      DType dtype = DType::F32) {
  View view = contiguousView(static_cast<int64_t>(program.buffers.size()),
                             shape, dtype);
  int64_t bytes = dtypeBytes(dtype);
  for (int64_t size : shape)
    bytes *= size;
  ArenaPlan &arena = program.arenas[0];
  program.buffers.push_back(
      {name, role, arena.space, arena.bytes, bytes, 1, bytes, "", ""});
  arena.bytes += (bytes + 63) / 64 * 64;
  return view;
}

/// tinyTraining with the entry eval, whose loss is w[0, 0]: bodies `score` (4)
/// and, with `length`, `look` (5), which reads and gives back labels.
inline Executable tinyEvaluation(int64_t ranks = 1, int64_t microBatches = 1,
                                 int64_t length = 0) {
  Executable executable = tinyTraining(ranks, microBatches, length);
  Program &program = executable.programs[0];
  View w = contiguousView(0, {}),
       loss = addBuffer(program, "eval.loss", "output", {});
  program.bodies.push_back(
      {"score",
       "cpu",
       {command(CopyCommand{w, loss}, "Score"),
        command(WriteCommand{"output", "loss", {}, loss}, "loss")}});
  Entry eval{"eval", {{1, {{"cpu", false, {{4, 0}}}}}}};
  if (length) {
    Part part{{2 * ranks * microBatches, length}, {{"mb", "dp"}, {}}};
    View labels =
        addBuffer(program, "eval.labels", "input", {2, length}, DType::I64);
    program.bodies.push_back(
        {"look",
         "cpu",
         {command(ReadCommand{"input", "labels", part, labels}, "labels"),
          command(WriteCommand{"output", "seen.labels", part, labels},
                  "labels")}});
    eval.loops.push_back({microBatches, {{"cpu", false, {{5, 0}}}}});
  }
  program.entries.push_back(eval);
  return executable;
}

/// The same, whose loss is said to be w[1, 0] over w[1, 1].
inline Executable tinyQuotient() {
  Executable executable = tinyEvaluation();
  Program &program = executable.programs[0];
  executable.separateRows.emplace().terms = {{"n", "d"}};
  for (auto [name, offset] : {std::pair("n", 8), std::pair("d", 12)}) {
    View element = contiguousView(0, {}),
         number = addBuffer(program, name, "output", {});
    element.offset = offset;
    executable.outputs.push_back({name, DType::F32, {}});
    auto &commands = program.bodies[4].commands;
    commands.push_back(command(CopyCommand{element, number}, name));
    commands.push_back(command(WriteCommand{"output", name, {}, number}, name));
  }
  return executable;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_TINYEVALUATION_H
