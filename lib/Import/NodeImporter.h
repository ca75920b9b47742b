// What the function that imports one operator works with: the node's operands
// and attributes, and builders of nn ops that fold as they go. Private to the
// library; lib/Import/Ops/*.cpp are its users.
#ifndef ACCEL_LIB_IMPORT_NODEIMPORTER_H
#define ACCEL_LIB_IMPORT_NODEIMPORTER_H

#include "GraphImporter.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace accel::import {

/// One node being imported. Errors are sticky: what fails emits one error at
/// the node and returns a null value or a default; everything takes null values
/// and hands them on; `finish` then fails.
class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, const onnx::NodeProto &node,
               int64_t version)
      : graph(graph), node(node), version(version),
        loc(graph.file.location(node)) {}

  GraphImporter &graph;
  const onnx::NodeProto &node;
  /// The opset version of the node's domain.
  const int64_t version;
  const mlir::Location loc;

  /// Emits `operator 'X' (node 'n', domain 'd', opset v): ` and what follows;
  /// the import fails.
  mlir::InFlightDiagnostic error();
  bool hasFailed() const { return failed; }
  /// Behind an error that something else emitted.
  void fail() { failed = true; }

  /// Looks the operands up. Sequences are an error unless `takesSequences`.
  mlir::LogicalResult resolveOperands(bool takesSequences);
  /// Adds the biases that the exporter removed behind the node.
  mlir::LogicalResult restoreAdditions();

  // Operands. One left out ("" or past the end) is null.
  unsigned operandCount() const { return operands.size(); }
  mlir::Value operand(unsigned index) const {
    return index < operands.size() ? operands[index].tensor : mlir::Value();
  }
  const ImportedValue &imported(unsigned index) const {
    return operands[index];
  }
  /// The error that an operand must be known now and is computed by the run;
  /// names the input of the model that it comes from, and how to bind it.
  void refuseComputed(unsigned index);
  /// The operand's integers, which must be known now: shapes, axes, indices.
  llvm::SmallVector<int64_t> constantInts(unsigned index);
  /// The same of sizes, of which one may be the number of places of a choice.
  struct Sizes {
    llvm::SmallVector<int64_t> values;
    std::optional<Choices::Chosen> chosen;
  };
  Sizes constantSizes(unsigned index);
  /// The same of an operand with exactly one element.
  int64_t constantInt(unsigned index);

  /// The node of the main graph that makes a value of that name, or null.
  const onnx::NodeProto *findProducer(llvm::StringRef name) const;

  // Attributes; `finish` reports those that nobody asked for.
  const onnx::AttributeProto *attribute(llvm::StringRef name,
                                        onnx::AttributeProto::AttributeType);
  bool hasAttribute(llvm::StringRef name) const;
  int64_t intAttr(llvm::StringRef name, int64_t fallback);
  double floatAttr(llvm::StringRef name, double fallback);
  std::string stringAttr(llvm::StringRef name, llvm::StringRef fallback);
  std::optional<llvm::SmallVector<int64_t>> intsAttr(llvm::StringRef name);
  /// Says that an attribute means nothing for the result.
  void ignoreAttr(llvm::StringRef name) { asked.insert(name); }

  // Results.
  /// Whether result `index` is used by anyone.
  bool wantsResult(unsigned index) const;
  void setResult(unsigned index, mlir::Value value);
  void setResult(unsigned index, ImportedValue value);
  /// Sets result 0 and ends: fails after an error, or if an attribute was not
  /// understood.
  mlir::LogicalResult finish(mlir::Value result);
  mlir::LogicalResult finish();

  // Builders.
  /// The shape; empty for null.
  static llvm::ArrayRef<int64_t> shape(mlir::Value value);
  static int64_t rank(mlir::Value value) { return shape(value).size(); }
  static mlir::Type element(mlir::Value value);
  static bool isFloat(mlir::Value value);
  /// The constant's value, or null if the value is computed.
  static mlir::DenseElementsAttr constantOf(mlir::Value value);

  /// Builds `Op` with properties taken from `attributes` and the result type
  /// `type` (inferred if null), verifies it, and folds it.
  template <typename Op>
  mlir::Value create(mlir::ValueRange values,
                     llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                     mlir::Type type = nullptr);
  mlir::NamedAttribute named(llvm::StringRef name, mlir::Attribute value) {
    return graph.builder.getNamedAttr(name, value);
  }
  mlir::NamedAttribute named(llvm::StringRef name, int64_t value) {
    return named(name, graph.builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute named(llvm::StringRef name,
                             llvm::ArrayRef<int64_t> value) {
    return named(name, graph.builder.getDenseI64ArrayAttr(value));
  }
  mlir::NamedAttribute unit(llvm::StringRef name) {
    return named(name, graph.builder.getUnitAttr());
  }

  mlir::Value constant(mlir::ElementsAttr value);
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                    double value);
  /// A constant of the shape and element type of `like`.
  mlir::Value splatLike(mlir::Value like, double value);
  mlir::Value ints(llvm::ArrayRef<int64_t> values,
                   llvm::ArrayRef<int64_t> shape);
  /// 0, 1, … as i64 [count].
  mlir::Value iota(int64_t count);
  /// Another value that is the same, of which something else may be known.
  mlir::Value copy(mlir::Value value);
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  mlir::Value swapLastTwo(mlir::Value value);
  mlir::Value cast(mlir::Value value, mlir::Type element);
  mlir::Value slice(mlir::Value value, int64_t dim, int64_t start,
                    int64_t size);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> values, int64_t dim);
  mlir::Value compare(nn::ComparePredicate predicate, mlir::Value lhs,
                      mlir::Value rhs);
  mlir::Value select(mlir::Value condition, mlir::Value onTrue,
                     mlir::Value onFalse);
  /// With `first` the gradient of an extreme is its first element's.
  mlir::Value reduce(nn::ReductionKind kind, mlir::Value value,
                     llvm::ArrayRef<int64_t> dims, bool keepDims,
                     bool first = false);
  /// The sum over `dims` times one over their size; where only the run knows
  /// how many elements are chosen, by their number.
  mlir::Value mean(mlir::Value value, llvm::ArrayRef<int64_t> dims,
                   bool keepDims);
  /// A scalar that leaves any element that it is combined with as it is.
  mlir::Value getNeutral(nn::ReductionKind kind, mlir::Type element);
  /// The value without its gradient; the value alone where nothing is trained.
  mlir::Value stopGradient(mlir::Value value);
  /// Matrix product with NumPy's rules for ranks and batch dimensions.
  mlir::Value matmul(mlir::Value lhs, mlir::Value rhs,
                     bool transposeLhs = false, bool transposeRhs = false);
  /// `Op` on operands broadcast to one shape, as NumPy does.
  template <typename Op> mlir::Value binary(mlir::Value lhs, mlir::Value rhs) {
    llvm::SmallVector<mlir::Value> both{lhs, rhs};
    return broadcastTogether(both) ? create<Op>(both) : mlir::Value();
  }
  template <typename Op> mlir::Value unary(mlir::Value value) {
    return create<Op>(value);
  }
  mlir::Value scale(mlir::Value value, double factor) {
    return binary<nn::MulOp>(value, splatLike(value, factor));
  }
  mlir::Value plus(mlir::Value value, double number) {
    return binary<nn::AddOp>(value, splatLike(value, number));
  }
  /// Broadcasts all to one shape in place; false after an error.
  bool broadcastTogether(llvm::MutableArrayRef<mlir::Value> values);

  /// `axis` in [0, rank); an error otherwise. Negative ones count from the end.
  int64_t normalizeAxis(int64_t axis, int64_t rank);
  /// The same for a list, which comes out ascending; duplicates are an error.
  llvm::SmallVector<int64_t> normalizeAxes(llvm::ArrayRef<int64_t> axes,
                                           int64_t rank);

private:
  /// Does again what the exporter did to a parameter.
  mlir::Value repeat(const onnxio::ParameterStep &step, mlir::Value value);
  mlir::Value finishSize(mlir::Operation *op);
  /// The parts of what an op makes of sizes (Choices.h); no parts of what comes
  /// out alike whatever they are; null if it is neither.
  std::optional<llvm::SmallVector<mlir::Value>> splitSize(mlir::Operation *op);
  /// A size as a scalar that the run computes.
  mlir::Value countSize(const Choices::SizeForm &form, mlir::Type type);
  /// A size whose arithmetic has begun with a sum over a mask, before anybody
  /// asked for a size; null: it is none. `depth`: of what asks for it.
  mlir::Value resolveSize(mlir::Value value, int depth = 0);
  mlir::Value finishCreate(mlir::OperationState &state, mlir::Type type);

  bool failed = false;
  llvm::SmallVector<ImportedValue> operands;
  llvm::StringSet<> asked;
};

template <typename Op>
mlir::Value
NodeImporter::create(mlir::ValueRange values,
                     llvm::ArrayRef<mlir::NamedAttribute> attributes,
                     mlir::Type type) {
  if (failed || llvm::is_contained(values, mlir::Value())) {
    failed = true;
    return nullptr;
  }
  mlir::OperationState state(loc, Op::getOperationName());
  state.addOperands(values);
  state.addAttributes(attributes);
  return finishCreate(state, type);
}

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_NODEIMPORTER_H
