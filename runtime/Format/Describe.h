// One description of every struct of PlanFormat.h, which the writer and the
// reader both walk: `describe(io, value)` names each field once, so that the
// two sides cannot disagree.

#ifndef ACCEL_RUNTIME_FORMAT_DESCRIBE_H
#define ACCEL_RUNTIME_FORMAT_DESCRIBE_H

#include "accel-rt/PlanFormat.h"

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
template <class IO> void describe(IO &io, Part &part) {
  io.field("shape", part.shape);
  io.field("axes", part.axes);
}
template <class IO> void describe(IO &io, GemmCommand &gemm) {
  io.field("a", gemm.a);
  io.field("b", gemm.b);
  io.field("c", gemm.c);
  io.field("bias", gemm.bias);
  io.field("packed", gemm.packed);
  io.field("scratch", gemm.scratch);
  io.field("accumulate", gemm.accumulate);
  io.field("form", gemm.form);
}
template <class IO> void describe(IO &io, AttentionCommand &attention) {
  io.field("query", attention.query);
  io.field("key", attention.key);
  io.field("value", attention.value);
  io.field("mask", attention.mask);
  io.field("output", attention.output);
  io.field("log_sum_exp", attention.logSumExp);
  io.field("scratch", attention.scratch);
  io.field("scale", attention.scale);
  io.field("causal", attention.causal);
  io.field("zero_masked_rows", attention.zeroMaskedRows);
  io.field("row_offset", attention.rowOffset);
  io.field("column_offset", attention.columnOffset);
  io.field("kernel", attention.kernel);
  io.field("form", attention.form);
}
template <class IO> void describe(IO &io, AttentionGradCommand &grad) {
  io.field("query", grad.query);
  io.field("key", grad.key);
  io.field("value", grad.value);
  io.field("output", grad.output);
  io.field("log_sum_exp", grad.logSumExp);
  io.field("gradient", grad.gradient);
  io.field("log_sum_exp_gradient", grad.logSumExpGradient);
  io.field("mask", grad.mask);
  io.field("query_gradient", grad.queryGradient);
  io.field("key_gradient", grad.keyGradient);
  io.field("value_gradient", grad.valueGradient);
  io.field("scratch", grad.scratch);
  io.field("scale", grad.scale);
  io.field("causal", grad.causal);
  io.field("zero_masked_rows", grad.zeroMaskedRows);
  io.field("row_offset", grad.rowOffset);
  io.field("column_offset", grad.columnOffset);
  io.field("kernel", grad.kernel);
  io.field("form", grad.form);
}
template <class IO> void describe(IO &io, KernelCommand &kernel) {
  io.field("function", kernel.function);
  io.field("inputs", kernel.inputs);
  io.field("outputs", kernel.outputs);
  io.field("rows", kernel.rows);
  io.field("grid", kernel.grid);
  io.field("input_names", kernel.inputNames);
}
template <class IO> void describe(IO &io, CollectiveCommand &collective) {
  io.field("collective", collective.kind);
  io.field("axes", collective.axes);
  io.field("inputs", collective.inputs);
  io.field("outputs", collective.outputs);
  io.field("combine", collective.combine);
  io.field("dim", collective.dim);
  io.field("split_dim", collective.splitDim);
  io.field("permutation", collective.permutation);
  io.field("wire", collective.wire);
}
template <class IO> void describe(IO &io, SendCommand &send) {
  io.field("view", send.view);
  io.field("axis", send.axis);
  io.field("delta", send.delta);
  io.field("tag", send.tag);
}
template <class IO> void describe(IO &io, RecvCommand &recv) {
  io.field("view", recv.view);
  io.field("axis", recv.axis);
  io.field("delta", recv.delta);
  io.field("tag", recv.tag);
}
template <class IO> void describe(IO &io, GroupCommand &group) {
  io.field("sends", group.sends);
  io.field("recvs", group.recvs);
}
template <class IO> void describe(IO &io, CopyCommand &copy) {
  io.field("source", copy.source);
  io.field("target", copy.target);
}
template <class IO> void describe(IO &io, FillCommand &fill) {
  io.field("value", fill.value);
  io.field("target", fill.target);
}
template <class IO> void describe(IO &io, PackCommand &pack) {
  io.field("source", pack.source);
  io.field("target", pack.target);
  io.field("form", pack.form);
}
template <class IO> void describe(IO &io, CoordinateCommand &coordinate) {
  io.field("axes", coordinate.axes);
  io.field("target", coordinate.target);
}
template <class IO> void describe(IO &io, ReadCommand &read) {
  io.field("source", read.source);
  io.field("name", read.name);
  io.field("part", read.part);
  io.field("target", read.target);
}
template <class IO> void describe(IO &io, WriteCommand &write) {
  io.field("destination", write.target);
  io.field("name", write.name);
  io.field("part", write.part);
  io.field("view", write.view);
}
template <class IO> void describe(IO &io, RecordCommand &record) {
  io.field("event", record.event);
}
template <class IO> void describe(IO &io, WaitCommand &wait) {
  io.field("event", wait.event);
  io.field("body", wait.body);
}
template <class IO> void describe(IO &io, Command &command) {
  io.alternative("kind", command.what); // its fields stand beside `kind`
  io.field("stream", command.stream);
  io.field("node", command.node);
  io.field("releases", command.releases);
  io.field("flops", command.flops);
}
template <class IO> void describe(IO &io, ArenaPlan &arena) {
  io.field("space", arena.space);
  io.field("bytes", arena.bytes);
  io.field("alignment", arena.alignment);
  io.field("reserve", arena.reserve);
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
template <class IO> void describe(IO &io, StatePlan &state) {
  io.field("name", state.name);
  io.field("aliases", state.aliases);
  io.field("role", state.role);
  io.field("dtype", state.dtype);
  io.field("shape", state.shape);
  io.field("logical_shape", state.logicalShape);
  io.field("axes", state.axes);
  io.field("frozen", state.frozen);
  io.field("first", state.first);
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
  io.field("part", tensor.part);
}
template <class IO> void describe(IO &io, Executable &executable) {
  io.field("target", executable.target);
  io.field("features", executable.features);
  io.field("mesh", executable.mesh);
  io.field("micro_batches", executable.microBatches);
  io.field("seed", executable.seed);
  io.field("inputs", executable.inputs);
  io.field("outputs", executable.outputs);
  io.field("unshifted_labels", executable.unshiftedLabels);
  io.field("states", executable.states);
  io.field("folded", executable.folded);
  io.field("kernels", executable.kernels);
  io.field("programs", executable.programs);
}

/// The dialect's names of the commands, in the order of Command::what.
inline constexpr const char *kCommandKinds[] = {
    "gemm",  "attention", "kernel", "collective",    "send",       "recv",
    "group", "copy",      "fill",   "pack",          "coordinate", "read",
    "write", "record",    "wait",   "attention_grad"};

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_DESCRIBE_H
