// Choices that are made of another one: its rows flattened, or the first of
// what it chooses; and elements that are given to what is chosen, in turn.

#include "Choices.h"

#include "NodeImporter.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// The indices of all elements of a shape, a column each, `order` from major to
/// minor.
static Value listIndices(Importer &n, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> order) {
  int64_t count = ShapedType::getNumElements(shape), behind = count;
  SmallVector<int64_t> indices(shape.size() * count);
  for (int64_t dim : order) {
    behind = behind / shape[dim];
    for (int64_t place = 0; place < count; ++place)
      indices[dim * count + place] = place / behind % shape[dim];
  }
  return n.ints(indices, {static_cast<int64_t>(shape.size()), count});
}

static SmallVector<int64_t> countUpTo(int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(end));
}

Value Choices::listPlaces(Importer &n, unsigned number,
                          ArrayRef<int64_t> shape) {
  // A chooser of another shape has its elements in the same order.
  return ArrayRef(all[number].shape) == shape
             ? listIndices(n, shape, all[number].order)
             : listIndices(n, shape, countUpTo(shape.size()));
}

Value Choices::listRowPlaces(Importer &n, unsigned number,
                             ArrayRef<int64_t> shape, size_t numOuter) {
  size_t rank = shape.size();
  ArrayRef<int64_t> row = shape.drop_front(numOuter);
  int64_t rows = ShapedType::getNumElements(all[number].shape),
          width = ShapedType::getNumElements(row);
  Value outer = listPlaces(n, number, shape.take_front(numOuter)),
        inner = listIndices(n, row, countUpTo(row.size()));
  if (!inner || !outer)
    return nullptr;
  // As they are: folded they would be as long as what they point into.
  OpBuilder &b = n.graph.builder;
  Type integer = b.getI64Type();
  auto repeat = [&](Value columns, int64_t count, ArrayRef<int64_t> narrow) {
    Value apart = n.reshape(columns, narrow);
    return nn::BroadcastOp::create(
        b, n.loc, RankedTensorType::get({count, rows, width}, integer), apart);
  };
  int64_t numInner = rank - numOuter;
  Value both = nn::ConcatOp::create(
      b, n.loc, RankedTensorType::get({int64_t(rank), rows, width}, integer),
      ValueRange{repeat(outer, numOuter, {int64_t(numOuter), rows, 1}),
                 repeat(inner, numInner, {numInner, 1, width})},
      /*dim=*/0);
  Value places = nn::ReshapeOp::create(
      b, n.loc, RankedTensorType::get({int64_t(rank), rows * width}, integer),
      both);
  mark(places, {flatten(n, number, width), 1});
  rowPlaces[places] = {SmallVector<int64_t>(shape), numOuter};
  return places;
}

Value Choices::findRows(Importer &n, Value tuples, ArrayRef<int64_t> shape) {
  auto transpose = tuples.getDefiningOp<nn::TransposeOp>();
  auto made = rowPlaces.find(transpose ? transpose.getInput() : tuples);
  std::optional<Chosen> chosen = find(tuples);
  if (!transpose || made == rowPlaces.end() || !chosen ||
      !all[chosen->number].base)
    return nullptr;
  auto &[of, numOuter] = made->second;
  if (shape.take_front(of.size()) != ArrayRef(of))
    return nullptr;
  unsigned rows = *all[chosen->number].base;
  Value found =
      n.transpose(listPlaces(n, rows, shape.take_front(numOuter)), {1, 0});
  if (found)
    mark(found, {rows, 0});
  return found;
}

unsigned Choices::flatten(Importer &n, unsigned number, int64_t factor) {
  if (factor == 1)
    return number;
  if (all[number].base)
    return flatten(n, *all[number].base, all[number].factor * factor);
  for (auto [known, choice] : llvm::enumerate(all))
    if (choice.base == number && choice.factor == factor)
      return known;
  Choice rows = all[number];
  Suspension suspension(*this);
  int64_t places = Importer::shape(rows.mask).front();
  Choice made;
  made.mask = n.reshape(
      n.broadcast(n.reshape(rows.mask, {places, 1}), {places, factor}),
      places * factor);
  made.shape = rows.shape;
  made.shape.push_back(factor);
  made.order = rows.order;
  made.order.push_back(rows.shape.size());
  made.base = number;
  made.factor = factor;
  return add(std::move(made));
}

/// Element i of the result is element order[i].
static SmallVector<int64_t> pick(ArrayRef<int64_t> from,
                                 ArrayRef<int64_t> order) {
  return llvm::map_to_vector(order, [&](int64_t i) { return from[i]; });
}

Value Choices::sortPlaces(Importer &n, Value value, Chosen chosen) {
  const Choice &choice = all[chosen.number];
  if (!value || llvm::is_sorted(choice.order))
    return value;
  SmallVector<int64_t> shape(Importer::shape(value)), apart(shape);
  SmallVector<int64_t> permutation = llvm::to_vector(
      llvm::seq<int64_t>(shape.size() + choice.order.size() - 1));
  apart.erase(apart.begin() + chosen.dim);
  SmallVector<int64_t> places = pick(choice.shape, choice.order);
  apart.insert(apart.begin() + chosen.dim, places.begin(), places.end());
  for (auto [place, dim] : llvm::enumerate(choice.order))
    permutation[chosen.dim + dim] = chosen.dim + place;
  return n.reshape(n.transpose(n.reshape(value, apart), permutation), shape);
}

Value Choices::countBefore(Importer &n, unsigned number) {
  Choice choice = all[number];
  Suspension suspension(*this);
  Type integer = n.graph.builder.getI64Type();
  ArrayRef<int64_t> shape = choice.shape;
  int64_t places = ShapedType::getNumElements(shape);
  Value line = sortPlaces(n, choice.mask, {number, 0});
  line = n.create<nn::CumsumOp>(
      n.cast(line, integer), {n.named("dim", int64_t(0)), n.unit("exclusive")});
  return n.reshape(n.transpose(n.reshape(line, shape), choice.order), places);
}

unsigned Choices::takeRange(Importer &n, unsigned number, int64_t first,
                            int64_t last) {
  last = std::min(last, Importer::shape(all[number].mask).front());
  std::array<int64_t, 3> range{number, first, last};
  for (auto [known, choice] : llvm::enumerate(all))
    if (choice.range == range)
      return known;
  Choice made = all[number];
  Value before = countBefore(n, number);
  Suspension suspension(*this);
  auto keep = [&](nn::ComparePredicate predicate, int64_t bound) {
    made.mask = n.binary<nn::AndOp>(
        made.mask, n.compare(predicate, before, n.splatLike(before, bound)));
  };
  if (first > 0)
    keep(nn::ComparePredicate::ge, first);
  if (last < Importer::shape(before).front())
    keep(nn::ComparePredicate::lt, last);
  made.chooser = nullptr;
  made.base = std::nullopt;
  made.factor = 1;
  made.range = range;
  return add(std::move(made));
}

Value Choices::giveInTurn(Importer &n, Value value, int64_t dim,
                          unsigned number, bool exactly) {
  unsigned rows = all[number].base.value_or(number);
  int64_t factor = all[number].factor;
  SmallVector<int64_t> shape(Importer::shape(value)), apart(shape);
  int64_t length = shape[dim] / factor;
  value = n.slice(value, dim, 0, length * factor);
  apart[dim] = length;
  if (factor > 1)
    apart.insert(apart.begin() + dim + 1, factor);
  // A copy, since what counts is of no choice.
  Value index = n.copy(countBefore(n, rows));
  if (!index)
    return nullptr;
  if (exactly) {
    // Behind the last one, and so the run stops, unless all are given.
    Suspension suspension(*this);
    Type integer = Importer::element(index);
    Value chosen = count(n, {rows, 0}, integer);
    Value isGiven = n.compare(nn::ComparePredicate::eq, chosen,
                              n.splat({}, integer, length));
    Value safe = n.select(all[rows].mask, index, n.splatLike(index, 0));
    index = n.select(isGiven, safe, n.splatLike(index, length));
    safeIndices.insert(index);
  }
  if (!index)
    return nullptr;
  mark(index, {rows, 0});
  Value taken = n.create<nn::GatherOp>({n.reshape(value, apart), index},
                                       {n.named("dim", dim)});
  shape[dim] = Importer::shape(all[number].mask).front();
  return n.reshape(taken, shape);
}

Value Choices::takeFirst(Importer &n, Value value, int64_t dim,
                         unsigned number) {
  std::optional<Chosen> own = find(value);
  if (own && own->number == number && own->dim == dim)
    return value;
  if (own || Importer::shape(value)[dim] < all[number].factor) {
    n.error() << "expected to take as many elements as NonZero chooses at run "
                 "time of a dimension that has them, found "
              << value.getType();
    return nullptr;
  }
  return giveInTurn(n, value, dim, number, /*exactly=*/false);
}

Value Choices::meet(Importer &n, Value value, int64_t dim, unsigned number) {
  if (!value || dim < 0 || find(value))
    return value;
  int64_t size = Importer::shape(value)[dim],
          places = Importer::shape(all[number].mask).front(),
          factor = all[number].factor;
  if (size == 1 || (size == places && isUniform(value, dim)))
    return value;
  if (size == 0 || size > places || size % factor != 0) {
    n.error() << "expected one element for each that NonZero chooses at run "
                 "time, which are "
              << (factor > 1 ? "a multiple of " : "") << factor << " to "
              << places << ", found " << size << " in dimension #" << dim
              << " of " << value.getType();
    return nullptr;
  }
  return giveInTurn(n, value, dim, number, /*exactly=*/true);
}
