// The commands of a plan, each described once: a struct, and below it what its
// fields are called and which bytes it touches. The reader and the writer of
// files, the emitter (which finds the fields by these names among an op's
// attributes), checks, the executor and reports all walk these descriptions.
//
// `describe(io, command)` calls
//
//   io.field(name, value)             for what is no view
//   io.view(name, views, access)      for a view, an optional or a list of them
//   io.code(name, symbol)             for the name of what the target compiled
//   io.origins(name, inputs, views)   for the program's inputs that the views
//                                     of that name lie in
//
// What a task gets addresses of are the views, in the order of these calls.

#ifndef ACCEL_RT_COMMANDFORMAT_H
#define ACCEL_RT_COMMANDFORMAT_H

#include "accel-rt/TensorFormat.h"

namespace accel::rt {

/// What a command does with the bytes of a view. None: it names them only.
enum class Access { None, Read, Write, Both };

struct GemmCommand {
  static constexpr const char *kKind = "gemm";
  View a, b, c;
  std::optional<View> bias, packed, scratch;
  bool accumulate = false;
  Form form;
};
template <class IO> void describe(IO &io, GemmCommand &gemm) {
  io.view("a", gemm.a, Access::Read);
  io.view("b", gemm.b, gemm.packed ? Access::None : Access::Read);
  io.view("c", gemm.c, gemm.accumulate ? Access::Both : Access::Write);
  io.view("bias", gemm.bias, Access::Read);
  io.view("packed", gemm.packed, Access::Read);
  io.view("scratch", gemm.scratch, Access::Both);
  io.field("accumulate", gemm.accumulate);
  io.field("form", gemm.form);
}

/// `order` holds which rows are in which group, while it runs.
struct GroupedGemmCommand {
  static constexpr const char *kKind = "grouped_gemm";
  View a, b, groups, c;
  std::optional<View> order, scratch;
  Form form;
};
template <class IO> void describe(IO &io, GroupedGemmCommand &gemm) {
  io.view("a", gemm.a, Access::Read);
  io.view("b", gemm.b, Access::Read);
  io.view("groups", gemm.groups, Access::Read);
  io.view("c", gemm.c, Access::Write);
  io.view("order", gemm.order, Access::Both);
  io.view("scratch", gemm.scratch, Access::Both);
  io.field("form", gemm.form);
}

struct GroupedGemmGradCommand {
  static constexpr const char *kKind = "grouped_gemm_grad";
  View a, b, groups, c;
  std::optional<View> order, scratch;
  bool accumulate = false;
  Form form;
};
template <class IO> void describe(IO &io, GroupedGemmGradCommand &grad) {
  io.view("a", grad.a, Access::Read);
  io.view("b", grad.b, Access::Read);
  io.view("groups", grad.groups, Access::Read);
  io.view("c", grad.c, grad.accumulate ? Access::Both : Access::Write);
  io.view("order", grad.order, Access::Both);
  io.view("scratch", grad.scratch, Access::Both);
  io.field("accumulate", grad.accumulate);
  io.field("form", grad.form);
}

/// The input [N, G, C, S…], the weight [G, O, C, K…] and the output [N, G, O,
/// P…] of a convolution: c is computed from the two others. At position p and
/// place k stands the input's p · strides + k · dilations - low, or a zero.
struct ConvCommand {
  static constexpr const char *kKind = "conv";
  std::string convolution; ///< "forward", "input_grad" or "weight_grad".
  View a, b, c;
  std::vector<int64_t> strides, dilations, low;
  std::optional<View> scratch;
  Form form;
};
template <class IO> void describe(IO &io, ConvCommand &conv) {
  io.field("convolution", conv.convolution);
  io.view("a", conv.a, Access::Read);
  io.view("b", conv.b, Access::Read);
  io.view("c", conv.c, Access::Write);
  io.field("strides", conv.strides);
  io.field("dilations", conv.dilations);
  io.field("low", conv.low);
  io.view("scratch", conv.scratch, Access::Both);
  io.field("form", conv.form);
}

struct DealRowsCommand {
  static constexpr const char *kKind = "deal_rows";
  View groups, rank, rows, own, places;
  int64_t numGroups = 1, ranks = 1;
};
template <class IO> void describe(IO &io, DealRowsCommand &deal) {
  io.view("groups", deal.groups, Access::Read);
  io.view("rank", deal.rank, Access::Read);
  io.view("rows", deal.rows, Access::Write);
  io.view("own", deal.own, Access::Write);
  io.view("places", deal.places, Access::Write);
  io.field("num_groups", deal.numGroups);
  io.field("ranks", deal.ranks);
}

struct AttentionCommand {
  static constexpr const char *kKind = "attention";
  View query, key, value;
  std::optional<View> mask;
  View output;
  std::optional<View> logSumExp, scratch; ///< the former of f32, or f64
  double scale = 1;
  bool causal = false, zeroMaskedRows = false;
  /// If `causal`, row s sees key t where t · stride + columnOffset <=
  /// s · stride + rowOffset.
  int64_t rowOffset = 0, columnOffset = 0;
  /// What the coordinate along each of these axes adds to `rowOffset`, times
  /// it; and to `columnOffset` that of the rank `turn` places before,
  /// cyclically.
  Form rowSteps, columnSteps;
  int64_t turn = 0, stride = 1;
  /// Symbol of the softmax kernel; empty if the form needs none.
  std::string kernel;
  Form form;
};
template <class IO> void describe(IO &io, AttentionCommand &attention) {
  io.view("query", attention.query, Access::Read);
  io.view("key", attention.key, Access::Read);
  io.view("value", attention.value, Access::Read);
  io.view("output", attention.output, Access::Write);
  io.view("mask", attention.mask, Access::Read);
  io.view("log_sum_exp", attention.logSumExp, Access::Write);
  io.view("scratch", attention.scratch, Access::Both);
  io.field("scale", attention.scale);
  io.field("causal", attention.causal);
  io.field("zero_masked_rows", attention.zeroMaskedRows);
  io.field("row_offset", attention.rowOffset);
  io.field("column_offset", attention.columnOffset);
  io.field("row_steps", attention.rowSteps);
  io.field("column_steps", attention.columnSteps);
  io.field("turn", attention.turn);
  io.field("stride", attention.stride);
  io.code("kernel", attention.kernel);
  io.field("form", attention.form);
}

struct AttentionGradCommand {
  static constexpr const char *kKind = "attention_grad";
  View query, key, value, output, logSumExp, gradient;
  std::optional<View> logSumExpGradient, mask;
  View queryGradient, keyGradient, valueGradient;
  std::optional<View> scratch;
  double scale = 1;
  bool causal = false, zeroMaskedRows = false;
  int64_t rowOffset = 0, columnOffset = 0;
  Form rowSteps, columnSteps; ///< as those of AttentionCommand
  int64_t turn = 0, stride = 1;
  /// Symbol of the kernel of the rows; empty if the form needs none.
  std::string kernel;
  Form form;
};
template <class IO> void describe(IO &io, AttentionGradCommand &grad) {
  io.view("query", grad.query, Access::Read);
  io.view("key", grad.key, Access::Read);
  io.view("value", grad.value, Access::Read);
  io.view("output", grad.output, Access::Read);
  io.view("log_sum_exp", grad.logSumExp, Access::Read);
  io.view("gradient", grad.gradient, Access::Read);
  io.view("query_gradient", grad.queryGradient, Access::Write);
  io.view("key_gradient", grad.keyGradient, Access::Write);
  io.view("value_gradient", grad.valueGradient, Access::Write);
  io.view("log_sum_exp_gradient", grad.logSumExpGradient, Access::Read);
  io.view("mask", grad.mask, Access::Read);
  io.view("scratch", grad.scratch, Access::Both);
  io.field("scale", grad.scale);
  io.field("causal", grad.causal);
  io.field("zero_masked_rows", grad.zeroMaskedRows);
  io.field("row_offset", grad.rowOffset);
  io.field("column_offset", grad.columnOffset);
  io.field("row_steps", grad.rowSteps);
  io.field("column_steps", grad.columnSteps);
  io.field("turn", grad.turn);
  io.field("stride", grad.stride);
  io.code("kernel", grad.kernel);
  io.field("form", grad.form);
}

/// `function` is the name that the target's code has it by; its arguments are
/// inputs, then outputs. `grid` rows are handed out at once. The target alone
/// knows what the form says, and how much scratch that takes.
struct KernelCommand {
  static constexpr const char *kKind = "kernel";
  std::string function;
  std::vector<View> inputs, outputs;
  int64_t rows = 0, grid = 1;
  /// Of each input the program's input that it is read from, or empty: for
  /// messages about what is in it. Absent where no input is one of integers.
  std::vector<std::string> inputNames = {};
  std::optional<View> scratch = std::nullopt;
  Form form = {};
};
template <class IO> void describe(IO &io, KernelCommand &kernel) {
  io.code("function", kernel.function);
  io.view("inputs", kernel.inputs, Access::Read);
  io.view("outputs", kernel.outputs, Access::Write);
  io.view("scratch", kernel.scratch, Access::Both);
  io.field("rows", kernel.rows);
  io.field("grid", kernel.grid);
  io.field("form", kernel.form);
  io.origins("input_names", kernel.inputNames, kernel.inputs);
}

struct CollectiveCommand {
  static constexpr const char *kKind = "collective";
  std::string kind; ///< all_reduce, reduce_scatter, … as in the dialect.
  std::vector<std::string> axes;
  std::vector<View> inputs, outputs;
  std::optional<View> index; ///< Of fetch_rows.
  std::string combine; ///< sum, max, min; empty if the kind does not reduce.
  int64_t dim = 0, splitDim = 0;
  std::vector<int64_t> permutation;
  std::optional<DType> wire;
};
template <class IO> void describe(IO &io, CollectiveCommand &collective) {
  io.field("collective", collective.kind);
  io.field("axes", collective.axes);
  io.view("inputs", collective.inputs, Access::Read);
  io.view("outputs", collective.outputs, Access::Write);
  io.view("index", collective.index, Access::Read);
  io.field("combine", collective.combine);
  io.field("dim", collective.dim);
  io.field("split_dim", collective.splitDim);
  io.field("permutation", collective.permutation);
  io.field("wire", collective.wire);
}

struct SendCommand {
  static constexpr const char *kKind = "send";
  View view;
  std::string axis;
  int64_t delta = 0, tag = 0;
};
template <class IO> void describe(IO &io, SendCommand &send) {
  io.view("view", send.view, Access::Read);
  io.field("axis", send.axis);
  io.field("delta", send.delta);
  io.field("tag", send.tag);
}

struct RecvCommand {
  static constexpr const char *kKind = "recv";
  View view;
  std::string axis;
  int64_t delta = 0, tag = 0;
};
template <class IO> void describe(IO &io, RecvCommand &recv) {
  io.view("view", recv.view, Access::Write);
  io.field("axis", recv.axis);
  io.field("delta", recv.delta);
  io.field("tag", recv.tag);
}

/// Commands within it touch what they say themselves.
struct GroupCommand {
  static constexpr const char *kKind = "group";
  std::vector<SendCommand> sends;
  std::vector<RecvCommand> recvs;
};
template <class IO> void describe(IO &io, GroupCommand &group) {
  io.field("sends", group.sends);
  io.field("recvs", group.recvs);
}

struct CopyCommand {
  static constexpr const char *kKind = "copy";
  View source, target;
};
template <class IO> void describe(IO &io, CopyCommand &copy) {
  io.view("source", copy.source, Access::Read);
  io.view("target", copy.target, Access::Write);
}

/// `value` is the bytes of one element, in memory order.
struct FillCommand {
  static constexpr const char *kKind = "fill";
  std::vector<int64_t> value;
  View target;
};
template <class IO> void describe(IO &io, FillCommand &fill) {
  io.field("value", fill.value);
  io.view("target", fill.target, Access::Write);
}

struct PackCommand {
  static constexpr const char *kKind = "pack";
  View source, target;
  Form form;
};
template <class IO> void describe(IO &io, PackCommand &pack) {
  io.view("source", pack.source, Access::Read);
  io.view("target", pack.target, Access::Write);
  io.field("form", pack.form);
}

struct CoordinateCommand {
  static constexpr const char *kKind = "coordinate";
  std::vector<std::string> axes;
  View target;
};
template <class IO> void describe(IO &io, CoordinateCommand &coordinate) {
  io.field("axes", coordinate.axes);
  io.view("target", coordinate.target, Access::Write);
}

struct ReadCommand {
  static constexpr const char *kKind = "read";
  std::string source; ///< "input" or "state".
  std::string name;
  Part part;
  View target;
  /// Of the parts of all micro-batches, which the view's first dimension
  /// counts; else of that of the run's.
  bool eachMicroBatch = false;
};
template <class IO> void describe(IO &io, ReadCommand &read) {
  io.field("source", read.source);
  io.field("name", read.name);
  io.field("part", read.part);
  io.view("target", read.target, Access::Write);
  io.field("each_micro_batch", read.eachMicroBatch);
}

struct WriteCommand {
  static constexpr const char *kKind = "write";
  std::string target; ///< "output" or "state".
  std::string name;
  Part part;
  View view;
  bool eachMicroBatch = false; ///< As in ReadCommand.
};
template <class IO> void describe(IO &io, WriteCommand &write) {
  io.field("destination", write.target);
  io.field("name", write.name);
  io.field("part", write.part);
  io.view("view", write.view, Access::Read);
  io.field("each_micro_batch", write.eachMicroBatch);
}

struct RecordCommand {
  static constexpr const char *kKind = "record";
  std::string event;
};
template <class IO> void describe(IO &io, RecordCommand &record) {
  io.field("event", record.event);
}

/// For an event of this run; or, with `body` (an index into Program::bodies),
/// of that body's run on the same micro-batch, or its only one, earlier in the
/// entry.
struct WaitCommand {
  static constexpr const char *kKind = "wait";
  std::string event;
  int64_t body = -1;
};
template <class IO> void describe(IO &io, WaitCommand &wait) {
  io.field("event", wait.event);
  io.field("body", wait.body);
}

struct Command {
  std::variant<GemmCommand, AttentionCommand, KernelCommand, CollectiveCommand,
               SendCommand, RecvCommand, GroupCommand, CopyCommand, FillCommand,
               PackCommand, CoordinateCommand, ReadCommand, WriteCommand,
               RecordCommand, WaitCommand, AttentionGradCommand,
               GroupedGemmCommand, GroupedGemmGradCommand, DealRowsCommand,
               ConvCommand>
      what;
  std::string stream = "compute";
  /// The ONNX node that it stands for; every error of the command names it.
  std::string node;
  /// Views whose bytes nobody reads after this command: poison mode overwrites
  /// them (attribute `plan.releases`).
  std::vector<View> releases;
  /// Floating-point operations of one execution, as the compiler counts them:
  /// what a kernel computes nobody else knows. Absent: none.
  std::optional<uint64_t> flops = std::nullopt;
  /// The pass that put it there, where it is not in the model; for traces.
  std::optional<std::string> insertedBy = std::nullopt;
};

/// The dialect's name of the command: "gemm", "kernel", …
const char *commandKind(const Command &command);

} // namespace accel::rt

#endif // ACCEL_RT_COMMANDFORMAT_H
