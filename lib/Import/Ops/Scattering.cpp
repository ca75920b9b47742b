// Import of operators that write elements by index. What exporters make of
// `x[:, 1:] = y` names a box of the table, element by element and known now:
// that is what lies around the box, and what is written, joined. All else is
// lines of places, one for each batch of the table (lib/Import/Writes.h).

#include "lib/Import/IndexTuples.h"
#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"
#include "lib/Import/Writes.h"
#include "lib/Transforms/FoldConstants.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// The elements from `starts` on, `sizes` of them, of a tensor.
struct Box {
  SmallVector<int64_t> starts, sizes;
};
} // namespace

/// The box whose elements, in its order, are those at `places` (positions in
/// row-major order of a tensor of `shape`, at least one); none if they are no
/// box's.
static std::optional<Box> findBox(ArrayRef<int64_t> places,
                                  ArrayRef<int64_t> shape) {
  Box box;
  auto [least, most] = std::minmax_element(places.begin(), places.end());
  int64_t first = *least, last = *most, stride = 1;
  for (int64_t size : shape)
    stride *= size;
  SmallVector<int64_t> strides;
  for (int64_t size : shape) {
    stride /= size;
    strides.push_back(stride);
    box.starts.push_back(first / stride);
    box.sizes.push_back(last / stride - first / stride + 1);
    first %= stride;
    last %= stride;
    if (box.sizes.back() < 1)
      return std::nullopt;
  }
  if (ShapedType::getNumElements(box.sizes) !=
      static_cast<int64_t>(places.size()))
    return std::nullopt;
  for (auto [number, place] : llvm::enumerate(places)) {
    int64_t rest = number, expected = 0;
    for (size_t dim = shape.size(); dim-- > 0;) {
      expected += (box.starts[dim] + rest % box.sizes[dim]) * strides[dim];
      rest /= box.sizes[dim];
    }
    if (place != expected)
      return std::nullopt;
  }
  return box;
}

/// `table` with `updates` in the box.
static Value writeBox(Importer &n, Value table, Value updates, const Box &box) {
  ArrayRef<int64_t> shape = Importer::shape(table);
  for (auto [index, size] : llvm::enumerate(shape)) {
    int64_t start = box.starts[index], end = start + box.sizes[index];
    if (box.sizes[index] == size)
      continue;
    Box rest = box;
    rest.starts[index] = 0;
    SmallVector<Value> parts;
    if (start > 0)
      parts.push_back(n.slice(table, index, 0, start));
    parts.push_back(
        writeBox(n, n.slice(table, index, start, end - start), updates, rest));
    if (end < size)
      parts.push_back(n.slice(table, index, end, size - end));
    return n.concat(parts, index);
  }
  return n.reshape(updates, shape);
}

/// The table with the updates where `places` in its first dimensions, `length`
/// of them, are a box; null if they are not.
static Value writeKnown(Importer &n, ArrayRef<int64_t> places, size_t length) {
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  // Every n-th line is a box of groups of n (`y[0::2] = x`), as it is read.
  auto groups = length == 1 ? findGroups(places, shape[0]) : std::nullopt;
  if (groups && groups->picked.size() == 1) {
    SmallVector<int64_t> apart{shape[0] / groups->size, groups->size};
    llvm::append_range(apart, shape.drop_front());
    Box lines{SmallVector<int64_t>(apart.size(), 0), apart};
    lines.starts[1] = groups->picked[0];
    lines.sizes[1] = 1;
    Value written = writeBox(n, n.reshape(n.operand(0), apart),
                             n.reshape(n.operand(2), lines.sizes), lines);
    return n.reshape(written, shape);
  }
  std::optional<Box> box = findBox(places, shape.take_front(length));
  if (!box)
    return nullptr;
  for (int64_t size : shape.drop_front(length)) {
    box->starts.push_back(0);
    box->sizes.push_back(size);
  }
  return writeBox(n, n.operand(0), n.operand(2), *box);
}

/// Whether it is what exporters make of index_add and of index_put that
/// accumulates where ONNX had no word for them: writes into zeros, which are
/// added to something. The zeros are none that the model has made: a constant,
/// or as many as the other summand has.
static bool isWrittenSum(Importer &n) {
  if (transforms::getSplatValue(n.operand(0)) != 0.0)
    return false;
  const onnx::NodeProto *sum = nullptr;
  for (const onnx::NodeProto &node : n.graph.file.graph().node())
    if (llvm::is_contained(node.input(), n.node.output(0))) {
      if (sum || node.op_type() != "Add")
        return false;
      sum = &node;
    }
  const onnx::NodeProto *zeros = n.findProducer(n.node.input(0));
  if (!sum || !zeros)
    return false;
  if (zeros->op_type() == "Constant")
    return n.node.op_type() == "ScatterElements";
  const onnx::NodeProto *shape = zeros->op_type() == "ConstantOfShape"
                                     ? n.findProducer(zeros->input(0))
                                     : nullptr;
  if (!shape || shape->op_type() != "Shape")
    return false;
  // A table that is a constant is written anew wherever it is used.
  auto isConstant = [&](StringRef name) {
    const onnx::NodeProto *made = n.findProducer(name);
    return made && made->op_type() == "Constant";
  };
  StringRef like = shape->input(0), written = n.node.output(0);
  return llvm::any_of(sum->input(), [&](StringRef summand) {
    return summand != written &&
           (summand == like || (isConstant(summand) && isConstant(like)));
  });
}

/// Writes updates [c…, i…, s…] to places [c…, i…] in `width` dimensions of a
/// table behind `batches`, which become one; where `chosen` is null, or true.
static Value writeAt(Importer &n, Value table, Value places, Value updates,
                     Value chosen, int64_t batches, int64_t width,
                     StringRef reduction) {
  if (n.hasFailed())
    return nullptr;
  ArrayRef<int64_t> shape = Importer::shape(table);
  auto count = [](ArrayRef<int64_t> sizes) {
    return ShapedType::getNumElements(sizes);
  };
  SmallVector<int64_t> flat(shape.take_front(batches)), line(flat);
  flat.push_back(count(shape.slice(batches, width)));
  line.push_back(count(Importer::shape(places).drop_front(batches)));
  SmallVector<int64_t> news(line);
  llvm::append_range(flat, shape.drop_front(batches + width));
  llvm::append_range(news, shape.drop_front(batches + width));
  Writes writes{n.reshape(table, flat), n.reshape(places, line),
                n.reshape(updates, news), n.reshape(chosen, line),
                chosen && isWrittenSum(n)};
  Value written;
  if (reduction == "none")
    written = writeLast(n, writes);
  else if (reduction == "add")
    written = writeSums(n, writes);
  else
    written = writeReduced(n, writes,
                           reduction == "mul"   ? nn::ReductionKind::prod
                           : reduction == "max" ? nn::ReductionKind::max
                                                : nn::ReductionKind::min);
  return n.reshape(written, shape);
}

static bool isEmpty(Value value) {
  return ShapedType::getNumElements(Importer::shape(value)) == 0;
}

/// What `reduction` says; an error if ONNX does not know it or it does not go
/// with the elements.
static std::string readReduction(Importer &n) {
  std::string reduction = n.stringAttr("reduction", "none");
  bool isKnown = llvm::is_contained<StringRef>(
      {"none", "add", "mul", "max", "min"}, reduction);
  if (!isKnown)
    n.error() << "expected 'reduction' to be 'none', 'add', 'mul', 'max' or "
                 "'min', found '"
              << reduction << "'";
  else if (reduction != "none" && Importer::element(n.operand(0)).isInteger(1))
    n.error() << "expected numbers to combine by reduction '" << reduction
              << "', found " << n.operand(0).getType();
  else if (n.graph.choices.isSize(n.operand(1)))
    n.error() << "expected indices, found the number of elements that NonZero "
                 "chooses at run time";
  else if (Importer::isFloat(n.operand(1)))
    n.error() << "expected integer indices, found " << n.operand(1).getType();
  return reduction;
}

/// What is written; null and an error where it has another type than `expected`
/// of the table's elements. Where a choice has made the indices, it may have
/// one element for each that is chosen.
static Value readUpdates(Importer &n, ArrayRef<int64_t> expected) {
  Value updates = n.operand(2);
  auto chosen = n.graph.choices.find(n.operand(1));
  if (chosen && Importer::rank(updates) > chosen->dim)
    updates = n.graph.choices.meet(n, updates, chosen->dim, chosen->number);
  if (n.hasFailed() ||
      (Importer::shape(updates) == expected &&
       Importer::element(updates) == Importer::element(n.operand(0))))
    return updates;
  n.error() << "expected updates of type "
            << RankedTensorType::get(expected, Importer::element(n.operand(0)))
            << ", found " << n.operand(2).getType();
  return nullptr;
}

/// Of indices that a choice has made which of them are chosen, with sizes of 1
/// beside the choice; null if none has. An error if the updates are of another
/// choice, or the table is of one.
static Value findChosen(Importer &n, Value indices, Value updates) {
  Choices &choices = n.graph.choices;
  auto ofIndices = choices.find(indices), ofUpdates = choices.find(updates);
  if (choices.find(n.operand(0)) ||
      (ofUpdates && (!ofIndices || ofIndices->number != ofUpdates->number ||
                     ofIndices->dim != ofUpdates->dim)))
    n.error() << "expected to write what NonZero chooses at run time where it "
                 "is chosen";
  return ofIndices ? choices.findLine(n, indices) : nullptr;
}

/// Of writes to one place the last stays: in the order in which NonZero names
/// them, not in that of places.
static void sortWrites(Importer &n, std::optional<Choices::Chosen> by,
                       StringRef reduction, ArrayRef<Value *> values) {
  if (by && reduction == "none")
    for (Value *value : values)
      *value = n.graph.choices.sortPlaces(n, *value, *by);
}

/// result[indices[i…], k…] = updates[i…, k…].
static LogicalResult importScatterNd(Importer &n) {
  std::string reduction = readReduction(n);
  if (n.hasFailed())
    return failure();
  Value table = n.operand(0), tuples = n.operand(1);
  ArrayRef<int64_t> shape = Importer::shape(table);
  ArrayRef<int64_t> indices = Importer::shape(tuples);
  if (indices.empty() || indices.back() < 1 ||
      indices.back() > static_cast<int64_t>(shape.size()))
    return n.error() << "expected indices that end in a dimension of 1 to "
                     << shape.size() << ", found " << tuples.getType();
  SmallVector<int64_t> expected(indices.drop_back());
  llvm::append_range(expected, shape.drop_front(indices.back()));
  Value updates = readUpdates(n, expected);
  if (n.hasFailed())
    return failure();
  if (isEmpty(updates))
    return n.finish(table);
  if (Value rows = n.graph.choices.findRows(n, tuples, shape)) {
    SmallVector<int64_t> whole{Importer::shape(rows).front()};
    llvm::append_range(whole, shape.drop_front(Importer::shape(rows).back()));
    updates = n.reshape(updates, whole);
    tuples = rows;
    indices = Importer::shape(tuples);
  }
  int64_t batches = 0;
  Value chosen = findChosen(n, tuples, updates);
  auto by = n.graph.choices.find(tuples);
  tuples =
      n.graph.choices.makeSafe(n, tuples, shape.take_front(indices.back()));
  if (n.hasFailed())
    return failure();
  Choices::Suspension suspension(n.graph.choices);
  sortWrites(n, by, reduction, {&tuples, &updates, &chosen});
  if (chosen)
    chosen = n.broadcast(n.reshape(chosen, Importer::shape(chosen).drop_back()),
                         indices.drop_back());
  else
    dropCountedColumns(n, table, tuples, batches);
  Value places = findPlaces(n, table, tuples, batches);
  int64_t width = Importer::shape(tuples).back();
  DenseElementsAttr known = Importer::constantOf(places);
  if (known && reduction == "none" && batches == 0 && !chosen)
    if (Value box = writeKnown(n, integerElements(known), width))
      return n.finish(box);
  return n.finish(
      writeAt(n, table, places, updates, chosen, batches, width, reduction));
}

/// The places in a table that indices along an axis, known now, name.
static SmallVector<int64_t> findElements(Importer &n, DenseElementsAttr indices,
                                         ArrayRef<int64_t> shape, size_t axis) {
  ArrayRef<int64_t> written = indices.getType().getShape();
  SmallVector<int64_t> places;
  for (auto [number, index] : llvm::enumerate(integerElements(indices))) {
    std::optional<int64_t> counted = countFromBegin(n, index, shape[axis]);
    if (!counted)
      return {};
    int64_t rest = number, stride = 1, place = 0;
    for (size_t dim = shape.size(); dim-- > 0;) {
      int64_t at = rest % written[dim];
      rest /= written[dim];
      place += (dim == axis ? *counted : at) * stride;
      stride *= shape[dim];
    }
    places.push_back(place);
  }
  return places;
}

/// result[i…, indices[i…, j, k…], k…] = updates[i…, j, k…].
static LogicalResult importScatterElements(Importer &n) {
  Value table = n.operand(0), indices = n.operand(1);
  std::string reduction = readReduction(n);
  int64_t rank = Importer::rank(table);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), rank);
  ArrayRef<int64_t> written = Importer::shape(indices);
  if (n.hasFailed())
    return failure();
  Value updates = readUpdates(n, written);
  if (n.hasFailed())
    return failure();
  bool fits = Importer::rank(indices) == rank;
  for (int64_t dim = 0; fits && dim < rank; ++dim)
    fits = dim == axis || written[dim] <= Importer::shape(table)[dim];
  if (!fits)
    return n.error() << "expected indices within the table of type "
                     << table.getType() << " beside dimension " << axis
                     << ", found " << indices.getType();
  if (isEmpty(updates))
    return n.finish(table);
  Value chosen = findChosen(n, indices, updates);
  auto by = n.graph.choices.find(indices);
  if (by && by->dim != axis)
    return n.error()
           << "expected what NonZero chooses at run time to lie along "
              "the axis of its indices, "
           << axis << ", found it along dimension " << by->dim
           << ", where its place is that of the table it goes to";
  indices = n.graph.choices.makeSafe(n, indices, Importer::shape(table)[axis]);
  if (n.hasFailed())
    return failure();
  Choices::Suspension suspension(n.graph.choices);
  sortWrites(n, by, reduction, {&indices, &updates, &chosen});
  if (DenseElementsAttr known = Importer::constantOf(indices)) {
    SmallVector<int64_t> places =
        findElements(n, known, Importer::shape(table), axis);
    if (n.hasFailed())
      return failure();
    if (reduction == "none" && !chosen)
      if (Value box = writeKnown(n, places, rank))
        return n.finish(box);
  }
  // Whole slices go to places of the first dimension.
  ArrayRef<int64_t> sizes = Importer::shape(table);
  bool isOfSlices = axis == 0 && written.drop_front() == sizes.drop_front();
  for (int64_t dim = 1; isOfSlices && dim < rank; ++dim)
    isOfSlices = isUniform(indices, dim);
  if (isOfSlices) {
    Value column = indices;
    for (int64_t dim = 1; dim < rank; ++dim)
      column = n.slice(column, dim, 0, 1);
    Value places = findPlaces(n, table, n.reshape(column, {written.front(), 1}),
                              /*batchDims=*/0);
    return n.finish(writeAt(n, table, places, updates,
                            n.reshape(chosen, written.front()), /*batches=*/0,
                            /*width=*/1, reduction));
  }
  // Each line along the axis is a batch, whose indices are its own.
  SmallVector<int64_t> last; // the axis last; its own inverse
  llvm::append_range(last, llvm::seq<int64_t>(rank));
  std::swap(last[axis], last.back());
  table = n.transpose(table, last);
  indices = n.transpose(indices, last);
  Box lines;
  lines.starts.assign(rank, 0);
  llvm::append_range(lines.sizes, Importer::shape(indices));
  lines.sizes.back() = Importer::shape(table).back();
  Value part = table;
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    part = n.slice(part, dim, 0, lines.sizes[dim]);
  SmallVector<int64_t> tuples(Importer::shape(indices));
  tuples.push_back(1);
  Value places =
      findPlaces(n, part, n.reshape(indices, tuples), /*batchDims=*/rank - 1);
  part = writeAt(n, part, places, n.transpose(updates, last),
                 chosen ? n.transpose(n.broadcast(chosen, written), last)
                        : nullptr,
                 rank - 1,
                 /*width=*/1, reduction);
  if (n.hasFailed())
    return failure();
  return n.finish(n.transpose(writeBox(n, table, part, lines), last));
}

ArrayRef<OpRow> accel::import::scatteringOps() {
  static const OpRow rows[] = {
      {"", "Scatter", 9, 3, 3, importScatterElements},
      {"", "ScatterElements", 11, 3, 3, importScatterElements},
      {"", "ScatterND", 11, 3, 3, importScatterNd},
  };
  return rows;
}
