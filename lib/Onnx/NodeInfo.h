// What exporters write about a node beside its operator: the user's module it
// came from, the call in the traced program, the user's own source line.
#ifndef ACCEL_LIB_ONNX_NODEINFO_H
#define ACCEL_LIB_ONNX_NODEINFO_H

#include "onnx-schema/onnx-ml.pb.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::onnxio {

/// The value of the node's metadata property `key`, or empty.
llvm::StringRef nodeProperty(const onnx::NodeProto &node, llvm::StringRef key);

/// The strings of a Python list of strings, `['', 'model', "it's"]`.
std::vector<std::string> parsePythonList(llvm::StringRef text);

/// The name a node goes by in locations and messages (every node of an OnnxFile
/// has one: `MatMul#17` where the exporter wrote none).
llvm::StringRef nodeLocationName(const onnx::NodeProto &node);

/// A registered module that a call was made in.
struct ModuleScope {
  /// "model.transformer.wte"
  std::string path;
  /// "torch.nn.modules.sparse.Embedding"; empty where the file does not say.
  std::string className;
};

/// The modules around the node, outermost first, without the root. Read from
/// `pkg.torch.onnx.name_scopes`, else from `namespace`, which knows their
/// classes; empty where there is neither.
std::vector<ModuleScope> enclosingModules(const onnx::NodeProto &node);

/// Their paths: {"model", "model.transformer", "model.transformer.wte"}.
std::vector<std::string> moduleScopes(const onnx::NodeProto &node);

/// The innermost module ("model.transformer.wte"), or "".
std::string modulePath(const onnx::NodeProto &node);

/// A line of the user's program, or of a library.
struct SourceLine {
  std::string file;
  unsigned line = 0;
  std::string function;
  std::string text;
};

/// The frames of `pkg.torch.onnx.stack_trace`, outermost first.
std::vector<SourceLine> stackFrames(const onnx::NodeProto &node);

/// The user's own line in `pkg.torch.onnx.stack_trace`: the innermost frame
/// outside installed packages and torch; where there is none, the innermost one
/// outside torch, or of all.
std::optional<SourceLine> sourceLine(const onnx::NodeProto &node);

/// The line of a library that the user's own line came to: the innermost frame
/// outside torch (of transformers, say), else of all; none if that is the
/// user's own.
std::optional<SourceLine> libraryLine(const onnx::NodeProto &node);

/// The operator of the traced call that the node came from, with its overload
/// and without its namespace ("clamp.Tensor", "max.dim"; "embedding" of a call
/// of torch.nn.functional), or empty. What an ONNX node stands for in PyTorch
/// decides gradients at points where the function has none.
llvm::StringRef tracedOperator(const onnx::NodeProto &node);

/// The traced call that the node came from, by the value that it is in the
/// traced program and its operator without an overload ("%pow_1 = pow"), or
/// empty. Nodes of one call have one text.
std::string describeCall(const onnx::NodeProto &node);

/// The attribute of that name, or null.
const onnx::AttributeProto *findAttribute(const onnx::NodeProto &node,
                                          llvm::StringRef name);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_NODEINFO_H
