// Import of what exists at compile time only: sequences, branches on known
// conditions, dropout that drops nothing.

#include "lib/Import/OpTable.h"
#include "lib/Import/Subgraphs.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// A copy, but where the user detached a value (`aten.detach`, or what
/// acc-export marks): then no gradient passes.
static LogicalResult importIdentity(Importer &n) {
  if (n.imported(0).isSequence)
    n.setResult(0, n.imported(0));
  else if (onnxio::stopsGradient(n.node) && Importer::isFloat(n.operand(0)))
    n.setResult(0, n.stopGradient(n.operand(0)));
  else
    n.setResult(0, n.operand(0));
  return n.finish();
}

/// The mask (result 1) is nobody's but the dropout's own.
static LogicalResult importTrainingDropout(Importer &n, Value x, double ratio) {
  if (!n.graph.options.forTraining)
    return n.error() << "dropout in training mode draws anew in every step of "
                        "training, expected --train or a model exported for "
                        "inference, found ratio "
                     << ratio;
  if (!(ratio >= 0 && ratio < 1))
    return n.error() << "expected a ratio in [0, 1), found " << ratio;
  OpBuilder &builder = n.graph.builder;
  return n.finish(n.create<nn::DropoutOp>(
      x, {n.named("ratio", builder.getF64FloatAttr(ratio)),
          n.named("site", n.graph.draws++)}));
}

static LogicalResult importDropout(Importer &n) {
  n.ignoreAttr("seed");
  bool training = n.operand(2) && n.constantInt(2) != 0;
  double ratio = 0.5;
  if (n.operand(1)) {
    DenseElementsAttr known = Importer::constantOf(n.operand(1));
    if (!known || n.graph.choices.isSize(n.operand(1))) {
      n.refuseComputed(1);
      return failure();
    }
    if (known.getNumElements() != 1 || !isa<FloatType>(known.getElementType()))
      return n.error() << "expected the ratio to be one float, found "
                       << n.operand(1).getType();
    ratio = (*known.getValues<FloatAttr>().begin()).getValueAsDouble();
  }
  if (n.hasFailed())
    return failure();
  Value x = n.operand(0);
  if (training && ratio != 0)
    return importTrainingDropout(n, x, ratio);
  if (n.wantsResult(1))
    n.setResult(1, n.splat(Importer::shape(x), n.graph.builder.getI1Type(), 1));
  return n.finish(x);
}

/// Before opset 12 nothing tells whether the model is being trained.
static LogicalResult importUntoldDropout(Importer &n) {
  if (n.graph.options.forTraining)
    return n.error() << "expected a dropout that says whether it drops in "
                        "training: export to opset 12 or later";
  n.ignoreAttr("ratio");
  Value x = n.operand(0);
  if (n.wantsResult(1))
    n.setResult(1, n.splat(Importer::shape(x), n.graph.builder.getI1Type(), 1));
  return n.finish(x);
}

static LogicalResult importIf(Importer &n) {
  using Attribute = onnx::AttributeProto;
  const auto *thenBranch = n.attribute("then_branch", Attribute::GRAPH);
  const auto *elseBranch = n.attribute("else_branch", Attribute::GRAPH);
  if (!thenBranch || !elseBranch)
    return n.error() << "expected 'then_branch' and 'else_branch'";
  bool condition = n.constantInt(0) != 0;
  if (n.hasFailed())
    return failure();
  const onnx::GraphProto &branch =
      condition ? thenBranch->g() : elseBranch->g();
  if (branch.output_size() != n.node.output_size())
    return n.error() << "expected " << n.node.output_size()
                     << " results of the branch, found "
                     << branch.output_size();
  SmallVector<ImportedValue> results = importSubgraph(n, branch);
  for (auto [index, value] : llvm::enumerate(results))
    n.setResult(index, value);
  return n.finish();
}

static LogicalResult importSequenceConstruct(Importer &n) {
  ImportedValue result;
  result.isSequence = true;
  for (unsigned index = 0; index < n.operandCount(); ++index)
    result.sequence.push_back(n.operand(index));
  n.setResult(0, std::move(result));
  return n.finish();
}

/// Operand 0's tensors; an error if it is none.
static ArrayRef<Value> sequence(Importer &n) {
  if (n.imported(0).isSequence)
    return n.imported(0).sequence;
  n.error() << "expected a sequence as operand #0, found "
            << n.operand(0).getType();
  return {};
}

static LogicalResult importSequenceEmpty(Importer &n) {
  n.ignoreAttr("dtype");
  ImportedValue result;
  result.isSequence = true;
  n.setResult(0, std::move(result));
  return n.finish();
}

/// A position of operand `index`, or `fallback` where it is left out, in
/// [0, count).
static int64_t readPosition(Importer &n, unsigned index, int64_t fallback,
                            int64_t count) {
  int64_t position = n.operand(index) ? n.constantInt(index) : fallback;
  if (!n.hasFailed() && (position < -count || position >= count))
    n.error() << "expected a position in [" << -count << ", " << count
              << "), found " << position;
  return position < 0 ? position + count : position;
}

static LogicalResult importSequenceInsert(Importer &n) {
  ImportedValue result = n.imported(0);
  int64_t size = sequence(n).size();
  if (n.hasFailed())
    return failure();
  int64_t position = readPosition(n, 2, size, size + 1);
  if (n.hasFailed())
    return failure();
  result.sequence.insert(result.sequence.begin() + position, n.operand(1));
  n.setResult(0, std::move(result));
  return n.finish();
}

static LogicalResult importSequenceErase(Importer &n) {
  ImportedValue result = n.imported(0);
  int64_t size = sequence(n).size();
  if (n.hasFailed())
    return failure();
  int64_t position = readPosition(n, 1, size - 1, size);
  if (n.hasFailed())
    return failure();
  result.sequence.erase(result.sequence.begin() + position);
  n.setResult(0, std::move(result));
  return n.finish();
}

static LogicalResult importSequenceAt(Importer &n) {
  ArrayRef<Value> values = sequence(n);
  if (n.hasFailed())
    return failure();
  int64_t position = readPosition(n, 1, 0, values.size());
  return n.hasFailed() ? failure() : n.finish(values[position]);
}

static LogicalResult importSequenceLength(Importer &n) {
  int64_t size = sequence(n).size();
  return n.hasFailed() ? failure() : n.finish(n.ints(size, {}));
}

static LogicalResult importConcatFromSequence(Importer &n) {
  SmallVector<Value> values(sequence(n));
  if (n.hasFailed())
    return failure();
  if (values.empty())
    return n.error() << "expected a sequence of one tensor or more, found none";
  bool newAxis = n.intAttr("new_axis", 0);
  int64_t rank = Importer::rank(values[0]) + newAxis;
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), rank);
  if (n.hasFailed())
    return failure();
  if (newAxis)
    for (Value &value : values) {
      SmallVector<int64_t> shape(Importer::shape(value));
      shape.insert(shape.begin() + std::min<int64_t>(axis, shape.size()), 1);
      value = n.reshape(value, shape);
    }
  return n.finish(n.concat(values, axis));
}

ArrayRef<OpRow> accel::import::controlOps() {
  static const OpRow rows[] = {
      {"", "ConcatFromSequence", 11, 1, 1, importConcatFromSequence, true},
      {"", "Dropout", 7, 1, 1, importUntoldDropout},
      {"", "Dropout", 12, 1, 3, importDropout},
      {"", "Identity", 1, 1, 1, importIdentity, true},
      {"", "If", 1, 1, 1, importIf},
      {"", "SequenceAt", 11, 2, 2, importSequenceAt, true},
      {"", "SequenceConstruct", 11, 1, -1, importSequenceConstruct},
      {"", "SequenceEmpty", 11, 0, 0, importSequenceEmpty},
      {"", "SequenceErase", 11, 1, 2, importSequenceErase, true},
      {"", "SequenceInsert", 11, 2, 3, importSequenceInsert, true},
      {"", "SequenceLength", 11, 1, 1, importSequenceLength, true},
  };
  return rows;
}
