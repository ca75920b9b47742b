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
                 {"head products", 2, false, makeHeads},
                 {"experts", 4, false, makeExperts}});
}
