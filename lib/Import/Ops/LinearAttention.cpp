// Import of the operators of models that carry a state along a sequence:
// LinearAttention (Katharopoulos et al., arXiv:2006.16236; gated and delta
// rules: Yang et al., arXiv:2412.06464) and the convolution before it.

#include "lib/Import/Heads.h"
#include "lib/Import/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// Which of the rules' two parts are there.
struct Rule {
  bool isGated, isDelta;
};
} // namespace

static std::optional<Rule> readRule(Importer &n) {
  std::string name = n.stringAttr("update_rule", "gated_delta");
  if (name == "linear")
    return Rule{false, false};
  if (name == "gated")
    return Rule{true, false};
  if (name == "delta")
    return Rule{false, true};
  if (name == "gated_delta")
    return Rule{true, true};
  n.error() << "expected 'update_rule' to be linear, gated, delta or "
               "gated_delta, found '"
            << name << "'";
  return std::nullopt;
}

/// A number for each head, or for each of its keys' elements: [B, T, H or 1 or
/// H · width] as [B, H, T, 1 or width]; an error for another shape.
static Value readRates(Importer &n, unsigned index, int64_t heads,
                       int64_t width) {
  Value rates = n.operand(index);
  if (!rates || Importer::rank(rates) != 3) {
    n.error() << "expected operand #" << index << " of rank 3, found "
              << (rates ? rates.getType() : Type());
    return nullptr;
  }
  SmallVector<int64_t> shape(Importer::shape(rates));
  if (shape[2] == 1 && heads > 1) {
    shape[2] = heads;
    rates = n.broadcast(rates, shape);
  }
  if (shape[2] == heads)
    return n.transpose(n.reshape(rates, {shape[0], shape[1], heads, 1}),
                       {0, 2, 1, 3});
  if (shape[2] == heads * width)
    return splitHeads(n, rates, heads, "kv_num_heads");
  n.error() << "expected operand #" << index << " to have " << heads << " or "
            << heads * width << " numbers in its last dimension, found "
            << rates.getType();
  return nullptr;
}

/// S = e^g S, then S += k (b (v - S^T k))^T, or k v^T; o = scale · q^T S.
static LogicalResult importLinearAttention(Importer &n) {
  std::optional<Rule> rule = readRule(n);
  int64_t queryHeads = n.intAttr("q_num_heads", 0),
          heads = n.intAttr("kv_num_heads", 0);
  double scale = n.floatAttr("scale", 0);
  n.ignoreAttr("chunk_size"); // how, not what
  if (!rule)
    return failure();
  Value query = splitHeads(n, n.operand(0), queryHeads, "q_num_heads"),
        key = splitHeads(n, n.operand(1), heads, "kv_num_heads"),
        value = splitHeads(n, n.operand(2), heads, "kv_num_heads");
  if (!query || !key || !value)
    return failure();
  SmallVector<int64_t> shape(Importer::shape(key)); // [B, H, T, width]
  int64_t batch = shape[0], steps = shape[2], width = shape[3],
          valueWidth = Importer::shape(value)[3];
  if (queryHeads % heads != 0)
    return n.error() << "expected 'kv_num_heads' to divide " << queryHeads
                     << ", found " << heads;
  constexpr int64_t kMostSteps = 8192; // each is ops of its own
  if (steps < 1 || steps > kMostSteps)
    return n.error() << "expected a sequence of 1 to " << kMostSteps
                     << " steps, found " << steps;
  auto fits = [&](Value value, int64_t ownHeads, int64_t ownWidth) {
    return Importer::shape(value) ==
           ArrayRef<int64_t>({batch, ownHeads, steps, ownWidth});
  };
  for (unsigned index = 0; index < 3; ++index)
    if (Importer::rank(n.operand(index)) != 3)
      return n.error() << "expected operands of rank 3, found "
                       << n.operand(index).getType();
  if (!fits(query, queryHeads, width) || !fits(value, heads, valueWidth))
    return n.error() << "expected queries, keys and values of as many samples "
                        "and steps, found "
                     << n.operand(0).getType() << ", " << n.operand(1).getType()
                     << " and " << n.operand(2).getType();
  int64_t group = queryHeads / heads;
  if (scale == 0)
    scale = 1 / std::sqrt(double(width));
  // [B, H, T, group, width]: the queries of one step are rows of a product.
  query = n.transpose(
      n.reshape(n.scale(query, scale), {batch, heads, group, steps, width}),
      {0, 1, 3, 2, 4});
  Value decay, rate;
  if (rule->isGated) {
    decay = readRates(n, 4, heads, width);
    decay = n.unary<nn::ExpOp>(decay);
  }
  if (rule->isDelta)
    rate = readRates(n, 5, heads, 1);
  SmallVector<int64_t> stateShape{batch, heads, width, valueWidth};
  Value state = n.operand(3);
  if (!state)
    state = n.splat(stateShape, Importer::element(value), 0);
  if (n.hasFailed())
    return failure();
  if (Importer::shape(state) != ArrayRef<int64_t>(stateShape))
    return n.error() << "expected a state [" << stateShape << "], found "
                     << state.getType();
  SmallVector<Value> outputs;
  for (int64_t at = 0; at < steps && !n.hasFailed(); ++at) {
    auto row = [&](Value all) { return n.slice(all, 2, at, 1); };
    auto column = [&](Value all) { return n.swapLastTwo(row(all)); };
    if (decay)
      state = n.binary<nn::MulOp>(state, column(decay));
    Value fresh = row(value), own = row(key); // [B, H, 1, …]
    if (rate)
      fresh = n.binary<nn::MulOp>(
          row(rate), n.binary<nn::SubOp>(fresh, n.matmul(own, state)));
    state = n.binary<nn::AddOp>(state, n.binary<nn::MulOp>(column(key), fresh));
    Value queries = n.reshape(row(query), {batch, heads, group, width});
    outputs.push_back(n.reshape(n.matmul(queries, state),
                                {batch, 1, queryHeads * valueWidth}));
  }
  if (n.hasFailed())
    return failure();
  n.setResult(1, state);
  return n.finish(n.concat(outputs, 1));
}

/// Each channel's sum over the last places of it, of which those before the
/// first are a state, or 0.
static LogicalResult importCausalConv(Importer &n) {
  Value x = n.operand(0), weight = n.operand(1), state = n.operand(3);
  std::string activation = n.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.error() << "expected 'activation' to be none, silu or swish, "
                        "found '"
                     << activation << "'";
  SmallVector<int64_t> shape(Importer::shape(x));
  if (shape.size() != 3 || Importer::rank(weight) != 3 ||
      Importer::shape(weight)[0] != shape[1] ||
      Importer::shape(weight)[1] != 1 || Importer::shape(weight)[2] < 1)
    return n.error() << "expected an input [B, C, T] and a weight [C, 1, K], "
                        "found "
                     << x.getType() << " and " << weight.getType();
  int64_t channels = shape[1], before = Importer::shape(weight)[2] - 1;
  SmallVector<int64_t> stateShape{shape[0], channels, before};
  if (state && Importer::shape(state) != ArrayRef<int64_t>(stateShape))
    return n.error() << "expected a state [" << stateShape << "], found "
                     << state.getType();
  if (!state)
    state = n.splat(stateShape, Importer::element(x), 0);
  Value whole = before > 0 ? n.concat({state, x}, 2) : x;
  // A group for each channel.
  Value result = n.create<nn::ConvOp>(
      {n.reshape(whole, {shape[0], channels, 1, before + shape[2]}),
       n.reshape(weight, {channels, 1, 1, before + 1})},
      {n.named("sizes", ArrayRef<int64_t>{shape[2]}),
       n.named("strides", ArrayRef<int64_t>{1}),
       n.named("dilations", ArrayRef<int64_t>{1}),
       n.named("low", ArrayRef<int64_t>{0})});
  result = n.reshape(result, shape);
  if (Value bias = n.operand(2))
    result = n.binary<nn::AddOp>(result, n.reshape(bias, {channels, 1}));
  if (activation != "none")
    result = n.binary<nn::MulOp>(result, n.unary<nn::SigmoidOp>(result));
  if (n.wantsResult(1))
    n.setResult(1, n.slice(whole, 2, shape[2], before));
  return n.finish(result);
}

ArrayRef<OpRow> accel::import::linearAttentionOps() {
  static const OpRow rows[] = {
      {"", "CausalConvWithState", 27, 2, 4, importCausalConv},
      {"", "LinearAttention", 27, 3, 6, importLinearAttention},
  };
  return rows;
}
