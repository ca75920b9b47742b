// The steps of OnnxFile::load, each a pass over the protobuf. Private to
// lib/Onnx.
#ifndef ACCEL_LIB_ONNX_INTERNAL_H
#define ACCEL_LIB_ONNX_INTERNAL_H

#include "OnnxFile.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace accel::onnxio {

/// Where errors of one file are located.
struct Source {
  mlir::MLIRContext *context;
  std::string path;

  mlir::Location file() const;
  mlir::Location node(const onnx::NodeProto &node) const;
  /// An error about the file as a whole.
  mlir::InFlightDiagnostic error() const;
  /// An error that begins with `node 'name' (Op): `.
  mlir::InFlightDiagnostic error(const onnx::NodeProto &node) const;
};

/// Metadata property that an inlined node carries where its function imports
/// another opset version than the model does.
inline constexpr llvm::StringLiteral opsetProperty = "accel.opset";

/// "" for "ai.onnx", the same domain by its other name.
llvm::StringRef canonicalDomain(llvm::StringRef domain);

/// Calls `visit` for `graph` and every graph in attributes of its nodes, outer
/// graphs first.
void forEachGraph(const onnx::GraphProto &graph,
                  llvm::function_ref<void(const onnx::GraphProto &)> visit);

/// Refuses fields the schema does not know and strings that are not UTF-8, at
/// any depth, naming the message by its path (`graph.node[3].attribute[0]`).
mlir::LogicalResult checkFields(const onnx::ModelProto &model,
                                const Source &source);

/// Refuses what the model as a whole must not have or lack: version, graph,
/// imports, training info, device configurations.
mlir::LogicalResult checkModel(const onnx::ModelProto &model,
                               const Source &source);

/// Refuses values defined twice, operands and outputs that nothing defines,
/// domains that nothing imports, sparse initializers. Requires the graph
/// inlined and sorted.
mlir::LogicalResult checkValues(const onnx::GraphProto &graph,
                                const OnnxFile &file, const Source &source);

/// Gives every node without a name one: operator and place, `MatMul#17`.
void inventNodeNames(onnx::GraphProto &graph);

/// Replaces calls of the model's functions by their bodies, at any depth, and
/// removes the functions.
mlir::LogicalResult inlineFunctions(onnx::ModelProto &model,
                                    const Source &source);

/// Brings nodes into an order in which values are defined before their use,
/// the file's own as far as possible, in the graph and its subgraphs.
mlir::LogicalResult sortNodes(onnx::GraphProto &graph, const Source &source);

/// For each initializer of the main graph, in order, the offset of its raw_data
/// in the serialised model; -1 for those that have none.
std::vector<int64_t> rawDataOffsets(llvm::ArrayRef<char> model);

/// Finds the payload of tensors, opening files of external data as needed.
class PayloadReader {
public:
  using Files = llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>>;
  using Decoded = std::vector<std::unique_ptr<std::vector<char>>>;
  PayloadReader(const Source &source, Files &files, Decoded &decoded)
      : source(source), files(files), decoded(decoded) {}

  /// The payload of `tensor`. `error` starts an error message about it.
  mlir::FailureOr<Payload>
  read(const onnx::TensorProto &tensor,
       llvm::function_ref<mlir::InFlightDiagnostic()> error);

private:
  mlir::FailureOr<Payload>
  readExternal(const onnx::TensorProto &tensor, uint64_t bytes,
               llvm::function_ref<mlir::InFlightDiagnostic()> error);
  /// The file of external data, null where there is none at all.
  mlir::FailureOr<const llvm::MemoryBuffer *>
  open(llvm::StringRef location, std::string &path,
       llvm::function_ref<mlir::InFlightDiagnostic()> error);

  const Source &source;
  Files &files;
  Decoded &decoded;
  llvm::StringMap<std::string> checksums;
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_INTERNAL_H
