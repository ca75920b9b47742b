// A hand-made training executable: micro-batches, an accumulator, a counter, a
// replicated and a sharded parameter, a buffer, and outputs that show which
// samples each rank and micro-batch read. Its kernels are
// test/Tools/TinyKernels.cpp.

#ifndef ACCEL_TEST_UNIT_RUNTIME_TINYTRAINING_H
#define ACCEL_TEST_UNIT_RUNTIME_TINYTRAINING_H

#include "TinyExecutable.h"

#include <fstream>

namespace accel::rt::test {

/// The bytes of a number, as FillCommand and FirstValue have them.
template <class T> std::vector<int64_t> bytesOf(T value) {
  const auto *bytes = reinterpret_cast<const unsigned char *>(&value);
  return std::vector<int64_t>(bytes, bytes + sizeof value);
}

/// Adds buffers one after another and names the last one.
class TinyBuffers {
public:
  /// To a program without any, or, where it `goesOn`, behind those that it has.
  explicit TinyBuffers(Program &program, bool goesOn = false)
      : program(program) {
    if (!goesOn)
      program.arenas = {{"device", 0, 64, 1 << 28}, {"shared", 0, 64, 0}};
  }
  /// A contiguous view of a new buffer.
  View add(const std::string &name, const std::string &role,
           std::vector<int64_t> shape, DType dtype = DType::F32,
           bool shared = false) {
    View view = contiguousView(static_cast<int64_t>(program.buffers.size()),
                               shape, dtype);
    int64_t bytes = dtypeBytes(dtype);
    for (int64_t size : shape)
      bytes *= size;
    ArenaPlan &arena = program.arenas[shared];
    program.buffers.push_back({name, role, arena.space, arena.bytes, bytes, 1,
                               bytes, "", role == "state" ? name : ""});
    arena.bytes += (bytes + 63) / 64 * 64;
    return view;
  }

private:
  Program &program;
};

/// x [4·ranks·microBatches/2] f32 in pieces of 2; or, with `length`, the
/// integer inputs input_ids, labels and attention_mask [2·ranks·microBatches,
/// length] as well, which come back as outputs.
inline Executable tinyTraining(int64_t ranks = 1, int64_t microBatches = 1,
                               int64_t length = 0) {
  Executable executable;
  executable.target = "cpu";
  executable.mesh = {{"dp", ranks}};
  executable.microBatches = microBatches;
  executable.seed = 7;
  Program program;
  program.name = "step";
  TinyBuffers buffers(program);
  Body load{"load", "cpu", {}}, prepare{"prepare", "cpu", {}},
      forward{"forward", "cpu", {}}, update{"update", "cpu", {}};

  auto state = [&](StatePlan plan, std::vector<int64_t> piece) {
    View view = buffers.add(plan.name, "state", piece, plan.dtype);
    Part part{plan.shape, plan.axes};
    part.axes.resize(plan.shape.size());
    load.commands.push_back(
        command(ReadCommand{"state", plan.name, part, view}, plan.name));
    executable.states.push_back(std::move(plan));
    return view;
  };
  auto filled = [](std::string name, std::string role, DType dtype,
                   std::vector<int64_t> shape, std::vector<int64_t> fill) {
    StatePlan plan;
    plan.name = std::move(name);
    plan.role = std::move(role);
    plan.dtype = dtype;
    plan.shape = std::move(shape);
    plan.first.fill = std::move(fill);
    return plan;
  };
  StatePlan w;
  w.name = "net/w";
  w.aliases = {"tied"};
  w.shape = {2, 2};
  w.first.section = "state:w";
  w.first.bytes = 16;
  w.first.hash = hashBytes(kTinyState, sizeof kTinyState);
  w.first.permutation = {1, 0};
  StatePlan rows =
      filled("rows", "parameter", DType::F32, {2 * ranks}, bytesOf(1.f));
  rows.axes = {{"dp"}};
  StatePlan mask = filled("mask", "buffer", DType::F32, {3}, bytesOf(7.f));
  mask.frozen = true;
  View wView = state(w, {2, 2}), rowsView = state(rows, {2});
  state(mask, {3});
  state(filled("exp_avg/net/w", "moment", DType::F32, {2, 2}, bytesOf(0.f)),
        {2, 2});
  View sum =
      state(filled("sum", "accumulator", DType::F32, {1}, bytesOf(0.f)), {1});
  View step = state(
      filled(kCallCounter, "counter", DType::I64, {}, bytesOf<int64_t>(0)), {});

  std::vector<std::string> both{"mb", "dp"};
  int64_t pieces = ranks * microBatches;
  auto input = [&](std::string name, DType dtype, std::vector<int64_t> shape,
                   View view) {
    Part part{shape, {both}};
    part.axes.resize(shape.size());
    executable.inputs.push_back({name, dtype, part.shape, 0});
    forward.commands.push_back(
        command(ReadCommand{"input", name, part, view}, name));
  };
  auto output = [&](Body &body, std::string name, Part part, View view) {
    executable.outputs.push_back({name, view.dtype, part.shape});
    body.commands.push_back(
        command(WriteCommand{"output", name, part, view}, name));
  };

  // Every micro-batch keeps its x in a place of its own.
  View kept = buffers.add("kept", "activation", {1, microBatches, 2});
  View x = kept;
  x.shape = {2};
  x.strides = {1};
  x.axes = {{"mb", 8}};
  input("x", DType::F32, {2 * pieces}, x);
  View index = buffers.add("index", "activation", {1}, DType::I64);
  View scalarIndex = index;
  scalarIndex.shape = scalarIndex.strides = {};
  forward.commands.push_back(
      command(CoordinateCommand{both, scalarIndex}, "Index"));
  output(forward, "index", {{pieces}, {both}}, index);
  forward.commands.push_back(command(
      KernelCommand{"tiny_accumulate", {x, sum}, {sum}, 1, 1}, "Sum#1"));
  if (length)
    for (std::string name : {"input_ids", "labels", "attention_mask"}) {
      View view = buffers.add(name, "input", {2, length}, DType::I64);
      input(name, DType::I64, {2 * pieces, length}, view);
      output(forward, "seen." + name, {{2 * pieces, length}, {both, {}}}, view);
    }

  View g = buffers.add("g", "communication", {1}, DType::F32, /*shared=*/true);
  View loss = buffers.add("loss", "output", {}),
       norm = buffers.add("grad_norm", "output", {}),
       lr = buffers.add("lr", "output", {}),
       verdict = buffers.add("verdict", "output", {}, DType::I32),
       gradient = buffers.add("w.grad", "output", {2, 2});
  prepare.commands = {command(FillCommand{bytesOf(0.f), sum}, "Zero")};
  CollectiveCommand collective;
  collective.kind = "all_reduce";
  collective.axes = {"dp"};
  collective.combine = "sum";
  collective.inputs = collective.outputs = {g};
  update.commands = {command(CopyCommand{sum, g}, "Copy#1"),
                     command(collective, "AllReduce#1"),
                     command(KernelCommand{"tiny_update",
                                           {g, step, wView, rowsView},
                                           {step, wView, rowsView, loss, norm,
                                            lr, gradient, verdict},
                                           1,
                                           1},
                             "Update#1")};
  output(update, "loss", {}, loss);
  output(update, "grad_norm", {}, norm);
  output(update, "lr", {}, lr);
  output(update, "verdict", {}, verdict);
  for (size_t i = executable.outputs.size() - 4; i < executable.outputs.size();
       ++i)
    executable.reports.push_back(
        {executable.outputs[i].name, executable.outputs[i].dtype});
  output(update, "net/w.grad", {{2, 2}, {{}, {}}}, gradient);
  output(update, "kept", {{ranks, microBatches, 2}, {{"dp"}, {}, {}}}, kept);

  program.bodies = {load, prepare, forward, update};
  auto once = [](int64_t body) {
    return Loop{1, {{"cpu", false, {{body, 0}}}}};
  };
  Loop loop = once(2);
  loop.trips = microBatches;
  program.entries = {{"load", {once(0)}}, {"step", {once(1), loop, once(3)}}};
  executable.programs = {program};
  return executable;
}

/// The sections of tinyTraining; `kernels` gets the library's bytes.
inline std::vector<SectionData> tinyTrainingSections(std::string &kernels) {
  std::ifstream library(ACCEL_TINY_KERNELS, std::ios::binary);
  kernels.assign(std::istreambuf_iterator<char>(library), {});
  std::vector<SectionData> sections = tinySections();
  sections.push_back({std::string(kCodePrefix) + "cpu.so",
                      DType::UI8,
                      {static_cast<int64_t>(kernels.size())},
                      kernels.data(),
                      kernels.size()});
  return sections;
}

/// The same with each of the rows of 'rows' as a state of its own, 'row.0' and
/// so on; but for the last `padding`.
inline Executable stackedTraining(int64_t ranks, int64_t microBatches = 1,
                                  int64_t padding = 0) {
  Executable executable = tinyTraining(ranks, microBatches);
  std::vector<StatePlan> &states = executable.states;
  StatePlan row = states[1];
  row.shape.clear();
  row.axes.clear();
  row.inStack = StackRow{"rows", 0, 2 * ranks, {"dp"}};
  states.erase(states.begin() + 1);
  for (int64_t i = 0; i < 2 * ranks - padding; ++i) {
    row.name = "row." + std::to_string(i);
    row.inStack->row = i;
    states.insert(states.begin() + 1 + i, row);
  }
  return executable;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_TINYTRAINING_H
