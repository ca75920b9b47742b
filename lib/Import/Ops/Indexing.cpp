// Import of operators that pick elements by index, or by place in a triangle.

#include "lib/Import/IndexTuples.h"
#include "lib/Import/Kinks.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// Operand 1 of a gather: integers, or an error.
static bool hasIndices(Importer &n) {
  if (n.graph.choices.isSize(n.operand(1))) {
    n.error() << "expected indices, found the number of elements that NonZero "
                 "chooses at run time";
    return false;
  }
  if (!Importer::isFloat(n.operand(1)))
    return true;
  n.error() << "expected integer indices, found " << n.operand(1).getType();
  return false;
}

/// Rows that are picked group by group (`r[torch.arange(0, n, 2)]`, neighbours
/// swapped) as a view, of which some are picked, as of slices by steps: it can
/// be split between groups. Null if they are not.
static Value importGroups(Importer &n, Value table, int64_t dim,
                          DenseElementsAttr known,
                          ArrayRef<int64_t> indicesShape) {
  ArrayRef<int64_t> shape = Importer::shape(table);
  bool isOfFeatures = dim > 0 && dim + 1 == Importer::rank(table);
  std::optional<Groups> groups =
      known && !isOfFeatures && !Importer::constantOf(table)
          ? findGroups(integerElements(known), shape[dim])
          : std::nullopt;
  if (!groups)
    return nullptr;
  SmallVector<int64_t> apart(shape.take_front(dim)), whole(apart);
  apart.append({shape[dim] / groups->size, groups->size});
  llvm::append_range(whole, indicesShape);
  for (auto *list : {&apart, &whole})
    llvm::append_range(*list, shape.drop_front(dim + 1));
  Value all = n.reshape(table, apart);
  SmallVector<Value> picked;
  for (int64_t place : groups->picked)
    picked.push_back(n.slice(all, dim + 1, place, 1));
  return n.reshape(picked.size() == 1 ? picked[0] : n.concat(picked, dim + 1),
                   whole);
}

/// What exporters make of repeat_interleave and of tiles, as a broadcast: which
/// rows it gives does not depend on where they are, so that it can be sharded
/// and split over micro-batches. Null if it is not that.
static Value importRepeats(Importer &n, Value table, int64_t dim,
                           DenseElementsAttr known,
                           ArrayRef<int64_t> indicesShape) {
  ArrayRef<int64_t> shape = Importer::shape(table);
  std::optional<Repeats> repeats = findRepeats(known, shape[dim]);
  if (!repeats || Importer::constantOf(table))
    return importGroups(n, table, dim, known, indicesShape);
  SmallVector<int64_t> before(shape.take_front(dim)),
      behind(shape.drop_front(dim + 1)), narrow(before), wide(before),
      whole(before);
  narrow.append({1, shape[dim], 1});
  wide.append({repeats->rounds, shape[dim], repeats->each});
  llvm::append_range(whole, indicesShape);
  for (auto *list : {&narrow, &wide, &whole})
    llvm::append_range(*list, behind);
  return n.reshape(n.broadcast(n.reshape(table, narrow), wide), whole);
}

/// Whether indices name each place of a dimension of `size`, one after another.
static bool countsUp(DenseElementsAttr known, int64_t size) {
  if (!known || known.getNumElements() != size)
    return false;
  int64_t expected = 0;
  return llvm::all_of(integerElements(known),
                      [&](int64_t index) { return index == expected++; });
}

/// What is gathered at places known now says nothing of the indices any more;
/// where these are of a choice, so is it.
static Value keepChoice(Importer &n, Value gathered, Value indices,
                        int64_t before) {
  auto chosen = n.graph.choices.find(indices);
  if (!chosen || !gathered)
    return gathered;
  Value own = n.copy(gathered); // it may be the table itself
  n.graph.choices.enter(own, {chosen->number, before + chosen->dim});
  return own;
}

/// One index known now is a slice, which needs no table of indices at run time
/// and can be sharded like one.
static LogicalResult importGather(Importer &n) {
  Value table = n.operand(0), indices = n.operand(1);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", 0), Importer::rank(table));
  if (n.hasFailed() || !hasIndices(n))
    return failure();
  indices = n.graph.choices.makeSafe(n, indices, Importer::shape(table)[dim]);
  // PyTorch's embedding knows no ids from the end.
  bool embedding = isTracedAs(n.node, "embedding");
  std::optional<int64_t> padding;
  if (n.graph.options.forTraining)
    padding = onnxio::getPaddingIndex(n.node);
  DenseElementsAttr known = Importer::constantOf(indices);
  if (known && known.getNumElements() == 1 &&
      n.graph.choices.findGrouped(table) == dim) {
    SmallVector<int64_t> shape(Importer::shape(table).take_front(dim));
    llvm::append_range(shape, Importer::shape(indices));
    llvm::append_range(shape, Importer::shape(table).drop_front(dim + 1));
    Value picked =
        n.graph.choices.takeOfEach(n, table, integerElements(known)[0]);
    return n.finish(n.reshape(picked, shape));
  }
  // A slice would train the row of the padding.
  if (known && known.getNumElements() == 1 && !Importer::constantOf(table) &&
      integerElements(known)[0] != padding) {
    int64_t size = Importer::shape(table)[dim];
    int64_t index = integerElements(known)[0];
    int64_t least = embedding ? 0 : -size;
    if (index < least || index >= size)
      return n.error() << "expected an index in [" << least << ", " << size
                       << "), found " << index;
    SmallVector<int64_t> shape(Importer::shape(table).take_front(dim));
    llvm::append_range(shape, Importer::shape(indices));
    llvm::append_range(shape, Importer::shape(table).drop_front(dim + 1));
    return n.finish(keepChoice(
        n,
        n.reshape(n.slice(table, dim, index < 0 ? index + size : index, 1),
                  shape),
        indices, dim));
  }
  if (!padding && !n.graph.choices.find(table)) {
    Value repeated =
        importRepeats(n, table, dim, known, Importer::shape(indices));
    if (countsUp(known, Importer::shape(table)[dim])) {
      SmallVector<int64_t> shape(Importer::shape(table).take_front(dim));
      llvm::append_range(shape, Importer::shape(indices));
      llvm::append_range(shape, Importer::shape(table).drop_front(dim + 1));
      repeated = n.reshape(table, shape);
    }
    if (repeated)
      return n.finish(keepChoice(n, repeated, indices, dim));
  }
  SmallVector<NamedAttribute> attributes{n.named("dim", dim)};
  if (embedding)
    attributes.push_back(n.unit("non_negative"));
  if (padding)
    attributes.push_back(n.named("padding_index", *padding));
  return n.finish(n.create<nn::GatherOp>({table, indices}, attributes));
}

/// Whether index tuples, known now, name all places of the table's first
/// dimensions in their order: what exporters make of `mask[batch, position]`
/// with both counted up.
static bool enumeratesPlaces(Value table, DenseElementsAttr tuples,
                             int64_t batchDims) {
  if (!tuples || tuples.getType().getRank() == 0 || batchDims != 0)
    return false;
  int64_t width = tuples.getType().getShape().back();
  if (width < 1 || width > Importer::rank(table))
    return false;
  ArrayRef<int64_t> shape = Importer::shape(table).take_front(width);
  if (tuples.getNumElements() != ShapedType::getNumElements(shape) * width)
    return false;
  int64_t expected = 0, dim = 0, place = 0;
  for (int64_t index : integerElements(tuples)) {
    if (index < -shape[dim] || index >= shape[dim])
      return false;
    place = place * shape[dim] + (index < 0 ? index + shape[dim] : index);
    if (++dim < width)
      continue;
    if (place != expected++)
      return false;
    dim = place = 0;
  }
  return true;
}

/// result[i…, k…] = table[tuples[i…], k…], both behind as many batches.
static Value gatherTuples(Importer &n, Value table, Value tuples,
                          int64_t batchDims) {
  if (n.graph.choices.find(tuples) &&
      Importer::shape(tuples).back() + batchDims <= Importer::rank(table))
    tuples = n.graph.choices.makeSafe(
        n, tuples,
        Importer::shape(table).slice(batchDims,
                                     Importer::shape(tuples).back()));
  bool isChosen = n.graph.choices.find(table).has_value();
  if (!isChosen &&
      enumeratesPlaces(table, Importer::constantOf(tuples), batchDims)) {
    SmallVector<int64_t> shape(Importer::shape(tuples).drop_back());
    llvm::append_range(shape, Importer::shape(table).drop_front(
                                  Importer::shape(tuples).back()));
    return keepChoice(n, n.reshape(table, shape), tuples, 0);
  }
  if (!isChosen && batchDims == 0 && Importer::rank(table) > 0 &&
      Importer::rank(tuples) > 0 && Importer::shape(tuples).back() == 1)
    if (Value repeated =
            importRepeats(n, table, 0, Importer::constantOf(tuples),
                          Importer::shape(tuples).drop_back()))
      return keepChoice(n, repeated, tuples, 0);
  dropCountedColumns(n, table, tuples, batchDims);
  return n.create<nn::GatherNdOp>({table, tuples},
                                  n.named("batch_dims", batchDims));
}

static LogicalResult importGatherNd(Importer &n) {
  Value table = n.operand(0), tuples = n.operand(1);
  if (!hasIndices(n))
    return failure();
  int64_t batchDims = n.intAttr("batch_dims", 0);
  int64_t least = std::min(Importer::rank(table), Importer::rank(tuples));
  if (batchDims < 0 || batchDims >= std::max<int64_t>(least, 1))
    return n.error() << "expected 'batch_dims' in [0, " << least
                     << "), the least rank, found " << batchDims;
  ArrayRef<int64_t> shape = Importer::shape(table);
  Value rows =
      batchDims == 0 ? n.graph.choices.findRows(n, tuples, shape) : Value();
  if (!rows)
    return n.finish(gatherTuples(n, table, tuples, batchDims));
  SmallVector<int64_t> flat(Importer::shape(tuples).drop_back());
  llvm::append_range(flat, shape.drop_front(Importer::shape(tuples).back()));
  return n.finish(n.reshape(gatherTuples(n, table, rows, 0), flat));
}

/// result[i…, j, k…] = table[i…, indices[i…, j, k…], k…]: one index tuple for
/// each element of a batch of lines.
static LogicalResult importGatherElements(Importer &n) {
  Value table = n.operand(0), indices = n.operand(1);
  int64_t rank = Importer::rank(table);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), rank);
  if (n.hasFailed() || !hasIndices(n))
    return failure();
  if (Importer::rank(indices) != rank)
    return n.error() << "expected indices of rank " << rank << ", found "
                     << indices.getType();
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t wanted = Importer::shape(indices)[dim];
    if (dim == axis || wanted == Importer::shape(table)[dim])
      continue;
    if (wanted > Importer::shape(table)[dim])
      return n.error() << "expected indices within the table of type "
                       << table.getType() << " beside dimension " << axis
                       << ", found " << indices.getType();
    table = n.slice(table, dim, 0, wanted);
  }
  indices = n.graph.choices.makeSafe(n, indices, Importer::shape(table)[axis]);
  SmallVector<int64_t> last; // the axis last; its own inverse
  llvm::append_range(last, llvm::seq<int64_t>(rank));
  std::swap(last[axis], last.back());
  indices = n.transpose(indices, last);
  SmallVector<int64_t> tuples(Importer::shape(indices));
  tuples.push_back(1);
  Value picked = n.create<nn::GatherNdOp>(
      {n.transpose(table, last), n.reshape(indices, tuples)},
      n.named("batch_dims", rank - 1));
  return n.finish(n.transpose(picked, last));
}

static LogicalResult importTrilu(Importer &n) {
  Value x = n.operand(0);
  bool upper = n.intAttr("upper", 1);
  int64_t offset = n.operand(1) ? n.constantInt(1) : 0;
  if (Importer::rank(x) < 2)
    return n.error() << "expected a tensor of rank 2 or more, found "
                     << x.getType();
  ArrayRef<int64_t> matrix = Importer::shape(x).take_back(2);
  if (matrix[0] * matrix[1] > kMostMaskElements)
    return n.error() << "expected matrices of at most " << kMostMaskElements
                     << " elements, found " << x.getType();
  SmallVector<bool> keep;
  for (int64_t row = 0; row < matrix[0]; ++row)
    for (int64_t column = 0; column < matrix[1]; ++column)
      keep.push_back(upper ? column - row >= offset : column - row <= offset);
  Value mask = n.constant(DenseElementsAttr::get(
      RankedTensorType::get(matrix, n.graph.builder.getI1Type()), keep));
  return n.finish(n.select(mask, x, n.splatLike(x, 0)));
}

/// Whether it is of indices that count from 0 on, as top_k gives.
static bool isPlace(Value indices) {
  while (auto op = indices.getDefiningOp<nn::ReshapeOp>())
    indices = op.getInput();
  return indices.getDefiningOp<nn::TopKOp>() != nullptr;
}

/// on where the index equals the place along the new dimension, off elsewhere.
/// The places along an axis, or of all elements, where a mask that is known is
/// true; the mask may end before them.
static LogicalResult importCompress(Importer &n) {
  Value x = n.operand(0);
  DenseElementsAttr mask = Importer::constantOf(n.operand(1));
  if (!mask) {
    n.refuseComputed(1);
    return failure();
  }
  if (!n.hasAttribute("axis"))
    x = n.reshape(x, {ShapedType::getNumElements(Importer::shape(x))});
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), Importer::rank(x));
  if (n.hasFailed())
    return failure();
  if (mask.getType().getRank() != 1 || !mask.getElementType().isInteger(1) ||
      mask.getNumElements() > Importer::shape(x)[axis])
    return n.error() << "expected a mask of at most "
                     << Importer::shape(x)[axis] << " truth values, found "
                     << mask.getType();
  SmallVector<int64_t> places;
  for (auto [place, isTaken] : llvm::enumerate(mask.getValues<bool>()))
    if (isTaken)
      places.push_back(int64_t(place));
  int64_t count = places.size();
  return n.finish(
      n.create<nn::GatherOp>({x, n.ints(places, count)},
                             {n.named("dim", axis), n.unit("non_negative")}));
}

/// The number of classes, which may be a float, like indices.
static int64_t readDepth(Importer &n) {
  DenseElementsAttr known = Importer::constantOf(n.operand(1));
  if (!known || !isa<FloatType>(known.getElementType()) ||
      known.getNumElements() != 1)
    return n.constantInt(1);
  double depth = (*known.getValues<FloatAttr>().begin()).getValueAsDouble();
  return depth >= 0 && depth <= double(kMostMaskElements) ? int64_t(depth) : -1;
}

static LogicalResult importOneHot(Importer &n) {
  int64_t depth = readDepth(n);
  Value indices = n.operand(0), values = n.operand(2);
  int64_t rank = Importer::rank(indices) + 1;
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), rank);
  if (n.hasFailed())
    return failure();
  if (depth < 1 || depth > kMostMaskElements)
    return n.error() << "expected a depth in [1, " << kMostMaskElements
                     << "], found " << depth;
  if (Importer::rank(values) != 1 || Importer::shape(values)[0] != 2)
    return n.error() << "expected two values, found " << values.getType();
  SmallVector<int64_t> shape(Importer::shape(indices));
  shape.insert(shape.begin() + axis, 1);
  SmallVector<int64_t> line(rank, 1), places;
  line[axis] = depth;
  llvm::append_range(places, llvm::seq<int64_t>(depth));
  Value wide = n.cast(n.reshape(indices, shape), n.graph.builder.getI64Type());
  // An index in [-depth, -1] counts from the end.
  Value zero = n.splatLike(wide, 0), span = n.splatLike(wide, depth);
  Value index = isPlace(wide)
                    ? wide
                    : n.select(n.compare(nn::ComparePredicate::lt, wide, zero),
                               n.binary<nn::AddOp>(wide, span), wide);
  Value hit = n.compare(nn::ComparePredicate::eq, index, n.ints(places, line));
  return n.finish(n.select(hit, n.reshape(n.slice(values, 0, 1, 1), {}),
                           n.reshape(n.slice(values, 0, 0, 1), {})));
}

ArrayRef<OpRow> accel::import::indexingOps() {
  static const OpRow rows[] = {
      {"", "Gather", 1, 2, 2, importGather},
      {"", "GatherElements", 11, 2, 2, importGatherElements},
      {"", "GatherND", 11, 2, 2, importGatherNd},
      {"", "Compress", 9, 2, 2, importCompress},
      {"", "OneHot", 9, 3, 3, importOneHot},
      {"", "Trilu", 14, 1, 2, importTrilu},
  };
  return rows;
}
