// Import of the RotaryEmbedding operator of opset 23.

#include "lib/Import/Heads.h"
#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

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

ArrayRef<OpRow> accel::import::rotaryOps() {
  static const OpRow rows[] = {
      {"", "RotaryEmbedding", 23, 3, 4, importRotaryEmbedding},
  };
  return rows;
}
