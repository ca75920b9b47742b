// What index tuples say.

#include "IndexTuples.h"

#include "Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// Whether numbers, known now, count up along a dimension that they share with
/// the table: torch.arange beside other indices.
static bool countsAlong(Value column, int64_t dim, Value table) {
  DenseElementsAttr known = Importer::constantOf(column);
  if (!known || Importer::shape(column)[dim] != Importer::shape(table)[dim])
    return false;
  int64_t behind = 1;
  for (int64_t size : Importer::shape(column).drop_front(dim + 1))
    behind *= size;
  for (auto [place, index] : llvm::enumerate(integerElements(known)))
    if (index !=
        static_cast<int64_t>(place) / behind % Importer::shape(table)[dim])
      return false;
  return true;
}

void accel::import::dropCountedColumns(Importer &n, Value table, Value &tuples,
                                       int64_t &batchDims) {
  auto concat = tuples.getDefiningOp<nn::ConcatOp>();
  int64_t last = Importer::rank(tuples) - 1;
  if (!concat || concat.getDim() != static_cast<uint64_t>(last))
    return;
  SmallVector<Value> columns(concat.getInputs());
  size_t counted = 0;
  while (counted + 1 < columns.size() && batchDims < last &&
         batchDims < Importer::rank(table) &&
         Importer::shape(columns[counted])[last] == 1 &&
         countsAlong(columns[counted], batchDims, table)) {
    ++counted;
    ++batchDims;
  }
  if (counted == 0)
    return;
  columns.erase(columns.begin(), columns.begin() + counted);
  tuples = columns.size() == 1
               ? columns[0]
               : n.create<nn::ConcatOp>(columns, n.named("dim", last));
}

std::optional<int64_t> accel::import::countFromBegin(Importer &n, int64_t index,
                                                     int64_t size) {
  if (index >= -size && index < size)
    return index < 0 ? index + size : index;
  n.error() << "expected an index in [" << -size << ", " << size << "), found "
            << index;
  return std::nullopt;
}

/// Indices of a dimension of `size` as numbers from 0 on. What a gather picks
/// from a table of its own numbers is that, and it stops the run where an index
/// points nowhere.
static Value countEach(Importer &n, Value indices, int64_t size) {
  if (DenseElementsAttr known = Importer::constantOf(indices)) {
    SmallVector<int64_t> counted;
    for (int64_t index : integerElements(known)) {
      std::optional<int64_t> place = countFromBegin(n, index, size);
      if (!place)
        return nullptr;
      counted.push_back(*place);
    }
    return n.ints(counted, Importer::shape(indices));
  }
  return n.create<nn::GatherOp>({n.iota(size), indices},
                                n.named("dim", int64_t(0)));
}

Value accel::import::findPlaces(Importer &n, Value table, Value tuples,
                                int64_t batchDims) {
  int64_t last = Importer::rank(tuples) - 1;
  ArrayRef<int64_t> shape = Importer::shape(tuples).drop_back();
  Value place;
  for (int64_t part = 0; part < Importer::shape(tuples)[last]; ++part) {
    int64_t size = Importer::shape(table)[batchDims + part];
    Value index =
        countEach(n, n.reshape(n.slice(tuples, last, part, 1), shape), size);
    if (place)
      place = n.binary<nn::MulOp>(place, n.splatLike(place, size));
    place = place ? n.binary<nn::AddOp>(place, index) : index;
    if (n.hasFailed())
      return nullptr;
  }
  return place;
}

std::optional<Repeats> accel::import::findRepeats(DenseElementsAttr known,
                                                  int64_t size) {
  if (!known || size == 0 || known.getNumElements() <= size ||
      known.getNumElements() % size)
    return std::nullopt;
  SmallVector<int64_t> indices = integerElements(known);
  int64_t each = llvm::find_if(indices, [](int64_t i) { return i != 0; }) -
                 indices.begin();
  int64_t round = each * size;
  if (each == 0 || static_cast<int64_t>(indices.size()) % round)
    return std::nullopt;
  for (auto [place, index] : llvm::enumerate(indices))
    if (index != static_cast<int64_t>(place) / each % size)
      return std::nullopt;
  return Repeats{static_cast<int64_t>(indices.size()) / round, each};
}

/// Larger groups nobody means, nor so many of one.
static constexpr int64_t kLargestGroup = 64;

std::optional<Groups> accel::import::findGroups(ArrayRef<int64_t> indices,
                                                int64_t size) {
  int64_t count = indices.size();
  for (int64_t group = 2; group <= std::min(size / 2, kLargestGroup); ++group) {
    int64_t groups = size / group;
    if (size % group != 0 || count == 0 || count % groups != 0 ||
        count / groups > group)
      continue;
    ArrayRef<int64_t> picked = indices.take_front(count / groups);
    if (llvm::all_of(llvm::enumerate(indices), [&](auto each) {
          int64_t place = picked[each.index() % picked.size()];
          return place >= 0 && place < group &&
                 each.value() ==
                     static_cast<int64_t>(each.index() / picked.size()) *
                             group +
                         place;
        }))
      return Groups{group, SmallVector<int64_t>(picked)};
  }
  return std::nullopt;
}
