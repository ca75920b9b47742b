// Import of the Attention and RotaryEmbedding operators of opset 23.

#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// [B, S, H·D] to [B, H, S, D]; tensors of rank 4 stay.
static Value splitHeads(Importer &n, Value value, int64_t heads,
                        StringRef attribute) {
  if (Importer::rank(value) == 4)
    return value;
  ArrayRef<int64_t> shape = Importer::shape(value);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads != 0) {
    n.error() << "expected a tensor of rank 4, or of rank 3 with '" << attribute
              << "' dividing its last dimension, found "
              << (value ? value.getType() : Type()) << " and " << heads;
    return nullptr;
  }
  return n.transpose(
      n.reshape(value, {shape[0], shape[1], heads, shape[2] / heads}),
      {0, 2, 1, 3});
}

static LogicalResult importAttention(Importer &n) {
  bool causal = n.intAttr("is_causal", 0);
  int64_t queryHeads = n.intAttr("q_num_heads", 0);
  int64_t keyHeads = n.intAttr("kv_num_heads", 0);
  double softcap = n.floatAttr("softcap", 0);
  n.ignoreAttr("qk_matmul_output_mode"); // of result 3 only
  n.ignoreAttr("softmax_precision");     // nn.attention's is at least f32
  if (softcap != 0)
    return n.error() << "expected 'softcap' 0, found " << softcap;
  if (n.wantsResult(3))
    return n.error() << "result 'qk_matmul_output' is not supported";

  bool flat = Importer::rank(n.operand(0)) == 3;
  Value query = splitHeads(n, n.operand(0), queryHeads, "q_num_heads");
  Value key = splitHeads(n, n.operand(1), keyHeads, "kv_num_heads");
  Value value = splitHeads(n, n.operand(2), keyHeads, "kv_num_heads");
  if (!query || !key || !value)
    return failure();
  // PyTorch's call repeats what is one batch, and so writes it.
  int64_t batch = 1;
  for (Value each : {query, key, value})
    batch = std::max(batch, Importer::shape(each)[0]);
  for (Value *each : {&query, &key, &value})
    if (Importer::shape(*each)[0] == 1 && batch > 1) {
      SmallVector<int64_t> repeated(Importer::shape(*each));
      repeated[0] = batch;
      *each = n.broadcast(*each, repeated);
    }
  if (!query || !key || !value)
    return failure();
  int64_t past = 0;
  if (Value pastKey = n.operand(4)) {
    if (!n.operand(5))
      return n.error() << "expected operand #5 ('past_value') beside operand "
                          "#4, found none";
    if (Importer::rank(pastKey) != 4 || Importer::rank(n.operand(5)) != 4)
      return n.error() << "expected past keys and values of rank 4, found "
                       << pastKey.getType() << " and "
                       << n.operand(5).getType();
    past = Importer::shape(pastKey)[2];
    key = n.concat({pastKey, key}, 2);
    value = n.concat({n.operand(5), value}, 2);
  }
  if (!key || !value)
    return failure();
  n.setResult(1, key);
  n.setResult(2, value);

  int64_t keys = Importer::shape(key)[2];
  double scale = n.floatAttr("scale", 0);
  if (!n.hasAttribute("scale"))
    scale = 1 / std::sqrt(double(Importer::shape(query)[3]));
  Value mask = n.operand(3);
  if (mask && Importer::rank(mask) < 4) {
    SmallVector<int64_t> wide(4 - Importer::rank(mask), 1);
    llvm::append_range(wide, Importer::shape(mask));
    mask = n.reshape(mask, wide);
  }
  if (mask && Importer::shape(mask).back() != keys) {
    SmallVector<int64_t> wide(Importer::shape(mask));
    wide.back() = keys;
    mask = n.broadcast(mask, wide);
  }
  SmallVector<Value> operands{query, key, value};
  if (mask)
    operands.push_back(mask);
  SmallVector<NamedAttribute> attributes{
      n.named("scale", n.graph.builder.getF64FloatAttr(scale))};
  if (causal) {
    // Query 0 is the one behind the past.
    attributes.push_back(n.unit("causal"));
    if (past > 0)
      attributes.push_back(
          n.named("row_offset", n.graph.builder.getI64IntegerAttr(past)));
  }
  // As PyTorch does: Softmax in Norm.cpp.
  if (mask && isTracedAs(n.node, "scaled_dot_product_attention"))
    attributes.push_back(n.unit("zero_masked_rows"));
  Value result = n.create<nn::AttentionOp>(operands, attributes);
  if (result && flat) {
    ArrayRef<int64_t> shape = Importer::shape(result);
    result = n.reshape(n.transpose(result, {0, 2, 1, 3}),
                       {shape[0], shape[2], shape[1] * shape[3]});
  }
  return n.finish(result);
}

/// Rotates the pairs (x1, x2) of each head by the angle of its position: the
/// halves of its first `rotary_embedding_dim` elements, or with `interleaved`
/// neighbours (Su et al., arXiv:2104.09864).
static LogicalResult importRotaryEmbedding(Importer &n) {
  Value x = n.operand(0), positions = n.operand(3);
  bool interleaved = n.intAttr("interleaved", 0);
  int64_t heads = n.intAttr("num_heads", 0);
  int64_t width = n.intAttr("rotary_embedding_dim", 0);
  SmallVector<int64_t> flat(Importer::shape(x));
  Value split = splitHeads(n, x, heads, "num_heads"); // [B, H, S, D]
  if (!split)
    return failure();
  SmallVector<int64_t> shape(Importer::shape(split));
  width = width == 0 ? shape[3] : width;
  if (width % 2 != 0 || width < 0 || width > shape[3])
    return n.error()
           << "expected 'rotary_embedding_dim' to be even and at most "
           << shape[3] << ", found " << width;

  // [B|1, 1, S, width / 2]
  auto prepare = [&](unsigned index) -> Value {
    Value table = n.operand(index);
    if (positions)
      table = n.create<nn::GatherOp>({table, positions}, n.named("dim", 0));
    if (!table)
      return nullptr;
    SmallVector<int64_t> sizes(Importer::shape(table));
    bool fits = sizes.size() == 3 && sizes[2] == width / 2 &&
                (sizes[0] == shape[0] || sizes[0] == 1) && sizes[1] == shape[2];
    if (!fits) {
      n.error() << "expected operand #" << index << " to give [" << shape[0]
                << ", " << shape[2] << ", " << width / 2 << "], found "
                << table.getType();
      return nullptr;
    }
    return n.reshape(table, {sizes[0], 1, sizes[1], sizes[2]});
  };
  Value cosine = prepare(1), sine = prepare(2);
  if (!cosine || !sine)
    return failure();

  SmallVector<int64_t> half{shape[0], shape[1], shape[2], width / 2};
  SmallVector<int64_t> pairs(half);
  pairs.push_back(2);
  Value turned = n.slice(split, 3, 0, width);
  if (interleaved)
    turned = n.reshape(turned, pairs);
  auto part = [&](int64_t which) {
    return interleaved ? n.reshape(n.slice(turned, 4, which, 1), half)
                       : n.slice(turned, 3, which * width / 2, width / 2);
  };
  Value first = part(0), second = part(1);
  Value real = n.binary<nn::SubOp>(n.binary<nn::MulOp>(first, cosine),
                                   n.binary<nn::MulOp>(second, sine));
  Value imaginary = n.binary<nn::AddOp>(n.binary<nn::MulOp>(first, sine),
                                        n.binary<nn::MulOp>(second, cosine));
  if (!real || !imaginary)
    return failure();
  Value result;
  if (interleaved) {
    pairs.back() = 1;
    result = n.concat({n.reshape(real, pairs), n.reshape(imaginary, pairs)}, 4);
    result = n.reshape(result, {shape[0], shape[1], shape[2], width});
  } else {
    result = n.concat({real, imaginary}, 3);
  }
  if (width < shape[3])
    result = n.concat({result, n.slice(split, 3, width, shape[3] - width)}, 3);
  if (flat.size() == 3)
    result = n.reshape(n.transpose(result, {0, 2, 1, 3}), flat);
  return n.finish(result);
}

/// Opset 24 changes which keys a query sees, and adds the lengths of caches.
static LogicalResult refuseNewerAttention(NodeImporter &n) {
  return n.error() << "not supported from opset 24 on: export to opset 23";
}

ArrayRef<OpRow> accel::import::attentionOps() {
  static const OpRow rows[] = {
      {"", "Attention", 23, 3, 6, importAttention},
      {"", "Attention", 24, 3, 7, refuseNewerAttention},
      {"", "RotaryEmbedding", 23, 3, 4, importRotaryEmbedding},
  };
  return rows;
}
