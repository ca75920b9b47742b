// What the exporters' metadata says, as data: the graph signature and the
// traced call (`pkg.torch.onnx.fx_node`) that a node came from. Private to
// lib/Onnx.
#ifndef ACCEL_LIB_ONNX_TRACEDCALL_H
#define ACCEL_LIB_ONNX_TRACEDCALL_H

#include "OnnxFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::onnxio {

/// One input of the traced program.
struct SignatureInput {
  enum Kind { Parameter, Buffer, Constant, User } kind;
  /// As calls name it: `p_model_lm_head_weight`.
  std::string placeholder;
  /// As the user names it: `model.lm_head.weight`.
  std::string target;
};

/// The inputs in `pkg.torch.export.ExportedProgram.graph_signature`, in order;
/// empty where there is none. Reads both forms, torch 2.6's repr and the list
/// of later versions.
std::vector<SignatureInput> readSignature(const onnx::GraphProto &graph);

/// One output of the traced program.
struct SignatureOutput {
  /// The value that it is.
  std::string value;
  /// The buffer, parameter or input that the program changes by it; empty for
  /// an output that the user sees.
  std::string mutated;
};

/// The outputs in the signature, in order; empty where there is none, and in
/// torch 2.6's form.
std::vector<SignatureOutput>
readSignatureOutputs(const onnx::GraphProto &graph);

/// One argument of a traced call.
struct TracedArgument {
  /// Empty for positional arguments.
  std::string keyword;
  /// Python text; a value of the traced program begins with `%`.
  std::string text;

  /// The value's name without `%`, or empty.
  llvm::StringRef value() const;
};

/// `%linear : [num_users=1] =
/// call_function[target=torch.ops.aten.linear.default](args = (%a, %p_w),
/// kwargs = {})`
struct TracedCall {
  /// "linear": one per call in the program.
  std::string result;
  /// "linear": the operator without namespace and overload.
  std::string op;
  std::vector<TracedArgument> arguments;
  /// How many calls (and outputs) of the program take the result; nothing where
  /// the text does not say.
  std::optional<unsigned> users;

  /// Argument number `position`, or the one passed as `keyword`; null if
  /// absent.
  const TracedArgument *argument(unsigned position,
                                 llvm::StringRef keyword) const;
};

/// Calls `visit` with the place of each character of Python text that is
/// outside strings, until it returns false; the place where it did, or the
/// text's size.
size_t forEachUnquoted(llvm::StringRef text,
                       llvm::function_ref<bool(size_t)> visit);

/// The call that `node` came from; empty where the exporter wrote none.
std::optional<TracedCall> tracedCall(const onnx::NodeProto &node);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_TRACEDCALL_H
