// Import of the Attention operator.

#include "lib/Import/Heads.h"
#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

namespace {
/// The node's operands and attributes, in the form of nn.attention.
struct Attention {
  Value query, key, value; ///< [B, heads, S or T, width]
  Value mask;              ///< of rank 4, of T columns; or null
  Value lengths;           ///< of the keys that are no padding, or null
  bool isCausal = false;
  int64_t past = 0; ///< keys before query 0
  /// How many keys before and behind its own a query sees; -1: all.
  int64_t left = -1, right = -1;
  double scale = 1, softcap = 0;

  int64_t keys() const { return Importer::shape(key)[2]; }
};
} // namespace

/// A mask of fewer columns lets none of the others through (opset 24).
static Value widenMask(Importer &n, Value mask, int64_t keys) {
  if (Importer::rank(mask) < 4) {
    SmallVector<int64_t> wide(4 - Importer::rank(mask), 1);
    llvm::append_range(wide, Importer::shape(mask));
    mask = n.reshape(mask, wide);
  }
  if (n.hasFailed() || Importer::shape(mask).back() == keys)
    return mask;
  SmallVector<int64_t> wide(Importer::shape(mask));
  int64_t columns = std::exchange(wide.back(), keys);
  if (n.version < 24)
    return n.broadcast(mask, wide);
  if (columns > keys || columns == 1) {
    n.error() << "expected a mask of " << keys << " columns, found " << columns
              << (columns == 1 ? ", which may be meant for all, or for the "
                                 "first alone"
                               : "");
    return nullptr;
  }
  SmallVector<int64_t> low(4, 0), high(4, 0);
  high.back() = keys - columns;
  Type element = Importer::element(mask);
  double hidden = element.isInteger(1) ? 0 : -HUGE_VAL;
  return n.create<nn::PadOp>({mask, n.splat({}, element, hidden)},
                             {n.named("low", low), n.named("high", high)});
}

/// The places of keys, [T], and of queries among them, [S, 1], or, where each
/// sample has a length, [B, 1, S, 1].
struct Places {
  Value keys, queries;
};
static Places findPlaces(Importer &n, const Attention &attention) {
  int64_t rows = Importer::shape(attention.query)[2];
  Value row = n.reshape(n.iota(rows), {rows, 1});
  Value before = n.splat({}, n.graph.builder.getI64Type(), attention.past);
  if (Value ends = attention.lengths)
    before = n.binary<nn::SubOp>(ends, n.splatLike(ends, rows));
  return {n.iota(attention.keys()), n.binary<nn::AddOp>(row, before)};
}

/// Which keys the window lets a query see, or null if that is all.
static Value makeWindow(Importer &n, const Attention &attention,
                        const Places &places) {
  Value window;
  auto bound = [&](int64_t width, P predicate, int64_t sign) {
    if (width < 0)
      return;
    // Farther than any key there may be numbers that f64 does not have.
    width = std::min(width, attention.past + attention.keys() +
                                Importer::shape(attention.query)[2]);
    Value last = n.binary<nn::AddOp>(
        places.queries, n.splatLike(places.queries, double(sign * width)));
    Value sees = n.compare(predicate, places.keys, last);
    window = window ? n.binary<nn::AndOp>(window, sees) : sees;
  };
  bound(attention.left, P::ge, -1);
  bound(attention.right, P::le, 1);
  return window;
}

/// What every key's score of a row is changed by: [B|1, H|1, S|1, T] of floats,
/// or null.
static Value addMasks(Importer &n, const Attention &attention) {
  Type element = Importer::element(attention.query);
  Value sum;
  auto add = [&](Value bias) {
    if (!bias)
      return;
    if (Importer::element(bias).isInteger(1))
      bias = n.select(bias, n.splat({}, element, 0),
                      n.splat({}, element, -HUGE_VAL));
    sum = sum ? n.binary<nn::AddOp>(sum, bias) : bias;
  };
  add(attention.mask);
  Places places = findPlaces(n, attention);
  if (attention.lengths)
    add(n.compare(P::lt, places.keys, attention.lengths));
  if (attention.isCausal)
    add(n.compare(P::le, places.keys, places.queries));
  add(makeWindow(n, attention, places));
  if (sum && !n.hasFailed() && Importer::rank(sum) < 4) {
    SmallVector<int64_t> wide(4 - Importer::rank(sum), 1);
    llvm::append_range(wide, Importer::shape(sum));
    sum = n.reshape(sum, wide);
  }
  return sum;
}

/// Repeats each head of keys for the heads of queries that read it.
static Value repeatHeads(Importer &n, Value value, int64_t heads) {
  SmallVector<int64_t> shape(Importer::shape(value));
  int64_t own = shape[1];
  if (own == heads || n.hasFailed())
    return value;
  if (own == 0 || heads % own != 0) {
    n.error() << "expected a number of heads that divides " << heads
              << ", found " << own;
    return nullptr;
  }
  shape.insert(shape.begin() + 2, 1);
  Value split = n.reshape(value, shape);
  shape[2] = heads / own;
  split = n.broadcast(split, shape);
  shape.erase(shape.begin() + 1);
  shape[1] = heads;
  return n.reshape(split, shape);
}

/// Step by step, as the operator is defined: with a cap on scores (Gemma 2,
/// arXiv:2408.00118), lengths, or scores that are a result. Rows that see no
/// key are zero.
static Value writeOut(Importer &n, const Attention &attention) {
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    n.error() << "expected 'qk_matmul_output_mode' of 0 to 3, found " << mode;
    return nullptr;
  }
  int64_t heads = Importer::shape(attention.query)[1];
  Value key = repeatHeads(n, attention.key, heads),
        value = repeatHeads(n, attention.value, heads);
  Value scores = n.matmul(n.scale(attention.query, attention.scale), key,
                          /*transposeLhs=*/false, /*transposeRhs=*/true);
  auto show = [&](int64_t which, Value result) {
    if (which == mode && n.wantsResult(3))
      n.setResult(3, result);
  };
  show(0, scores);
  if (attention.softcap != 0)
    scores =
        n.scale(n.unary<nn::TanhOp>(n.scale(scores, 1 / attention.softcap)),
                attention.softcap);
  show(1, scores);
  Value bias = addMasks(n, attention), sees;
  if (bias) {
    Value best = n.reduce(nn::ReductionKind::max, bias, 3, /*keepDims=*/true);
    sees = n.compare(P::gt, best, n.splatLike(best, -HUGE_VAL));
    scores = n.binary<nn::AddOp>(scores, bias);
  }
  show(2, scores);
  // What is behind a row that sees nothing is no number: neither that nor its
  // gradient may go on.
  if (sees)
    scores = n.select(sees, scores, n.splat({}, Importer::element(scores), 0));
  Value weights = n.create<nn::SoftmaxOp>(scores, n.named("dim", int64_t(3)));
  if (sees)
    weights =
        n.select(sees, weights, n.splat({}, Importer::element(weights), 0));
  show(3, weights);
  return n.matmul(weights, value);
}

static Value makeAttention(Importer &n, const Attention &attention) {
  SmallVector<Value> operands{attention.query, attention.key, attention.value};
  Value mask = attention.mask;
  if (Value window = makeWindow(n, attention, findPlaces(n, attention))) {
    window = n.reshape(
        window, {1, 1, Importer::shape(attention.query)[2], attention.keys()});
    Type element = Importer::element(attention.query);
    if (!mask)
      mask = window;
    else if (Importer::element(mask).isInteger(1))
      mask = n.binary<nn::AndOp>(mask, window);
    else
      mask = n.select(window, mask, n.splat({}, element, -HUGE_VAL));
  }
  SmallVector<NamedAttribute> attributes{
      n.named("scale", n.graph.builder.getF64FloatAttr(attention.scale))};
  if (attention.isCausal) {
    // Query 0 is the one behind the past.
    attributes.push_back(n.unit("causal"));
    if (attention.past > 0)
      attributes.push_back(n.named(
          "row_offset", n.graph.builder.getI64IntegerAttr(attention.past)));
  }
  if (mask) {
    operands.push_back(mask);
    attributes.push_back(n.unit("zero_masked_rows"));
  }
  return n.create<nn::AttentionOp>(operands, attributes);
}

static LogicalResult importAttention(Importer &n) {
  Attention attention;
  attention.isCausal = n.intAttr("is_causal", 0);
  int64_t queryHeads = n.intAttr("q_num_heads", 0);
  int64_t keyHeads = n.intAttr("kv_num_heads", 0);
  attention.softcap = n.floatAttr("softcap", 0);
  if (n.version >= 25) {
    attention.left = n.intAttr("left_window_size", -1);
    attention.right = n.intAttr("right_window_size", -1);
  }
  n.ignoreAttr("qk_matmul_output_mode"); // of result 3 only
  n.ignoreAttr("softmax_precision");     // nn's is at least f32

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
  if (Value pastKey = n.operand(4)) {
    if (!n.operand(5))
      return n.error() << "expected operand #5 ('past_value') beside operand "
                          "#4, found none";
    if (Importer::rank(pastKey) != 4 || Importer::rank(n.operand(5)) != 4)
      return n.error() << "expected past keys and values of rank 4, found "
                       << pastKey.getType() << " and "
                       << n.operand(5).getType();
    if (n.operand(6))
      return n.error() << "expected lengths of keys or past keys, found both";
    attention.past = Importer::shape(pastKey)[2];
    key = n.concat({pastKey, key}, 2);
    value = n.concat({n.operand(5), value}, 2);
  }
  if (!key || !value)
    return failure();
  n.setResult(1, key);
  n.setResult(2, value);
  attention.query = query;
  attention.key = key;
  attention.value = value;
  attention.scale = n.floatAttr("scale", 0);
  if (!n.hasAttribute("scale"))
    attention.scale = 1 / std::sqrt(double(Importer::shape(query)[3]));
  if (n.operand(3))
    attention.mask = widenMask(n, n.operand(3), attention.keys());
  if (Value lengths = n.operand(6)) {
    if (Importer::shape(lengths) != ArrayRef<int64_t>(batch))
      return n.error() << "expected a length of keys for each of " << batch
                       << " samples, found " << lengths.getType();
    attention.lengths = n.reshape(n.cast(lengths, n.graph.builder.getI64Type()),
                                  {batch, 1, 1, 1});
  }
  if (n.hasFailed())
    return failure();
  bool isPlain =
      attention.softcap == 0 && !attention.lengths && !n.wantsResult(3);
  Value result = isPlain ? makeAttention(n, attention) : writeOut(n, attention);
  if (result && flat) {
    ArrayRef<int64_t> shape = Importer::shape(result);
    result = n.reshape(n.transpose(result, {0, 2, 1, 3}),
                       {shape[0], shape[2], shape[1] * shape[3]});
  }
  return n.finish(result);
}

ArrayRef<OpRow> accel::import::attentionOps() {
  static const OpRow rows[] = {
      {"", "Attention", 23, 3, 6, importAttention},
      {"", "Attention", 24, 3, 7, importAttention},
  };
  return rows;
}
