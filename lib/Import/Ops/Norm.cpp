// Import of softmax and the normalisations.

#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

template <bool isLog> static LogicalResult importSoftmax(NodeImporter &n) {
  Value x = n.operand(0);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  SmallVector<NamedAttribute> attributes{n.named("dim", dim)};
  if (isLog)
    attributes.push_back(n.unit("log"));
  Value weights = n.create<nn::SoftmaxOp>(x, attributes);
  // A row of PyTorch's attention that sees no key is zero, and passes none.
  // Exporters write that for masks of truth values only.
  if (!isLog && isTracedAs(n.node, "scaled_dot_product_attention"))
    weights = n.create<nn::SelectOp>(
        {n.create<nn::IsNanOp>(weights), n.splatLike(weights, 0), weights});
  return n.finish(weights);
}

/// Before opset 13: over all dimensions from `axis` on.
template <bool isLog> static LogicalResult importFlatSoftmax(NodeImporter &n) {
  Value x = n.operand(0);
  SmallVector<int64_t> shape(NodeImporter::shape(x));
  int64_t dim = n.normalizeAxis(n.intAttr("axis", 1), shape.size());
  if (n.hasFailed())
    return failure();
  ArrayRef<int64_t> sizes = shape;
  Value rows =
      n.reshape(x, {ShapedType::getNumElements(sizes.take_front(dim)),
                    ShapedType::getNumElements(sizes.drop_front(dim))});
  SmallVector<NamedAttribute> attributes{n.named("dim", int64_t(1))};
  if (isLog)
    attributes.push_back(n.unit("log"));
  return n.finish(n.reshape(n.create<nn::SoftmaxOp>(rows, attributes), shape));
}

/// 1 where a line's greatest element is, the first of equal ones, else 0.
static Value hardmax(NodeImporter &n, Value x, int64_t dim) {
  int64_t rank = NodeImporter::rank(x);
  SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(rank));
  std::swap(last[dim], last.back()); // its own inverse
  Value lines = n.transpose(x, last);
  if (!lines)
    return nullptr;
  Value place = n.create<nn::TopKOp>({lines}, {n.named("k", int64_t(1))});
  Value places = n.iota(NodeImporter::shape(lines).back());
  Value isThere = n.compare(nn::ComparePredicate::eq, place, places);
  return n.transpose(n.cast(isThere, NodeImporter::element(x)), last);
}
static LogicalResult importHardmax(NodeImporter &n) {
  Value x = n.operand(0);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  return n.hasFailed() ? failure() : n.finish(hardmax(n, x, dim));
}

/// Over the sum of magnitudes or the root of the sum of squares; lines of zeros
/// stay.
static LogicalResult importLpNorm(NodeImporter &n) {
  Value x = n.operand(0);
  int64_t p = n.intAttr("p", 2);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  if (p != 1 && p != 2)
    return n.error() << "expected 'p' to be 1 or 2, found " << p;
  if (n.hasFailed())
    return failure();
  Value power = p == 1 ? n.unary<nn::AbsOp>(x) : n.binary<nn::MulOp>(x, x);
  Value norm = n.reduce(nn::ReductionKind::sum, power, dim, /*keepDims=*/true);
  if (p == 2)
    norm = zeroAtZero(n, norm,
                      [&](Value sum) { return n.unary<nn::SqrtOp>(sum); });
  Value isZero =
      n.compare(nn::ComparePredicate::eq, norm, n.splatLike(norm, 0));
  return n.finish(
      n.binary<nn::DivOp>(x, n.select(isZero, n.splatLike(norm, 1), norm)));
}

/// Statistics are in f32 at least whatever `stash_type` says: nn.layer_norm's
/// own rule.
static LogicalResult importLayerNorm(NodeImporter &n) {
  Value x = n.operand(0), scale = n.operand(1), bias = n.operand(2);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  n.ignoreAttr("stash_type");
  if (n.wantsResult(1) || n.wantsResult(2)) {
    // Exporters name these results without using them; then they vanish again.
    SmallVector<int64_t> dims =
        llvm::to_vector(llvm::seq(dim, NodeImporter::rank(x)));
    Value mean = n.mean(x, dims, /*keepDims=*/true);
    Value centred = n.binary<nn::SubOp>(x, mean);
    Value variance = n.mean(n.binary<nn::MulOp>(centred, centred), dims,
                            /*keepDims=*/true);
    n.setResult(1, mean);
    n.setResult(2, n.unary<nn::RsqrtOp>(n.binary<nn::AddOp>(
                       variance, n.splatLike(variance, epsilon))));
  }
  ArrayRef<int64_t> normal = NodeImporter::shape(x).drop_front(dim);
  SmallVector<Value> operands{x, n.broadcast(scale, normal)};
  if (bias)
    operands.push_back(n.broadcast(bias, normal));
  return n.finish(n.create<nn::LayerNormOp>(
      operands,
      {n.named("dim", dim),
       n.named("epsilon", n.graph.builder.getF64FloatAttr(epsilon))}));
}

/// x / sqrt(mean(x²) + epsilon) · scale
static LogicalResult importRmsNorm(NodeImporter &n) {
  Value x = n.operand(0), scale = n.operand(1);
  int64_t rank = NodeImporter::rank(x);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", -1), rank);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  if (n.graph.options.f64)
    epsilon = widenNumber(epsilon);
  int64_t stash = n.intAttr("stash_type", onnx::TensorProto::FLOAT);
  if (stash != onnx::TensorProto::FLOAT)
    return n.error() << "expected 'stash_type' "
                     << int64_t(onnx::TensorProto::FLOAT) << ", found "
                     << stash;
  Type own = NodeImporter::element(x);
  bool narrow = own.getIntOrFloatBitWidth() < 32;
  Value wide = narrow ? n.cast(x, n.graph.builder.getF32Type()) : x;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq(dim, rank));
  Value mean = n.mean(n.binary<nn::MulOp>(wide, wide), dims, /*keepDims=*/true);
  Value inverse = n.unary<nn::RsqrtOp>(
      n.binary<nn::AddOp>(mean, n.splatLike(mean, epsilon)));
  Value normal = n.cast(n.binary<nn::MulOp>(wide, inverse), own);
  return n.finish(n.binary<nn::MulOp>(normal, scale));
}

ArrayRef<OpRow> accel::import::normOps() {
  static const OpRow rows[] = {
      {"", "Hardmax", 13, 1, 1, importHardmax},
      {"", "LayerNormalization", 17, 2, 3, importLayerNorm},
      {"", "LogSoftmax", 1, 1, 1, importFlatSoftmax<true>},
      {"", "LogSoftmax", 13, 1, 1, importSoftmax<true>},
      {"", "LpNormalization", 1, 1, 1, importLpNorm},
      {"", "RMSNormalization", 23, 2, 2, importRmsNorm},
      {"", "Softmax", 1, 1, 1, importFlatSoftmax<false>},
      {"", "Softmax", 13, 1, 1, importSoftmax<false>},
  };
  return rows;
}
