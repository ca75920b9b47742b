// Layers of matrix products: MLPs, gates, ties, experts.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

static Value makeLinear(Model &m, Value x) {
  return m.linear(x, m.width, m.random.chance(70));
}

static Value makeMlp(Model &m, Value x) {
  int64_t inner = m.width * m.random.between(1, 2);
  Value y = m.activation(m.linear(x, inner, m.random.chance(70)));
  return m.linear(y, m.width, m.random.chance(70));
}

static Value makeGated(Model &m, Value x) {
  int64_t inner = m.width;
  Value gate = m.activation(m.linear(x, inner, false));
  Value up = m.linear(x, inner, false);
  return m.linear(m.b.mul(gate, up), m.width, false);
}

/// Both from one product, cut in halves.
static Value makeFusedGate(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value both = m.linear(x, 2 * m.width, m.random.chance(50));
  Value y = b.mul(m.activation(b.slice(both, 2, 0, m.width)),
                  b.slice(both, 2, m.width, m.width));
  return m.linear(y, m.width, m.random.chance(50));
}

static Value makeLowRank(Model &m, Value x) {
  return m.b.mul(m.linear(m.linear(x, 2, false), m.width, false), 0.5);
}

/// The same weight there and back.
static Value makeTied(Model &m, Value x) {
  Value w = m.b.parameter("tied", {m.width, m.width}, 0.6);
  Value y = m.activation(m.b.matmul(x, w));
  return m.b.matmul(y, w, false, true);
}

/// A product of what samples have.
static Value makeGram(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value scores = b.matmul(x, x, false, true); // [rows, length, length]
  return b.mul(b.matmul(scores, x), 0.1);
}

static Value makeChannels(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value scores = b.matmul(x, x, true, false); // [rows, width, width]
  return b.mul(b.matmul(x, scores), 0.1);
}

/// Products along the sequence (MLP-Mixer).
static Value makeMixer(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value turned = b.transpose(x, {0, 2, 1});
  Value y = b.matmul(turned, b.parameter("mix", {m.length, m.length}, 0.6));
  if (m.random.chance(50))
    y = b.add(y, b.parameter("mix_b", {m.length}));
  return b.transpose(m.activation(y), {0, 2, 1});
}

/// Convolutions along the sequence, of all channels, of groups of them, or of
/// each by itself (Conformer, Mamba); those with strides come back by the
/// transpose.
static Value makeConvolution(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value turned = b.transpose(x, {0, 2, 1}); // [rows, width, length]
  int64_t groups = m.random.pick<int64_t>({1, 1, m.heads, m.width});
  int64_t size = m.width / groups, window = m.random.pick<int64_t>({1, 2, 3});
  bool isStrided = m.random.chance(30) && m.length % 2 == 0;
  SmallVector<int64_t> strides{isStrided ? 2 : 1}, dilations{1},
      low{window / 2}, wide{m.length}, narrow{m.length / strides[0]};
  SmallVector<int64_t> shape{m.rows, m.width, m.length},
      weight{m.width, size, window};
  if (groups > 1) {
    shape = {m.rows, groups, size, m.length};
    weight = {groups, size, size, window};
  }
  Value y = b.make<nn::ConvOp>(b.reshape(turned, shape),
                               b.parameter("window", weight, 0.6), narrow,
                               strides, dilations, low);
  y = m.activation(y);
  if (isStrided || m.random.chance(20))
    y = b.make<nn::ConvInputGradOp>(y, b.parameter("back", weight, 0.6), wide,
                                    strides, dilations, low);
  y = b.reshape(y, {m.rows, m.width, m.length});
  if (m.random.chance(50))
    y = b.add(y, b.parameter("of_channels", {m.width, 1}));
  return b.transpose(y, {0, 2, 1});
}

/// A patch of space as a token (ViT): windows that do not overlap.
static Value makePatches(Model &m, Value x) {
  GraphBuilder &b = m.b;
  if (m.length % 2 != 0 || m.width % 2 != 0)
    return makeConvolution(m, x);
  // A picture of one channel, of which each patch gives all channels.
  Value picture = b.reshape(x, {m.rows, 1, m.length, m.width});
  int64_t channels = 4;
  Value y = b.make<nn::ConvOp>(
      picture, b.parameter("patch", {channels, 1, 2, 2}, 0.6),
      ArrayRef<int64_t>{m.length / 2, m.width / 2}, ArrayRef<int64_t>{2, 2},
      ArrayRef<int64_t>{1, 1}, ArrayRef<int64_t>{0, 0});
  y = b.reshape(y, {m.rows, channels, m.length * m.width / 4});
  return m.activation(
      b.reshape(b.transpose(y, {0, 2, 1}), {m.rows, m.length, m.width}));
}

/// How alike a row's channels are to those that stand a few places behind them,
/// over all of its tokens, as a gate: a correlation, which is what the gradient
/// of a convolution's weight computes.
static Value makeCorrelation(Model &m, Value x) {
  GraphBuilder &b = m.b;
  // Samples are tokens, groups are rows.
  Value signal =
      b.reshape(b.transpose(x, {1, 0, 2}), {m.length, m.rows, 1, m.width});
  int64_t window = m.random.pick<int64_t>({1, 2, 3});
  Value alike = b.make<nn::ConvWeightGradOp>(
      signal, m.activation(signal), ArrayRef<int64_t>{window},
      ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0});
  Value gate = b.reshape(b.sum(alike, {3}), {m.rows, 1, 1});
  gate = b.make<nn::TanhOp>(b.mul(gate, 1.0 / double(m.length * m.width)));
  return b.mul(x, gate);
}

/// Each head's own matrix.
static Value makeHeads(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t size = m.width / m.heads;
  Value split = b.transpose(b.reshape(x, {m.rows, m.length, m.heads, size}),
                            {0, 2, 1, 3});
  Value w = b.broadcast(b.parameter("of_heads", {m.heads, size, size}, 0.8),
                        {m.rows, m.heads, size, size});
  Value y = b.matmul(split, w);
  return b.reshape(b.transpose(y, {0, 2, 1, 3}), {m.rows, m.length, m.width});
}

/// A mixture of experts: of each token the best ones' products, weighed.
static Value makeExperts(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t experts = m.random.pick<int64_t>({2, 4, 4, 3});
  int64_t chosen = m.random.pick<int64_t>({1, 2});
  int64_t tokens = m.rows * m.length;
  Value flat = b.reshape(x, {tokens, m.width});
  Value scores = b.softmax(
      b.matmul(flat, b.parameter("router", {m.width, experts}, 0.9)), 1);
  Value places = b.make<nn::TopKOp>(scores, chosen, /*smallest=*/false);
  Value picked = b.make<nn::GatherNdOp>(
      scores, b.reshape(places, {tokens, chosen, 1}), /*batch_dims=*/1);
  if (chosen > 1 && m.random.chance(60))
    picked = b.div(picked, b.sum(picked, {1}, true));
  int64_t inner = m.width;
  Value up = b.parameter("up", {experts, m.width, inner}, 0.8);
  Value down = b.parameter("down", {experts, inner, m.width}, 0.8);
  Value result;
  if (chosen == 1 || m.random.chance(50)) {
    for (int64_t number = 0; number < chosen; ++number) {
      Value group = b.reshape(b.slice(places, 1, number, 1), {tokens});
      Value y =
          m.activation(b.make<nn::GroupedMatmulOp>(flat, up, group, false));
      y = b.make<nn::GroupedMatmulOp>(y, down, group, false);
      y = b.mul(y, b.slice(picked, 1, number, 1));
      result = result ? b.add(result, y) : y;
    }
  } else { // rows of all choices at once
    Value repeated =
        b.reshape(b.broadcast(b.unsqueeze(flat, 1), {tokens, chosen, m.width}),
                  {tokens * chosen, m.width});
    Value group = b.reshape(places, {tokens * chosen});
    Value y =
        m.activation(b.make<nn::GroupedMatmulOp>(repeated, up, group, false));
    y = b.make<nn::GroupedMatmulOp>(y, down, group, false);
    y = b.mul(b.reshape(y, {tokens, chosen, m.width}),
              b.reshape(picked, {tokens, chosen, 1}));
    result = b.sum(y, {1});
  }
  return b.reshape(result, {m.rows, m.length, m.width});
}

void fuzz::addProducts(SmallVectorImpl<Layer> &layers) {
  layers.append({{"linear", 5, false, makeLinear},
                 {"mlp", 6, false, makeMlp},
                 {"gated", 3, false, makeGated},
                 {"fused gate", 3, false, makeFusedGate},
                 {"low rank", 2, false, makeLowRank},
                 {"tied", 2, false, makeTied},
                 {"gram", 1, false, makeGram},
                 {"channels", 1, false, makeChannels},
                 {"mixer", 2, false, makeMixer},
                 {"convolution", 4, false, makeConvolution},
                 {"patches", 2, false, makePatches},
                 {"correlation", 2, false, makeCorrelation},
                 {"head products", 2, false, makeHeads},
                 {"experts", 4, false, makeExperts}});
}
