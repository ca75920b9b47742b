// The state of one import: which ONNX value is which nn value, and where ops
// are put. Private to the library.
#ifndef ACCEL_LIB_IMPORT_GRAPHIMPORTER_H
#define ACCEL_LIB_IMPORT_GRAPHIMPORTER_H

#include "Choices.h"
#include "Import.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace accel::import {

/// What an ONNX value is during import: a tensor, or a sequence of tensors
/// (which exists at compile time only).
struct ImportedValue {
  mlir::Value tensor;
  bool isSequence = false;
  llvm::SmallVector<mlir::Value> sequence;

  static ImportedValue of(mlir::Value tensor) { return {tensor, false, {}}; }
};

/// What a node makes of random numbers: 1 with a probability, and else 0.
struct Decision {
  llvm::SmallVector<int64_t> shape;
  mlir::Type element;
  std::string probability; ///< The value of that name.
};

/// Imports nodes in order into a block. Subgraphs are imported in place by a
/// call of importNodes, their values being as visible as the outer ones: ONNX
/// forbids a subgraph to define a name anew.
class GraphImporter {
public:
  GraphImporter(const onnxio::OnnxFile &file,
                const onnxio::ParameterTable &table,
                const ImportOptions &options, mlir::OpBuilder &builder)
      : file(file), table(table), options(options), builder(builder) {}

  const onnxio::OnnxFile &file;
  const onnxio::ParameterTable &table;
  const ImportOptions &options;
  mlir::OpBuilder &builder;

  /// The argument that stands for each state, by its number in the table.
  llvm::DenseMap<unsigned, mlir::Value> states;
  /// Biases to put back, by the node that lacks them.
  llvm::DenseMap<const onnx::NodeProto *,
                 llvm::SmallVector<const onnxio::RestoredOperand *, 1>>
      restored;
  /// What NonZero chooses at run time.
  Choices choices;
  /// By the node that makes one a number (Ops/Random.cpp).
  llvm::DenseMap<const onnx::NodeProto *, Decision> decisions;
  /// The states that operands 3 and 4 of batch norms that are trained are.
  llvm::DenseMap<std::pair<const onnx::NodeProto *, unsigned>, mlir::Value>
      runningStatistics;
  /// Operations on constants that one model may take, some ten seconds of them,
  /// and how many are left.
  static constexpr int64_t kMostOperations = int64_t(1) << 28;
  int64_t room = kMostOperations;
  /// Nodes in all iterations of loops so far.
  int64_t iterated = 0;
  /// Dropouts in training mode and other random numbers so far.
  int64_t draws = 0;
  /// The traced calls of nodes, by the names that locations have; kept where
  /// they are asked for.
  llvm::StringMap<std::string> calls;
  /// Whether a gradient would have to stop that nothing stops, since the module
  /// is not for training.
  bool stopsGradients = false;

  void define(llvm::StringRef name, ImportedValue value) {
    values[name] = std::move(value);
  }

  /// The value called `name`: defined before, or an initializer (made an
  /// nn.constant at its first use). Null, after an error at `loc`, if there is
  /// none or its type is not supported.
  const ImportedValue *lookup(llvm::StringRef name, mlir::Location loc);

  /// Whether parts of the model are stored in, or given as, floats of less than
  /// 32 bits.
  bool isNarrow();

  /// Imports all nodes of a graph; its inputs must have been defined.
  mlir::LogicalResult importNodes(const onnx::GraphProto &graph);

private:
  mlir::LogicalResult importNode(const onnx::NodeProto &node);

  llvm::StringMap<ImportedValue> values;
  std::optional<bool> narrow;
};

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_GRAPHIMPORTER_H
