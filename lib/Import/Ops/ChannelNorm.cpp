// Import of the normalisations that scale each channel, dimension 1: over the
// batch, over each channel of a sample, and over groups of channels.

#include "lib/Import/OpTable.h"
#include "lib/Onnx/BatchNorms.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// One number for each channel as [C, 1…], which broadcasts to `x`; an error if
/// there are not as many.
static Value alongChannels(Importer &n, Value numbers, Value x) {
  if (n.hasFailed())
    return nullptr;
  SmallVector<int64_t> shape(Importer::rank(x) - 1, 1);
  shape[0] = Importer::shape(x)[1];
  if (Importer::shape(numbers) == ArrayRef<int64_t>(shape[0]))
    return n.reshape(numbers, shape);
  n.error() << "expected numbers of " << shape[0] << " channels, found "
            << numbers.getType();
  return nullptr;
}

static Value scaleChannels(Importer &n, Value x, Value scale, Value bias) {
  return n.binary<nn::AddOp>(n.binary<nn::MulOp>(x, alongChannels(n, scale, x)),
                             alongChannels(n, bias, x));
}

static bool hasChannels(Importer &n, Value x) {
  if (Importer::rank(x) >= 2)
    return true;
  n.error() << "expected an operand [N, C, S…], found " << x.getType();
  return false;
}

/// By statistics that a step takes of the batch: momentum is the share of the
/// old ones in ONNX, of the new ones in `nn`. Results other than y are not
/// there.
static LogicalResult trainBatchNorm(Importer &n, Value mean, Value variance,
                                    double epsilon, double momentum) {
  Builder &builder = n.graph.builder;
  SmallVector<NamedAttribute> attributes{
      n.named("dim", builder.getI64IntegerAttr(1)),
      n.named("momentum", builder.getF64FloatAttr(1 - momentum)),
      n.named("epsilon", builder.getF64FloatAttr(epsilon))};
  if (onnxio::BatchNorms::areUnbiased(n.graph.file))
    attributes.push_back(n.unit("unbiased"));
  return n.finish(scaleChannels(
      n, n.create<nn::BatchNormOp>({n.operand(0), mean, variance}, attributes),
      n.operand(1), n.operand(2)));
}

/// By the batch's own statistics: y, and the running ones updated by them.
static LogicalResult normalizeBatch(Importer &n, double epsilon,
                                    double momentum) {
  Value x = n.operand(0);
  SmallVector<int64_t> dims{0};
  for (int64_t dim = 2; dim < Importer::rank(x); ++dim)
    dims.push_back(dim);
  Value mean = n.mean(x, dims, /*keepDims=*/true);
  Value centred = n.binary<nn::SubOp>(x, mean);
  Value variance =
      n.mean(n.binary<nn::MulOp>(centred, centred), dims, /*keepDims=*/true);
  if (n.hasFailed())
    return failure();
  Value factor = n.unary<nn::RsqrtOp>(
      n.binary<nn::AddOp>(variance, n.splatLike(variance, epsilon)));
  for (auto [index, own] : {std::pair(1u, mean), std::pair(2u, variance)}) {
    Value running = n.operand(index + 2);
    Value flat = n.reshape(own, Importer::shape(running));
    n.setResult(
        index,
        n.binary<nn::AddOp>(
            n.binary<nn::MulOp>(running, n.splatLike(running, momentum)),
            n.binary<nn::MulOp>(flat, n.splatLike(running, 1 - momentum))));
  }
  return n.finish(scaleChannels(n, n.binary<nn::MulOp>(centred, factor),
                                n.operand(1), n.operand(2)));
}

/// Whether a statistic is what the model holds, which gradients do not reach;
/// else the file has computed it, as of a norm in training mode without any.
static bool isHeld(Value value) {
  while (value && isa_and_nonnull<nn::CastOp, nn::ReshapeOp, nn::BroadcastOp>(
                      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value && (isa<BlockArgument>(value) || Importer::constantOf(value));
}

/// (x - mean) / sqrt(variance + epsilon) · scale + bias, of running statistics
/// unless the node says that it is being trained.
static LogicalResult importBatchNorm(Importer &n) {
  Value x = n.operand(0);
  if (!hasChannels(n, x))
    return failure();
  double epsilon = n.floatAttr("epsilon", 1e-5f),
         momentum = n.floatAttr("momentum", 0.9f);
  bool isTraining = n.version >= 14 && n.intAttr("training_mode", 0) != 0;
  for (unsigned index = 1; index < 5; ++index)
    if (!alongChannels(n, n.operand(index), x))
      return failure();
  if (Value mean = n.graph.runningStatistics.lookup({&n.node, 3u}))
    return trainBatchNorm(n, mean,
                          n.graph.runningStatistics.lookup({&n.node, 4u}),
                          epsilon, momentum);
  bool isFrozen = n.graph.options.trainsBatchNorms == false;
  if (isTraining && n.graph.options.forTraining && !isFrozen)
    return n.error() << "expected a batch norm that is trained outside of "
                        "subgraphs (If, Loop, Scan), found one inside";
  if (isTraining && !isFrozen)
    return normalizeBatch(n, epsilon, momentum);
  auto getStatistic = [&](unsigned index) {
    Value value = n.operand(index);
    return isHeld(value) ? n.stopGradient(value) : value;
  };
  Value mean = getStatistic(3), variance = getStatistic(4);
  if (n.hasFailed())
    return failure();
  Value factor = n.unary<nn::RsqrtOp>(
      n.binary<nn::AddOp>(variance, n.splatLike(variance, epsilon)));
  Value centred = n.binary<nn::SubOp>(x, alongChannels(n, mean, x));
  return n.finish(scaleChannels(
      n, n.binary<nn::MulOp>(centred, alongChannels(n, factor, x)),
      n.operand(1), n.operand(2)));
}

/// x, each of whose first two dimensions' rows has mean 0 and variance 1.
static Value normalizeRows(Importer &n, Value x, int64_t groups,
                           double epsilon) {
  if (n.hasFailed())
    return nullptr;
  SmallVector<int64_t> shape(Importer::shape(x));
  int64_t rows = shape[0] * groups,
          size = ShapedType::getNumElements(shape) / std::max<int64_t>(rows, 1);
  Value normal = n.create<nn::LayerNormOp>(
      {n.reshape(x, {shape[0], groups, size}),
       n.splat({size}, Importer::element(x), 1)},
      {n.named("dim", int64_t(2)),
       n.named("epsilon", n.graph.builder.getF64FloatAttr(epsilon))});
  return n.reshape(normal, shape);
}

static LogicalResult importInstanceNorm(Importer &n) {
  Value x = n.operand(0);
  if (!hasChannels(n, x))
    return failure();
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  return n.finish(
      scaleChannels(n, normalizeRows(n, x, Importer::shape(x)[1], epsilon),
                    n.operand(1), n.operand(2)));
}

/// Before opset 21 scale and bias have a number for each group.
static LogicalResult importGroupNorm(Importer &n) {
  Value x = n.operand(0), scale = n.operand(1), bias = n.operand(2);
  if (!hasChannels(n, x))
    return failure();
  int64_t groups = n.intAttr("num_groups", 0), channels = Importer::shape(x)[1];
  if (groups < 1 || channels % groups != 0)
    return n.error() << "expected 'num_groups' to divide " << channels
                     << " channels, found " << groups;
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  n.ignoreAttr("stash_type"); // statistics are in f32 at least
  if (n.version < 21) {
    auto repeat = [&](Value numbers) {
      return n.reshape(n.broadcast(n.reshape(numbers, {groups, 1}),
                                   {groups, channels / groups}),
                       {channels});
    };
    scale = repeat(scale);
    bias = repeat(bias);
  }
  return n.finish(
      scaleChannels(n, normalizeRows(n, x, groups, epsilon), scale, bias));
}

/// x / (bias + alpha / size · Σ x²)^beta, the sum over `size` neighbouring
/// channels (Krizhevsky et al., 2012).
static LogicalResult importLocalResponseNorm(Importer &n) {
  Value x = n.operand(0);
  if (!hasChannels(n, x))
    return failure();
  double alpha = n.floatAttr("alpha", 1e-4f), beta = n.floatAttr("beta", 0.75f),
         bias = n.floatAttr("bias", 1);
  int64_t size = n.intAttr("size", 0), channels = Importer::shape(x)[1];
  constexpr int64_t kMostNeighbours = 1024;
  if (size < 1 || size > kMostNeighbours)
    return n.error() << "expected a 'size' of 1 to " << kMostNeighbours
                     << " channels, found " << size;
  SmallVector<int64_t> low(Importer::rank(x), 0), high = low;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Value square = n.create<nn::PadOp>(
      {n.binary<nn::MulOp>(x, x), n.splat({}, Importer::element(x), 0)},
      {n.named("low", low), n.named("high", high)});
  Value sum;
  for (int64_t place = 0; place < size; ++place) {
    Value piece = n.slice(square, 1, place, channels);
    sum = sum ? n.binary<nn::AddOp>(sum, piece) : piece;
  }
  if (n.hasFailed())
    return failure();
  Value base = n.binary<nn::AddOp>(
      n.binary<nn::MulOp>(sum, n.splatLike(sum, alpha / size)),
      n.splatLike(sum, bias));
  return n.finish(n.binary<nn::DivOp>(
      x, n.binary<nn::PowOp>(base, n.splatLike(base, beta))));
}

/// (x - mean) / (deviation + 1e-9) over `axes`.
static LogicalResult importMeanVarianceNorm(Importer &n) {
  Value x = n.operand(0);
  auto axes = n.intsAttr("axes");
  SmallVector<int64_t> dims = n.normalizeAxes(
      axes ? *axes : SmallVector<int64_t>{0, 2, 3}, Importer::rank(x));
  if (n.hasFailed())
    return failure();
  Value centred = n.binary<nn::SubOp>(x, n.mean(x, dims, /*keepDims=*/true));
  Value variance =
      n.mean(n.binary<nn::MulOp>(centred, centred), dims, /*keepDims=*/true);
  Value deviation = n.unary<nn::SqrtOp>(variance);
  return n.finish(n.binary<nn::DivOp>(
      centred, n.binary<nn::AddOp>(deviation, n.splatLike(deviation, 1e-9))));
}

ArrayRef<OpRow> accel::import::channelNormOps() {
  static const OpRow rows[] = {
      {"", "BatchNormalization", 7, 5, 5, importBatchNorm},
      {"", "GroupNormalization", 18, 3, 3, importGroupNorm},
      {"", "MeanVarianceNormalization", 9, 1, 1, importMeanVarianceNorm},
      {"", "LRN", 1, 1, 1, importLocalResponseNorm},
      {"", "InstanceNormalization", 6, 3, 3, importInstanceNorm},
  };
  return rows;
}
