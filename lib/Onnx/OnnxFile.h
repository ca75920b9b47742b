// A loaded ONNX model: parsed, checked, functions inlined, nodes in an order in
// which every value is defined before its use. Whoever holds an OnnxFile need
// not check any of that again. Parameter identity (Parameters.h) is read from
// it before anything is rewritten.
#ifndef ACCEL_LIB_ONNX_ONNXFILE_H
#define ACCEL_LIB_ONNX_ONNXFILE_H

#include "Payload.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "onnx-schema/onnx-ml.pb.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace accel::onnxio {

/// What every OnnxFile promises:
/// - no field that the schema does not know is in the file, at any depth;
/// - the IR version is one we read, and every domain used is imported;
/// - no value is defined twice, every operand is defined before its use or is
///   the name of a graph input, an initializer, or (in a subgraph) an outer
///   value; an empty name is an operand left out;
/// - no node calls a local function: calls are replaced by the function's body,
///   inner values called `<call>/<value>`, attributes substituted, defaults
///   filled in; a body's node that has no metadata of its own takes the call's;
/// - every node has a name: `MatMul#17` is invented from operator and place in
///   the file where the exporter wrote none;
/// - every tensor (initializers, tensors in attributes, at any depth) has a
///   payload of exactly the size its shape and type ask for.
class OnnxFile {
public:
  /// Reads the model at `path` and checks it. Emits one error, located in the
  /// file or at the node, and fails where it is malformed; never crashes.
  static mlir::FailureOr<std::unique_ptr<OnnxFile>>
  load(llvm::StringRef path, mlir::MLIRContext *context);

  /// The same of a model that is in memory: `path` is what errors name, and
  /// beside it external data are looked for.
  static mlir::FailureOr<std::unique_ptr<OnnxFile>>
  load(std::unique_ptr<llvm::MemoryBuffer> model, llvm::StringRef path,
       mlir::MLIRContext *context);

  /// Reads, of the safetensors file at `path`, the parameters of the graph
  /// signature that the model does not hold under their names: then they are
  /// initializers that no node uses. Emits an error and fails where the file is
  /// malformed, holds none of them, or others than the model.
  mlir::LogicalResult readOriginals(llvm::StringRef path);

  /// Whether the initializer is one of those.
  bool isOriginal(const onnx::TensorProto &tensor) const;

  ~OnnxFile();
  OnnxFile(const OnnxFile &) = delete;
  OnnxFile &operator=(const OnnxFile &) = delete;

  llvm::StringRef path() const { return filePath; }
  mlir::MLIRContext *context() const { return ctx; }
  const onnx::ModelProto &model() const { return proto; }

  /// The main graph, inlined and sorted. Do not read the data fields of tensors
  /// in it (they are released): ask payload().
  const onnx::GraphProto &graph() const { return proto.graph(); }

  /// The opset version of `domain` ("" and "ai.onnx" are one) that the model
  /// imports; 0 where it does not import it.
  int64_t opsetVersion(llvm::StringRef domain = "") const;

  /// The opset version that `node` was written for: the model's, or that of the
  /// function it was inlined from.
  int64_t opsetVersion(const onnx::NodeProto &node) const;

  /// The initializer of the main graph called `name`, or null.
  const onnx::TensorProto *findInitializer(llvm::StringRef name) const;

  /// The inputs of the main graph that are not initializers as well, in order.
  llvm::ArrayRef<const onnx::ValueInfoProto *> inputs() const {
    return realInputs;
  }

  /// The bytes of a tensor that is part of this model.
  const Payload &payload(const onnx::TensorProto &tensor) const;

  /// The tensor's values, for whoever decides by them. Where their file is
  /// absent there are none, and checkValuesRead fails.
  llvm::ArrayRef<char> values(const onnx::TensorProto &tensor) const;

  /// Fails, with an error for the first of them, if values were asked for that
  /// are absent: what was decided without them may be wrong.
  mlir::LogicalResult checkValuesRead() const;

  /// Location of the file as a whole.
  mlir::Location location() const;

  /// Location of a node: NameLoc of its name around, where the exporter wrote
  /// them, the user's own source line, and as what that calls the library's
  /// line that it came to; else around the model file. The module path, where
  /// known, is fused in as metadata (a StringAttr), and so is checkpoint#N for
  /// what the user's N-th call of torch.utils.checkpoint ran.
  mlir::Location location(const onnx::NodeProto &node) const;

private:
  OnnxFile(llvm::StringRef path, mlir::MLIRContext *context);
  friend class Loader;

  std::string filePath;
  mlir::MLIRContext *ctx;
  onnx::ModelProto proto;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> externalFiles;
  std::vector<std::unique_ptr<std::vector<char>>> decoded;
  std::vector<std::unique_ptr<onnx::TensorProto>> originals;
  llvm::DenseMap<const onnx::TensorProto *, Payload> payloads;
  llvm::StringMap<const onnx::TensorProto *> initializersByName;
  std::vector<const onnx::ValueInfoProto *> realInputs;
  /// The first tensor whose absent values were asked for.
  mutable const onnx::TensorProto *missing = nullptr;
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_ONNXFILE_H
