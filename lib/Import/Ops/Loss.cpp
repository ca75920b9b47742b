// Import of losses: what is classified, one loss a label, how they are reduced.

#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// What both losses are of: scores [N, C, d…], labels [N, d…], weights [C].
struct Classification {
  Value scores; ///< [N, d…, C]
  Value labels;
  Value weights; ///< null: all 1
  Value counts;  ///< [N, d…] of i1: the label is not ignored; null: all are
  int64_t ignored;
  std::string reduction;
};
} // namespace

static std::optional<Classification> readClassification(Importer &n) {
  Classification c;
  c.reduction = n.stringAttr("reduction", "mean");
  c.ignored = n.intAttr("ignore_index", -100);
  c.scores = n.operand(0);
  c.labels = n.operand(1);
  c.weights = n.operand(2);
  if (c.reduction != "mean" && c.reduction != "sum" && c.reduction != "none") {
    n.error() << "expected 'reduction' to be 'none', 'sum' or 'mean', found '"
              << c.reduction << "'";
    return std::nullopt;
  }
  int64_t rank = Importer::rank(c.scores);
  if (rank < 2) {
    n.error() << "expected scores of rank 2 or more, found "
              << c.scores.getType() << ": " << onnxio::kAccExportRemedy.str()
              << ", or put a dimension of samples before the classes";
    return std::nullopt;
  }
  if (Importer::isFloat(c.labels)) {
    n.error() << "expected labels that are numbers of classes, found "
              << c.labels.getType() << ": ONNX has no loss of probabilities, "
              << onnxio::kAccExportRemedy.str();
    return std::nullopt;
  }
  // Of chosen samples the labels may come one by one, and the other way round.
  Choices &choices = n.graph.choices;
  if (auto chosen = choices.find(c.scores); chosen && chosen->dim != 1)
    c.labels = choices.meet(n, c.labels, std::max<int64_t>(0, chosen->dim - 1),
                            chosen->number);
  else if (auto chosen = choices.find(c.labels); chosen && !chosen->dim)
    c.scores = choices.meet(n, c.scores, 0, chosen->number);
  if (n.hasFailed())
    return std::nullopt;
  if (rank > 2) {
    SmallVector<int64_t> permutation{0};
    llvm::append_range(permutation, llvm::seq<int64_t>(2, rank));
    permutation.push_back(1);
    c.scores = n.transpose(c.scores, permutation);
  }
  if (n.hasAttribute("ignore_index"))
    c.counts = n.compare(nn::ComparePredicate::ne, c.labels,
                         n.splatLike(c.labels, c.ignored));
  return c;
}

/// `values` where the label counts, else 0.
static Value keepCounted(Importer &n, const Classification &c, Value values) {
  return c.counts ? n.select(c.counts, values, n.splatLike(values, 0)) : values;
}

/// The labels, 0 where they are ignored: they pick something then, too.
static Value safeLabels(Importer &n, const Classification &c) {
  return keepCounted(n, c, c.labels);
}

/// The weight of each label; null where all are 1.
static Value labelWeights(Importer &n, const Classification &c) {
  if (!c.weights)
    return nullptr;
  Value picked = n.create<nn::GatherOp>({c.weights, safeLabels(n, c)},
                                        n.named("dim", int64_t(0)));
  return keepCounted(n, c, picked);
}

/// The mean is over the labels that count, by their weights.
static LogicalResult reduceLosses(Importer &n, const Classification &c,
                                  Value losses, Value weights) {
  if (!losses || c.reduction == "none")
    return n.finish(losses);
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(Importer::rank(losses)));
  if (c.reduction == "mean" && !c.counts && !weights)
    return n.finish(n.mean(losses, dims, /*keepDims=*/false));
  Value sum = n.reduce(nn::ReductionKind::sum, losses, dims, false);
  if (c.reduction == "sum")
    return n.finish(sum);
  Value each = weights ? weights : n.cast(c.counts, Importer::element(losses));
  Value count = n.reduce(nn::ReductionKind::sum, each, dims, false);
  return n.finish(n.binary<nn::DivOp>(sum, count));
}

/// The loss against classes that are all alike, summed over them (Szegedy et
/// al., 2016, section 7): -sum_c weight_c log softmax(scores)_c.
static Value uniformLoss(Importer &n, const Classification &c) {
  int64_t last = Importer::rank(c.scores) - 1;
  auto sum = [&](Value value, bool keep) {
    return n.reduce(nn::ReductionKind::sum, value, last, keep);
  };
  Value largest = n.stopGradient(
      n.reduce(nn::ReductionKind::max, c.scores, last, /*keepDims=*/true));
  Value shifted = n.binary<nn::SubOp>(c.scores, largest);
  Value logSum = n.unary<nn::LogOp>(sum(n.unary<nn::ExpOp>(shifted), true));
  Value losses = n.binary<nn::SubOp>(logSum, shifted);
  if (c.weights)
    losses = n.binary<nn::MulOp>(losses, c.weights);
  return keepCounted(n, c, sum(losses, false));
}

/// One loss a label. Label smoothing, which ONNX has no word for, is taken from
/// the traced call.
static LogicalResult importCrossEntropy(Importer &n) {
  std::optional<Classification> c = readClassification(n);
  if (!c)
    return failure();
  if (n.wantsResult(1)) // the logarithms of all probabilities
    n.setResult(1,
                n.create<nn::SoftmaxOp>(
                    n.operand(0), {n.named("dim", int64_t(1)), n.unit("log")}));
  Value losses = n.create<nn::CrossEntropyOp>(
      {c->scores, c->labels}, n.named("ignore_index", c->ignored));
  Value weights = labelWeights(n, *c);
  if (weights)
    losses = n.binary<nn::MulOp>(losses, weights);
  double smoothing = onnxio::getLabelSmoothing(n.node);
  if (smoothing != 0) {
    Value uniform = uniformLoss(n, *c);
    double share = uniform ? smoothing / Importer::shape(c->scores).back() : 0;
    losses = n.binary<nn::AddOp>(
        n.binary<nn::MulOp>(losses, n.splatLike(losses, 1 - smoothing)),
        n.binary<nn::MulOp>(uniform, n.splatLike(uniform, share)));
  }
  return reduceLosses(n, *c, losses, weights);
}

/// The scores are logarithms of probabilities already.
static LogicalResult importNegativeLogLikelihood(Importer &n) {
  std::optional<Classification> c = readClassification(n);
  if (!c)
    return failure();
  Value labels = safeLabels(n, *c);
  SmallVector<int64_t> tuples(Importer::shape(labels));
  int64_t rows = tuples.size();
  tuples.push_back(1);
  Value picked = n.create<nn::GatherNdOp>(
      {c->scores, n.reshape(labels, tuples)}, n.named("batch_dims", rows));
  Value losses = keepCounted(n, *c, n.create<nn::NegOp>(picked));
  Value weights = labelWeights(n, *c);
  if (weights)
    losses = n.binary<nn::MulOp>(losses, weights);
  return reduceLosses(n, *c, losses, weights);
}

ArrayRef<OpRow> accel::import::lossOps() {
  static const OpRow rows[] = {
      {"", "NegativeLogLikelihoodLoss", 12, 2, 3, importNegativeLogLikelihood},
      {"", "SoftmaxCrossEntropyLoss", 12, 2, 3, importCrossEntropy},
  };
  return rows;
}
