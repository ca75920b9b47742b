// The traced program as far as an ONNX file still tells it: the calls that its
// nodes came from, the nodes of each call, and what the exporter's optimizer
// says it folded. Only a reading of the file; what is believed of it is decided
// elsewhere (ParametersByCall.cpp, AccountForCalls.cpp). Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_TRACEDPROGRAM_H
#define ACCEL_LIB_ONNX_TRACEDPROGRAM_H

#include "TracedCall.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <deque>

namespace accel::onnxio {

/// A call of the traced program that nodes in the file came from.
struct Call {
  TracedCall text;
  /// In the graph's order, those of subgraphs included.
  std::vector<const onnx::NodeProto *> nodes;
  /// The tensors among its arguments, by name, lists included, each once. Sizes
  /// (`view`'s list, `full`'s) are not among them.
  std::vector<std::string> values;
  /// ONNX values that its nodes read and that none of them makes, each once.
  std::vector<std::string> operands;

  bool takes(llvm::StringRef value) const;
  /// Whether one of its nodes reads the ONNX value.
  bool reads(llvm::StringRef value) const;
};

class TracedProgram {
public:
  explicit TracedProgram(const OnnxFile &file);

  const OnnxFile &file;

  llvm::ArrayRef<SignatureInput> signature() const { return inputs; }
  /// The input of that placeholder (`p_w`), or null.
  const SignatureInput *input(llvm::StringRef placeholder) const;
  /// The parameter or buffer of that name (`model.w`), or null.
  const SignatureInput *target(llvm::StringRef name) const;

  /// The values that are the program's outputs, as the user sees them.
  const std::vector<std::string> &outputs() const { return results; }
  /// What the program changes: buffers, inputs.
  const std::vector<std::string> &mutated() const { return changed; }

  /// In the order in which the nodes name them.
  const std::deque<Call> &calls() const { return list; }
  const Call *callOf(const onnx::NodeProto &node) const;
  const Call *find(llvm::StringRef result) const;
  /// The node of the main graph or a subgraph that makes an ONNX value, or
  /// null.
  const onnx::NodeProto *maker(llvm::StringRef value) const;

  /// The placeholder of an input that the user gives, by its name in the file;
  /// empty for anything else.
  llvm::StringRef placeholder(llvm::StringRef value) const {
    return placeholders.lookup(value);
  }

  /// Whether an ONNX value is known to be of floats.
  bool isFloat(llvm::StringRef value) const { return floats.contains(value); }

  /// Whether a value that a call takes is an input, a call that is still there,
  /// or a value of the graph.
  bool isThere(llvm::StringRef value) const;

  /// The values that the exporter's optimizer computed an initializer from,
  /// transitively (`pkg.onnxscript.optimizer.folded_from`); null where it says
  /// nothing.
  const std::vector<std::string> *foldedFrom(llvm::StringRef tensor) const;
  /// The parameters among them, by name.
  std::vector<std::string> foldedParameters(llvm::StringRef tensor) const;

  /// Whether the exporter's optimizer may have been at work. It lifts every
  /// constant to an initializer, so that a `Constant` node shows that it was
  /// not: then an initializer is what its name says.
  bool isOptimized() const { return optimized; }

private:
  void readNodes(const onnx::GraphProto &graph);
  void collectOperands();

  std::vector<SignatureInput> inputs;
  llvm::StringMap<const SignatureInput *> byPlaceholder, byTarget;
  std::vector<std::string> results, changed;
  std::deque<Call> list;
  llvm::StringMap<Call *> byResult;
  llvm::DenseMap<const onnx::NodeProto *, const Call *> callOfNode;
  llvm::StringMap<const onnx::NodeProto *> makers;
  llvm::StringMap<llvm::StringRef> placeholders;
  llvm::StringSet<> floats;
  llvm::StringMap<std::vector<std::string>> folded;
  bool optimized = true;
};

/// The operator that a traced value's name tells: "pow" of `pow_1`. FX names a
/// value after the function called, and numbers it where the name is taken.
llvm::StringRef operatorOfName(llvm::StringRef value);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_TRACEDPROGRAM_H
