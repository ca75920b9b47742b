// Import of random numbers.
//
// Those that decide what is dropped are stochastic depth (Huang et al., ECCV
// 2016), as floor(p + u), as u < p made a number, or as Bernoulli. Each is 1
// with probability p, and else 0: p times a dropout of ones, which is p where
// nothing is dropped. So what is divided by p in training is left as it is in
// evaluation, as modules do. All others are noise, there as in training.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// Of what is kept where something may be.
static bool isProbability(double p) { return p > 0 && p <= 1; }

/// Floats that are 1 with probability p, and else 0.
static Value dropOnes(Importer &n, ArrayRef<int64_t> shape, Type element,
                      double p) {
  Value ones = n.splat(shape, element, 1);
  if (p == 1)
    return ones;
  Value kept = n.create<nn::DropoutOp>(
      ones, {n.named("ratio", n.graph.builder.getF64FloatAttr(1 - p)),
             n.named("site", n.graph.draws++)});
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

/// Numbers of a distribution, anew in each step.
static Value draw(Importer &n, nn::RngDistribution distribution,
                  ArrayRef<int64_t> shape, Type element) {
  auto type = nn::RngDistributionAttr::get(n.loc.getContext(), distribution);
  return n.create<nn::RngOp>(
      {}, {n.named("distribution", type), n.named("site", n.graph.draws++)},
      RankedTensorType::get(shape, element));
}

/// Of numbers u in [0, 1) that alone decide what is dropped, as floor(p + u) or
/// as u < p made a number, the node that makes the decision one, and p.
static std::optional<std::pair<const onnx::NodeProto *, StringRef>>
findDecision(Importer &n, StringRef drawn) {
  const onnx::NodeProto *used = findReader(n, drawn);
  const onnx::NodeProto *decided =
      used && used->input_size() == 2 && used->output_size() == 1
          ? findReader(n, used->output(0))
          : nullptr;
  if (!decided)
    return std::nullopt;
  StringRef by = used->op_type(), as = decided->op_type();
  bool isFloor = by == "Add" && as == "Floor";
  bool isLess = by == "Less" && StringRef(used->input(0)) == drawn &&
                (as == "Cast" || as == "CastLike") &&
                StringRef(decided->input(0)) == used->output(0);
  if (!isFloor && !isLess)
    return std::nullopt;
  return std::pair(decided,
                   StringRef(used->input(used->input(0) == drawn ? 1 : 0)));
}

static LogicalResult importUniformOf(Importer &n, ArrayRef<int64_t> shape,
                                     Type element) {
  n.ignoreAttr("seed");
  double low = n.floatAttr("low", 0), high = n.floatAttr("high", 1);
  if (n.hasFailed() || failed(checkIsTrained(n)))
    return failure();
  Value drawn = draw(n, nn::RngDistribution::uniform, shape, element);
  if (low != 0 || high != 1)
    return n.finish(n.plus(n.scale(drawn, high - low), low));
  if (n.wantsResult(0))
    if (auto decision = findDecision(n, n.node.output(0)))
      n.graph.decisions[decision->first] = {SmallVector<int64_t>(shape),
                                            element, decision->second.str()};
  return n.finish(drawn);
}

static LogicalResult importNormalOf(Importer &n, ArrayRef<int64_t> shape,
                                    Type element) {
  n.ignoreAttr("seed");
  double mean = n.floatAttr("mean", 0), deviation = n.floatAttr("scale", 1);
  if (n.hasFailed() || failed(checkIsTrained(n)))
    return failure();
  Value drawn = draw(n, nn::RngDistribution::normal, shape, element);
  if (deviation != 1)
    drawn = n.scale(drawn, deviation);
  return n.finish(mean == 0 ? drawn : n.plus(drawn, mean));
}

using ImportOf = LogicalResult(Importer &, ArrayRef<int64_t>, Type);

template <ImportOf import> static LogicalResult importLike(Importer &n) {
  Type element = readTypeLike(n);
  if (!isa_and_nonnull<FloatType>(element))
    return n.hasFailed()
               ? failure()
               : n.error() << "expected a type of floats, found " << element;
  return import(n, Importer::shape(n.operand(0)), element);
}

template <ImportOf import> static LogicalResult importByShape(Importer &n) {
  auto shape = n.intsAttr("shape");
  auto isNegative = [](int64_t size) { return size < 0; };
  if (!shape || llvm::any_of(*shape, isNegative) || !isAddressable(*shape))
    return n.error() << "expected a 'shape' of a tensor whose elements can be "
                        "addressed";
  Type element = readType(n, n.intAttr("dtype", onnx::TensorProto::FLOAT));
  return element ? import(n, *shape, element) : failure();
}

static LogicalResult importBernoulli(Importer &n) {
  n.ignoreAttr("seed");
  Value p = n.operand(0);
  int64_t dtype = n.intAttr("dtype", 0);
  Type element =
      dtype ? elementType(dtype, n.loc.getContext()) : Importer::element(p);
  if (n.hasFailed() || failed(checkIsTrained(n)))
    return failure();
  if (!element || !Importer::isFloat(p))
    return n.error() << "expected probabilities, and a type for what they "
                        "decide, found "
                     << p.getType() << " and element type #" << dtype;
  element = computeType(element, n.graph.options.f64);
  std::optional<double> number = getNumber(p);
  if (number && isProbability(*number) && isa<FloatType>(element))
    return n.finish(dropOnes(n, Importer::shape(p), element, *number));
  Value drawn = draw(n, nn::RngDistribution::uniform, Importer::shape(p),
                     Importer::element(p));
  return n.finish(
      n.cast(n.compare(nn::ComparePredicate::lt, drawn, p), element));
}

/// Classes by the logarithms of what is in proportion to their probabilities,
/// the first plus noise of Gumbel's distribution the greatest (Gumbel, 1954).
static LogicalResult importMultinomial(Importer &n) {
  n.ignoreAttr("seed");
  Value logits = n.operand(0);
  int64_t count = n.intAttr("sample_size", 1);
  Type element = elementType(n.intAttr("dtype", onnx::TensorProto::INT32),
                             n.loc.getContext());
  if (n.hasFailed() || failed(checkIsTrained(n)))
    return failure();
  if (!Importer::isFloat(logits) || Importer::rank(logits) != 2 || count != 1)
    return n.error() << "expected one class of each row of a matrix of floats, "
                        "found "
                     << count << " of " << logits.getType();
  if (!element || !element.isInteger())
    return n.error() << "expected a type of integers";
  ArrayRef<int64_t> shape = Importer::shape(logits);
  Value u =
      draw(n, nn::RngDistribution::uniform, shape, Importer::element(logits));
  Value noise = n.unary<nn::NegOp>(
      n.unary<nn::LogOp>(n.unary<nn::NegOp>(n.unary<nn::LogOp>(u))));
  Value place = n.create<nn::TopKOp>(n.binary<nn::AddOp>(logits, noise),
                                     n.named("k", int64_t(1)));
  return n.finish(n.cast(place, element));
}

/// The type of what a node that makes a decision a number makes of it.
static Type readDecided(Importer &n, const Decision &decision) {
  StringRef op = n.node.op_type();
  if (op == "Cast")
    return elementType(n.intAttr("to", 0), n.loc.getContext());
  if (op != "CastLike")
    return decision.element;
  const ImportedValue *like = n.node.input_size() == 2
                                  ? n.graph.lookup(n.node.input(1), n.loc)
                                  : nullptr;
  return like && like->tensor ? Importer::element(like->tensor) : Type();
}

std::optional<LogicalResult> import::importDecision(Importer &n,
                                                    const Decision &decision) {
  const ImportedValue *p = n.graph.lookup(decision.probability, n.loc);
  if (!p)
    return failure();
  std::optional<double> number =
      p->tensor ? getNumber(p->tensor) : std::nullopt;
  Type element = readDecided(n, decision);
  if (!number || !isProbability(*number) ||
      !isa_and_nonnull<FloatType>(element))
    return std::nullopt;
  n.ignoreAttr("saturate");
  n.ignoreAttr("round_mode");
  return n.finish(dropOnes(n, decision.shape,
                           computeType(element, n.graph.options.f64), *number));
}

ArrayRef<OpRow> accel::import::randomOps() {
  static const OpRow rows[] = {
      {"", "Bernoulli", 15, 1, 1, importBernoulli},
      {"", "Multinomial", 7, 1, 1, importMultinomial},
      {"", "RandomNormal", 1, 0, 0, importByShape<importNormalOf>},
      {"", "RandomNormalLike", 1, 1, 1, importLike<importNormalOf>},
      {"", "RandomUniform", 1, 0, 0, importByShape<importUniformOf>},
      {"", "RandomUniformLike", 1, 1, 1, importLike<importUniformOf>},
  };
  return rows;
}
