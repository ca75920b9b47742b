// Import of TensorScatter and ReverseSequence: places of each sample picked by
// an index of its own.

#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;
using P = nn::ComparePredicate;

/// What stands at index[b, s] along `axis` of each place b along `batchAxis`:
/// of the index's size along `axis`. An index must be of a place.
static Value pick(Importer &n, Value x, int64_t batchAxis, int64_t axis,
                  Value index) {
  if (n.hasFailed())
    return nullptr;
  ArrayRef<int64_t> shape = Importer::shape(x);
  int64_t rank = shape.size(), batch = shape[batchAxis], size = shape[axis];
  SmallVector<int64_t> order{batchAxis, axis}, back(rank), rows{batch * size};
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != axis && dim != batchAxis) {
      order.push_back(dim);
      rows.push_back(shape[dim]);
    }
  for (auto [to, dim] : llvm::enumerate(order))
    back[dim] = to;
  Value first = n.binary<nn::MulOp>(
      n.reshape(n.iota(batch), {batch, 1}),
      n.splat({}, n.graph.builder.getI64Type(), double(size)));
  Value table = n.reshape(n.transpose(x, order), rows);
  Value read = n.create<nn::GatherOp>(
      {table, n.binary<nn::AddOp>(index, first)}, n.named("dim", int64_t(0)));
  return n.transpose(read, back);
}

/// The cache [B, …, S, …] with the update [B, …, T, …] from each sample's place
/// along the axis on, with `mode` circular at the front again behind the last:
/// place s has what stands s - start behind the update's first.
static LogicalResult importTensorScatter(Importer &n) {
  Value cache = n.operand(0), update = n.operand(1), starts = n.operand(2);
  std::string mode = n.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.error() << "expected 'mode' to be linear or circular, found '"
                     << mode << "'";
  int64_t rank = Importer::rank(cache),
          axis = n.normalizeAxis(n.intAttr("axis", -2), rank);
  if (n.hasFailed())
    return failure();
  SmallVector<int64_t> shape(Importer::shape(cache));
  SmallVector<int64_t> written(Importer::shape(update));
  SmallVector<int64_t> others(written);
  if (int64_t(others.size()) == rank)
    others[axis] = shape[axis];
  if (axis == 0 || others != shape || written[axis] < 1 ||
      written[axis] > shape[axis])
    return n.error() << "expected an update of the cache's shape but for fewer "
                        "places along an axis other than 0, found "
                     << update.getType() << " for " << cache.getType();
  Type index = n.graph.builder.getI64Type();
  int64_t batch = shape[0], size = shape[axis], count = written[axis];
  if (!starts)
    starts = n.splat({batch}, index, 0);
  if (Importer::shape(starts) != ArrayRef<int64_t>(batch))
    return n.error() << "expected a place for each of " << batch
                     << " samples, found " << starts.getType();
  Value behind =
      n.binary<nn::SubOp>(n.reshape(n.iota(size), {1, size}),
                          n.reshape(n.cast(starts, index), {batch, 1}));
  if (mode == "circular")
    behind = n.binary<nn::ModOp>(behind, n.splatLike(behind, size));
  Value last = n.splatLike(behind, count - 1), zero = n.splatLike(behind, 0);
  Value isWritten = n.binary<nn::AndOp>(n.compare(P::ge, behind, zero),
                                        n.compare(P::le, behind, last));
  // Others are read for nothing.
  Value from = n.binary<nn::MaxOp>(n.binary<nn::MinOp>(behind, last), zero);
  Value read = pick(n, update, 0, axis, from);
  SmallVector<int64_t> wide(rank, 1);
  wide[0] = batch;
  wide[axis] = size;
  return n.finish(n.select(n.reshape(isWritten, wide), read, cache));
}

/// The first `length` places of each sample along the time in reverse order,
/// the others as they are.
static LogicalResult importReverseSequence(Importer &n) {
  Value x = n.operand(0);
  int64_t rank = Importer::rank(x),
          batchAxis = n.normalizeAxis(n.intAttr("batch_axis", 1), rank),
          axis = n.normalizeAxis(n.intAttr("time_axis", 0), rank);
  if (n.hasFailed())
    return failure();
  int64_t batch = Importer::shape(x)[batchAxis],
          size = Importer::shape(x)[axis];
  if (axis == batchAxis ||
      Importer::shape(n.operand(1)) != ArrayRef<int64_t>(batch))
    return n.error() << "expected two axes, and a length for each of " << batch
                     << " samples, found " << n.operand(1).getType();
  Value lengths =
      n.reshape(n.cast(n.operand(1), n.graph.builder.getI64Type()), {batch, 1});
  Value place = n.reshape(n.iota(size), {1, size});
  Value last = n.binary<nn::SubOp>(lengths, n.splatLike(lengths, 1));
  Value turned = n.select(n.compare(P::lt, place, lengths),
                          n.binary<nn::SubOp>(last, place), place);
  return n.finish(pick(n, x, batchAxis, axis, turned));
}

ArrayRef<OpRow> accel::import::perSampleOps() {
  static const OpRow rows[] = {
      {"", "ReverseSequence", 10, 2, 2, importReverseSequence},
      {"", "TensorScatter", 24, 2, 3, importTensorScatter},
  };
  return rows;
}
