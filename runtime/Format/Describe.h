// One description of every struct of PlanFormat.h, which the writer and the
// reader both walk: `describe(io, value)` names each field once, so that the
// two sides cannot disagree. Commands have theirs beside them
// (accel-rt/CommandFormat.h).

#ifndef ACCEL_RUNTIME_FORMAT_DESCRIBE_H
#define ACCEL_RUNTIME_FORMAT_DESCRIBE_H

#include "accel-rt/PlanFormat.h"

#include <array>

namespace accel::rt::format {

template <class IO> void describe(IO &io, Axis &axis) {
  io.field("name", axis.name);
  io.field("size", axis.size);
}
template <class IO> void describe(IO &io, AxisStride &stride) {
  io.field("axis", stride.axis);
  io.field("bytes", stride.bytes);
}
template <class IO> void describe(IO &io, View &view) {
  io.field("buffer", view.buffer);
  io.field("offset", view.offset);
  io.field("axes", view.axes);
  io.field("dtype", view.dtype);
  io.field("shape", view.shape);
  io.field("strides", view.strides);
}
template <class IO> void describe(IO &io, Interleaved &interleaved) {
  io.field("dim", interleaved.dim);
  io.field("sizes", interleaved.sizes);
  io.field("by", interleaved.by);
  io.field("times", interleaved.times);
}
template <class IO> void describe(IO &io, Part &part) {
  io.field("shape", part.shape);
  io.field("axes", part.axes);
  io.field("interleaved", part.interleaved);
}
template <class IO> void describe(IO &io, Command &command) {
  io.alternative("kind", command.what); // its fields stand beside `kind`
  io.field("stream", command.stream);
  io.field("node", command.node);
  io.field("releases", command.releases);
  io.field("flops", command.flops);
  io.field("inserted_by", command.insertedBy);
}
template <class IO> void describe(IO &io, StoragePlan &storage) {
  io.field("path", storage.path);
  io.field("block_bytes", storage.blockBytes);
  io.field("queue_depth", storage.queueDepth);
}
template <class IO> void describe(IO &io, ArenaPlan &arena) {
  io.field("space", arena.space);
  io.field("bytes", arena.bytes);
  io.field("alignment", arena.alignment);
  io.field("reserve", arena.reserve);
  io.field("storage", arena.storage);
}
template <class IO> void describe(IO &io, BufferPlan &buffer) {
  io.field("name", buffer.name);
  io.field("role", buffer.role);
  io.field("space", buffer.space);
  io.field("offset", buffer.offset);
  io.field("bytes", buffer.bytes);
  io.field("slots", buffer.slots);
  io.field("slot_stride", buffer.slotStride);
  io.field("section", buffer.section);
  io.field("source", buffer.source);
  io.field("alias_of", buffer.aliasOf);
}
template <class IO> void describe(IO &io, Body &body) {
  io.field("name", body.name);
  io.field("engine", body.engine);
  io.field("commands", body.commands);
}
template <class IO> void describe(IO &io, Run &run) {
  io.field("body", run.body);
  io.field("micro_batch", run.microBatch);
}
template <class IO> void describe(IO &io, Segment &segment) {
  io.field("engine", segment.engine);
  io.field("capturable", segment.capturable);
  io.field("runs", segment.runs);
}
template <class IO> void describe(IO &io, Loop &loop) {
  io.field("trips", loop.trips);
  io.field("segments", loop.segments);
}
template <class IO> void describe(IO &io, Entry &entry) {
  io.field("name", entry.name);
  io.field("loops", entry.loops);
}
template <class IO> void describe(IO &io, Program &program) {
  io.field("name", program.name);
  io.field("stage", program.stage);
  io.field("arenas", program.arenas);
  io.field("buffers", program.buffers);
  io.field("bodies", program.bodies);
  io.field("entries", program.entries);
}
template <class IO> void describe(IO &io, FirstValue &first) {
  io.field("path", first.path);
  io.field("section", first.section);
  io.field("offset", first.offset);
  io.field("bytes", first.bytes);
  io.field("hash", first.hash);
  io.field("permutation", first.permutation);
  io.field("fill", first.fill);
  io.field("stored", first.stored);
}
template <class IO> void describe(IO &io, StackRow &row) {
  io.field("stack", row.stack);
  io.field("row", row.row);
  io.field("rows", row.rows);
  io.field("axes", row.axes);
}
template <class IO> void describe(IO &io, StatePlan &state) {
  io.field("name", state.name);
  io.field("aliases", state.aliases);
  io.field("role", state.role);
  io.field("dtype", state.dtype);
  io.field("shape", state.shape);
  io.field("logical_shape", state.logicalShape);
  io.field("axes", state.axes);
  io.field("interleaved", state.interleaved);
  io.field("frozen", state.frozen);
  io.field("first", state.first);
  io.field("in_stack", state.inStack);
}
template <class IO> void describe(IO &io, FoldedParameter &folded) {
  io.field("name", folded.name);
  io.field("shape", folded.shape);
}
template <class IO> void describe(IO &io, KernelPlan &kernel) {
  io.field("function", kernel.function);
  io.field("signature", kernel.signature);
}
template <class IO> void describe(IO &io, TensorPlan &tensor) {
  io.field("name", tensor.name);
  io.field("dtype", tensor.dtype);
  io.field("shape", tensor.shape);
  io.field("batch_dim", tensor.batchDim);
}
template <class IO> void describe(IO &io, ReportPlan &report) {
  io.field("name", report.name);
  io.field("dtype", report.dtype);
}
template <class IO> void describe(IO &io, EqualRows &rows) {
  io.field("input", rows.input);
  io.field("dim", rows.dim);
}
template <class IO> void describe(IO &io, LossTerm &term) {
  io.field("numerator", term.numerator);
  io.field("denominator", term.denominator);
  io.field("plus", term.plus);
  io.field("least", term.least);
}
template <class IO> void describe(IO &io, SeparateRows &rows) {
  io.field("inputs", rows.inputs);
  io.field("equal", rows.equal);
  io.field("ignored", rows.ignored);
  io.field("terms", rows.terms);
}
template <class IO> void describe(IO &io, RowMask &mask) {
  io.field("input", mask.input);
  io.field("inputs", mask.rows.inputs);
  io.field("equal", mask.rows.equal);
}
template <class IO> void describe(IO &io, Executable &executable) {
  io.field("target", executable.target);
  io.field("features", executable.features);
  io.field("mesh", executable.mesh);
  io.field("micro_batches", executable.microBatches);
  io.field("seed", executable.seed);
  io.field("inputs", executable.inputs);
  io.field("outputs", executable.outputs);
  io.field("reports", executable.reports);
  io.field("unshifted_labels", executable.unshiftedLabels);
  io.field("separate_rows", executable.separateRows);
  io.field("row_mask", executable.rowMask);
  io.field("states", executable.states);
  io.field("folded", executable.folded);
  io.field("kernels", executable.kernels);
  io.field("programs", executable.programs);
}

template <class... Ts>
constexpr std::array<const char *, sizeof...(Ts)>
kindsOf(const std::variant<Ts...> *) {
  return {Ts::kKind...};
}
/// The dialect's names of the commands, in the order of Command::what.
inline constexpr auto kCommandKinds =
    kindsOf(static_cast<decltype(Command::what) *>(nullptr));

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_DESCRIBE_H
