// Writes by index.

#include "Writes.h"

#include "IndexTuples.h"
#include "Tensors.h"
#include "lib/Transforms/FoldConstants.h"

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

/// [c…, p, m]: whether update m goes to place p.
static Value findHits(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  int64_t size = Importer::shape(writes.table)[batches];
  Value hits =
      n.compare(nn::ComparePredicate::eq, addOnes(n, writes.places, batches, 1),
                addOnes(n, n.iota(size), 1, 1));
  return writes.chosen
             ? n.binary<nn::AndOp>(hits, addOnes(n, writes.chosen, batches, 1))
             : hits;
}

/// The sum of the updates of each place, where places known now are all of the
/// table's, as often each (what index_add makes of choices that were repeated):
/// a reduction, that ranks and micro-batches can split. Null if they are not.
static Value sumRepeats(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  ArrayRef<int64_t> table = Importer::shape(writes.table);
  int64_t lines = ShapedType::getNumElements(table.take_front(batches));
  DenseElementsAttr known = Importer::constantOf(writes.places);
  // Of each place one.
  if (known && known.getNumElements() == lines * table[batches]) {
    int64_t at = 0;
    if (llvm::all_of(integerElements(known), [&](int64_t place) {
          return place == at++ % table[batches];
        }))
      return n.reshape(writes.updates, table);
  }
  std::optional<Repeats> repeats = findRepeats(known, table[batches]);
  if (!repeats || repeats->rounds % lines != 0)
    return nullptr;
  SmallVector<int64_t> apart(table.take_front(batches));
  apart.append({repeats->rounds / lines, table[batches], repeats->each});
  llvm::append_range(apart, table.drop_front(batches + 1));
  return n.reduce(nn::ReductionKind::sum, n.reshape(writes.updates, apart),
                  {batches, batches + 2}, /*keepDims=*/false);
}

Value accel::import::writeSums(Importer &n, const Writes &all) {
  Writes writes = all;
  int64_t batches = countBatches(writes);
  if (writes.chosen) {
    int64_t rest = Importer::rank(writes.table) - batches - 1;
    writes.updates = n.select(addOnes(n, writes.chosen, batches + 1, rest),
                              writes.updates, n.splatLike(writes.updates, 0));
    if (!writes.updates)
      return nullptr;
  }
  if (Value sums = sumRepeats(n, writes))
    return n.binary<nn::AddOp>(writes.table, sums);
  return n.create<nn::ScatterAddOp>(
      {writes.table, writes.places, writes.updates},
      {n.named("dim", batches), n.named("batch_dims", batches)});
}

/// Whether no two updates of a batch can go to one place.
static bool namesPlacesOnce(const Writes &writes) {
  DenseElementsAttr known = Importer::constantOf(writes.places);
  if (!known)
    return false;
  int64_t line = known.getType().getShape().back();
  llvm::SmallDenseSet<int64_t> seen;
  for (auto [number, place] : llvm::enumerate(integerElements(known))) {
    if (number % line == 0)
      seen.clear();
    if (!seen.insert(place).second)
      return false;
  }
  return true;
}

/// Of updates of which some are chosen, of one place one at most: it is their
/// sum.
static Value writeChosen(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  Writes alone = writes;
  alone.table = n.splatLike(writes.table, 0);
  Value sums = writeSums(n, alone);
  if (std::optional<double> known = transforms::getSplatValue(writes.table);
      known && *known == 0)
    return sums;
  Type count = n.graph.builder.getI64Type();
  ArrayRef<int64_t> places =
      Importer::shape(writes.table).take_front(batches + 1);
  Value writers = writeSums(n, {n.splat(places, count, 0), writes.places,
                                n.cast(writes.chosen, count)});
  Value isWritten =
      n.compare(nn::ComparePredicate::gt, writers, n.splatLike(writers, 0));
  int64_t rest = Importer::rank(writes.table) - batches - 1;
  return n.select(addOnes(n, isWritten, batches + 1, rest), sums, writes.table);
}

Value accel::import::writeLast(Importer &n, const Writes &writes) {
  int64_t batches = countBatches(writes);
  int64_t rest = Importer::rank(writes.table) - batches - 1;
  if (writes.chosen && !Importer::element(writes.table).isInteger(1) &&
      (writes.isSum || namesPlacesOnce(writes)))
    return writeChosen(n, writes);
  // Which update wins a place, -1 where nobody wrote: that is the last one, and
  // is not looked at.
  Value numbers = n.iota(Importer::shape(writes.updates)[batches]);
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

Value accel::import::writeReduced(Importer &n, const Writes &writes,
                                  nn::ReductionKind kind) {
  int64_t batches = countBatches(writes);
  int64_t rest = Importer::rank(writes.table) - batches - 1;
  Value hits = addOnes(n, findHits(n, writes), batches + 2, rest);
  Value updates = addOnes(n, writes.updates, batches, 1);
  Value each =
      n.select(hits, updates, n.getNeutral(kind, Importer::element(updates)));
  // One more update of every place is what the table has there.
  Value all =
      n.concat({addOnes(n, writes.table, batches + 1, 1), each}, batches + 1);
  return n.reduce(kind, all, batches + 1, /*keepDims=*/false);
}
