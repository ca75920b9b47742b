// Import of random numbers that decide what is dropped: stochastic depth (Huang
// et al., ECCV 2016), as floor(p + u), as u < p made a number, or as Bernoulli.
//
// Each is 1 with probability p, and else 0: p times a dropout of ones, which is
// p where nothing is dropped. So what is divided by p in training is left as it
// is in evaluation, as modules do.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// 1 with probability p, and else 0.
static Value dropOnes(Importer &n, ArrayRef<int64_t> shape, Type element,
                      double p) {
  if (!isa<FloatType>(element) || !(p > 0 && p <= 1)) {
    n.error() << "expected floats that are 1 with a probability in (0, 1], "
                 "found "
              << element << " and " << p;
    return nullptr;
  }
  Value ones = n.splat(shape, element, 1);
  if (p == 1)
    return ones;
  Value kept = n.create<nn::DropoutOp>(
      ones, {n.named("ratio", n.graph.builder.getF64FloatAttr(1 - p)),
             n.named("site", n.graph.dropouts++)});
  return n.scale(kept, p);
}

/// The one number that a constant is everywhere.
static std::optional<double> getNumber(Value value) {
  DenseElementsAttr known = Importer::constantOf(value);
  if (!known || !known.isSplat() || !isa<FloatType>(known.getElementType()))
    return std::nullopt;
  return known.getSplatValue<APFloat>().convertToDouble();
}

/// How a value is read.
struct Reads {
  const onnx::NodeProto *only = nullptr; ///< of its readers, if it is one
  int64_t count = 0;                     ///< by operators, or as an output
};

/// Of a graph and what is in it. What a number is cast like reads its type.
static void countReads(const onnx::GraphProto &graph, StringRef value,
                       Reads &reads) {
  for (const onnx::ValueInfoProto &output : graph.output())
    reads.count += output.name() == value;
  for (const onnx::NodeProto &node : graph.node()) {
    for (auto [operand, input] : llvm::enumerate(node.input()))
      if (input == value && !(operand == 1 && node.op_type() == "CastLike")) {
        reads.only = &node;
        ++reads.count;
      }
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      countReads(attribute.g(), value, reads);
      for (const onnx::GraphProto &inner : attribute.graphs())
        countReads(inner, value, reads);
    }
  }
}

/// The only operator that reads a value; null if there are others.
static const onnx::NodeProto *findReader(Importer &n, StringRef value) {
  Reads reads;
  countReads(n.graph.file.graph(), value, reads);
  return reads.count == 1 ? reads.only : nullptr;
}

/// The type of floats that a number of ONNX's means; an error for any other.
static Type readType(Importer &n, int64_t dataType) {
  Type element = elementType(dataType, n.graph.builder.getContext());
  if (isa_and_nonnull<FloatType>(element))
    return computeType(element, n.graph.options.f64);
  n.error() << "expected a type of floats, found element type #" << dataType;
  return nullptr;
}

/// The type that `dtype` says, or that of the operand.
static Type readTypeLike(Importer &n) {
  int64_t type = n.intAttr("dtype", 0);
  return type ? readType(n, type) : Importer::element(n.operand(0));
}

static LogicalResult checkIsTrained(Importer &n) {
  if (n.graph.options.forTraining)
    return success();
  return n.error() << "draws anew in every step of training, expected --train "
                      "or a model exported for inference";
}

/// Numbers in [0, 1) that nobody sees: what they decide is made where it is a
/// number (importDecision).
static LogicalResult importDraw(Importer &n, ArrayRef<int64_t> shape,
                                Type element) {
  n.ignoreAttr("seed");
  if (n.floatAttr("low", 0) != 0 || n.floatAttr("high", 1) != 1)
    return n.error() << "expected random numbers in [0, 1)";
  if (n.hasFailed() || failed(checkIsTrained(n)))
    return failure();
  if (!n.wantsResult(0))
    return n.error() << "expected a result";
  StringRef drawn = n.node.output(0);
  const onnx::NodeProto *used = findReader(n, drawn);
  const onnx::NodeProto *decided =
      used && used->input_size() == 2 && used->output_size() == 1
          ? findReader(n, used->output(0))
          : nullptr;
  StringRef by = used ? StringRef(used->op_type()) : StringRef(),
            as = decided ? StringRef(decided->op_type()) : StringRef();
  bool isFloor = by == "Add" && as == "Floor";
  bool isLess = by == "Less" && StringRef(used->input(0)) == drawn &&
                (as == "Cast" || as == "CastLike") &&
                StringRef(decided->input(0)) == used->output(0);
  if (!isFloor && !isLess)
    return n.error()
           << "expected random numbers u that decide what is dropped, as "
              "floor(p + u) or as u < p made a number, found a use by "
           << (used ? "operator '" + by.str() + "'" : "several, or by none")
           << "; dropout and stochastic depth are trained, other noise is not "
              "supported yet";
  StringRef p = used->input(used->input(0) == drawn ? 1 : 0);
  n.graph.decisions[used] = {};
  n.setResult(0, n.splat(shape, element, 0)); // of which the type is read
  n.graph.decisions[decided] = {SmallVector<int64_t>(shape), element, p.str()};
  return n.finish();
}

static LogicalResult importUniformLike(Importer &n) {
  return importDraw(n, Importer::shape(n.operand(0)), readTypeLike(n));
}

static LogicalResult importUniform(Importer &n) {
  auto shape = n.intsAttr("shape");
  auto isNegative = [](int64_t size) { return size < 0; };
  if (!shape || llvm::any_of(*shape, isNegative) || !isAddressable(*shape))
    return n.error() << "expected a 'shape' of a tensor whose elements can be "
                        "addressed";
  return importDraw(n, *shape,
                    readType(n, n.intAttr("dtype", onnx::TensorProto::FLOAT)));
}

static LogicalResult importBernoulli(Importer &n) {
  n.ignoreAttr("seed");
  Type element = readTypeLike(n);
  if (n.hasFailed() || failed(checkIsTrained(n)))
    return failure();
  std::optional<double> p = getNumber(n.operand(0));
  if (!p)
    return n.error() << "expected one probability, known at compile time, "
                        "found "
                     << n.operand(0).getType();
  return n.finish(dropOnes(n, Importer::shape(n.operand(0)), element, *p));
}

LogicalResult import::importDecision(Importer &n, const Decision &decision) {
  if (decision.probability.empty())
    return success();
  const ImportedValue *p = n.graph.lookup(decision.probability, n.loc);
  std::optional<double> number =
      p && p->tensor ? getNumber(p->tensor) : std::nullopt;
  if (!number)
    return n.error() << "expected one probability, known at compile time, "
                        "found '"
                     << decision.probability << "'";
  Type element = decision.element;
  StringRef op = n.node.op_type();
  if (op == "Cast")
    element = readType(n, n.intAttr("to", 0));
  if (op == "CastLike") {
    if (n.node.input_size() != 2)
      return n.error() << "expected 2 operands, found " << n.node.input_size();
    const ImportedValue *like = n.graph.lookup(n.node.input(1), n.loc);
    if (!like || !like->tensor)
      return failure();
    element = Importer::element(like->tensor);
  }
  n.ignoreAttr("saturate");
  n.ignoreAttr("round_mode");
  if (n.hasFailed())
    return failure();
  return n.finish(dropOnes(n, decision.shape, element, *number));
}

ArrayRef<OpRow> accel::import::randomOps() {
  static const OpRow rows[] = {
      {"", "Bernoulli", 15, 1, 1, importBernoulli},
      {"", "RandomUniform", 1, 0, 0, importUniform},
      {"", "RandomUniformLike", 1, 1, 1, importUniformLike},
  };
  return rows;
}
