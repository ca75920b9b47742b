// Writes by index.

#include "Writes.h"

#include "IndexTuples.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

static int64_t countBatches(const Writes &writes) {
  return Importer::rank(writes.places) - 1;
}

/// `value` with `count` dimensions of 1 before dimension `at`.
static Value addOnes(Importer &n, Value value, int64_t at, int64_t count) {
  if (!value)
    return nullptr;
  SmallVector<int64_t> shape(Importer::shape(value));
  shape.insert(shape.begin() + at, count, 1);
  return n.reshape(value, shape);
}

static Value countUp(Importer &n, int64_t size) {
  return n.create<nn::IotaOp>(
      {}, n.named("dim", int64_t(0)),
      RankedTensorType::get(size, n.graph.builder.getI64Type()));
}

/// [c…, p, m]: whether update m goes to place p.
static Value findHits(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  int64_t size = Importer::shape(writes.table)[batches];
  return n.compare(nn::ComparePredicate::eq,
                   addOnes(n, writes.places, batches, 1),
                   addOnes(n, countUp(n, size), 1, 1));
}

Value accel::import::writeLast(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  int64_t rest = Importer::rank(writes.table) - batches - 1;
  // Which update wins a place, -1 where nobody wrote: that is the last one, and
  // is not looked at.
  Value numbers = countUp(n, Importer::shape(writes.updates)[batches]);
  Value winner =
      n.reduce(nn::ReductionKind::max,
               n.select(findHits(n, writes), numbers, n.splatLike(numbers, -1)),
               batches + 1, /*keepDims=*/false);
  Value isWritten =
      n.compare(nn::ComparePredicate::ge, winner, n.splatLike(winner, 0));
  Value picked = n.create<nn::GatherNdOp>(
      {writes.updates, addOnes(n, winner, batches + 1, 1)},
      n.named("batch_dims", batches));
  return n.select(addOnes(n, isWritten, batches + 1, rest), picked,
                  writes.table);
}

/// The sum of the updates of each place, where places known now are all of the
/// table's, as often each (what index_add makes of choices that were repeated):
/// a reduction, that ranks and micro-batches can split. Null if they are not.
static Value sumRepeats(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  ArrayRef<int64_t> table = Importer::shape(writes.table);
  int64_t lines = ShapedType::getNumElements(table.take_front(batches));
  std::optional<Repeats> repeats =
      findRepeats(Importer::constantOf(writes.places), table[batches]);
  if (!repeats || repeats->rounds % lines != 0)
    return nullptr;
  SmallVector<int64_t> apart(table.take_front(batches));
  apart.append({repeats->rounds / lines, table[batches], repeats->each});
  llvm::append_range(apart, table.drop_front(batches + 1));
  return n.reduce(nn::ReductionKind::sum, n.reshape(writes.updates, apart),
                  {batches, batches + 2}, /*keepDims=*/false);
}

Value accel::import::writeSums(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  if (Value sums = sumRepeats(n, writes))
    return n.binary<nn::AddOp>(writes.table, sums);
  return n.create<nn::ScatterAddOp>(
      {writes.table, writes.places, writes.updates},
      {n.named("dim", batches), n.named("batch_dims", batches)});
}

/// A scalar that leaves any element that it is combined with as it is.
static Value getNeutral(Importer &n, nn::ReductionKind kind, Type element) {
  if (kind == nn::ReductionKind::prod)
    return n.splat({}, element, 1);
  bool least = kind == nn::ReductionKind::max;
  auto type = RankedTensorType::get({}, element);
  if (auto number = dyn_cast<FloatType>(element))
    return n.constant(DenseElementsAttr::get(
        type, APFloat::getInf(number.getFloatSemantics(), least)));
  unsigned width = element.getIntOrFloatBitWidth();
  if (element.isUnsignedInteger())
    return n.constant(DenseElementsAttr::get(
        type, least ? APInt::getMinValue(width) : APInt::getMaxValue(width)));
  return n.constant(
      DenseElementsAttr::get(type, least ? APInt::getSignedMinValue(width)
                                         : APInt::getSignedMaxValue(width)));
}

Value accel::import::writeReduced(Importer &n, const Writes &writes,
                                  nn::ReductionKind kind) {
  int64_t batches = countBatches(writes);
  int64_t rest = Importer::rank(writes.table) - batches - 1;
  Value hits = addOnes(n, findHits(n, writes), batches + 2, rest);
  Value updates = addOnes(n, writes.updates, batches, 1);
  Value each =
      n.select(hits, updates, getNeutral(n, kind, Importer::element(updates)));
  // One more update of every place is what the table has there.
  Value all =
      n.concat({addOnes(n, writes.table, batches + 1, 1), each}, batches + 1);
  return n.reduce(kind, all, batches + 1, /*keepDims=*/false);
}
