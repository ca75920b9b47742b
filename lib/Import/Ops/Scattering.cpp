// Import of operators that write elements by index. What exporters make of
// `x[:, 1:] = y` names a box of the table, element by element and known now:
// that is what lies around the box, and what is written, joined.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

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

/// The indices, all within a dimension of `size` and counted from its begin;
/// nothing after an error.
static std::optional<int64_t> countFromBegin(Importer &n, int64_t index,
                                             int64_t size) {
  if (index >= -size && index < size)
    return index < 0 ? index + size : index;
  n.error() << "expected an index in [" << -size << ", " << size << "), found "
            << index;
  return std::nullopt;
}

/// The operands' indices, known now, if nothing else is combined with them.
static DenseElementsAttr getKnownIndices(Importer &n) {
  std::string reduction = n.stringAttr("reduction", "none");
  if (reduction != "none") {
    n.error() << "expected 'reduction' to be 'none', found '" << reduction
              << "'";
    return nullptr;
  }
  DenseElementsAttr indices = Importer::isFloat(n.operand(1))
                                  ? DenseElementsAttr()
                                  : Importer::constantOf(n.operand(1));
  if (!indices)
    n.error() << "expected integer indices that are known at compile time, "
                 "found "
              << n.operand(1).getType();
  return indices;
}

/// `places` are positions in the table's first dimensions, `length` of them;
/// all of the others is written there.
static LogicalResult finishWrite(Importer &n, ArrayRef<int64_t> places,
                                 size_t length) {
  if (places.empty())
    return n.finish(n.operand(0));
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  std::optional<Box> box = findBox(places, shape.take_front(length));
  if (!box)
    return n.error() << "expected indices that name a range of each dimension, "
                        "in order, as of 'x[:, 1:] = y'; found others";
  for (int64_t size : shape.drop_front(length)) {
    box->starts.push_back(0);
    box->sizes.push_back(size);
  }
  return n.finish(writeBox(n, n.operand(0), n.operand(2), *box));
}

static LogicalResult checkUpdates(Importer &n, ArrayRef<int64_t> expected) {
  if (Importer::shape(n.operand(2)) == expected &&
      Importer::element(n.operand(2)) == Importer::element(n.operand(0)))
    return success();
  return n.error() << "expected updates of type "
                   << RankedTensorType::get(expected,
                                            Importer::element(n.operand(0)))
                   << ", found " << n.operand(2).getType();
}

/// result[indices[i…], k…] = updates[i…, k…].
static LogicalResult importScatterNd(Importer &n) {
  DenseElementsAttr indices = getKnownIndices(n);
  if (!indices)
    return failure();
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  ArrayRef<int64_t> tuples = indices.getType().getShape();
  if (tuples.empty() || tuples.back() < 1 ||
      tuples.back() > static_cast<int64_t>(shape.size()))
    return n.error() << "expected indices that end in a dimension of 1 to "
                     << shape.size() << ", found " << indices.getType();
  size_t length = tuples.back();
  SmallVector<int64_t> expected(tuples.drop_back());
  llvm::append_range(expected, shape.drop_front(length));
  if (failed(checkUpdates(n, expected)))
    return failure();
  SmallVector<int64_t> places;
  int64_t place = 0;
  for (auto [number, index] : llvm::enumerate(integerElements(indices))) {
    size_t dim = number % length;
    std::optional<int64_t> counted = countFromBegin(n, index, shape[dim]);
    if (!counted)
      return failure();
    place = (dim == 0 ? 0 : place * shape[dim]) + *counted;
    if (dim + 1 == length)
      places.push_back(place);
  }
  return finishWrite(n, places, length);
}

/// result[i…, indices[i…, j, k…], k…] = updates[i…, j, k…].
static LogicalResult importScatterElements(Importer &n) {
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), shape.size());
  DenseElementsAttr indices = getKnownIndices(n);
  if (n.hasFailed() || !indices)
    return failure();
  ArrayRef<int64_t> written = indices.getType().getShape();
  if (failed(checkUpdates(n, written)))
    return failure();
  bool fits = written.size() == shape.size();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim)
    fits = static_cast<int64_t>(dim) == axis || written[dim] <= shape[dim];
  if (!fits)
    return n.error() << "expected indices within the table of type "
                     << n.operand(0).getType() << " beside dimension " << axis
                     << ", found " << indices.getType();
  SmallVector<int64_t> places;
  for (auto [number, index] : llvm::enumerate(integerElements(indices))) {
    std::optional<int64_t> counted = countFromBegin(n, index, shape[axis]);
    if (!counted)
      return failure();
    int64_t rest = number, stride = 1, place = 0;
    for (size_t dim = shape.size(); dim-- > 0;) {
      int64_t at = rest % written[dim];
      rest /= written[dim];
      place += (static_cast<int64_t>(dim) == axis ? *counted : at) * stride;
      stride *= shape[dim];
    }
    places.push_back(place);
  }
  return finishWrite(n, places, shape.size());
}

ArrayRef<OpRow> accel::import::scatteringOps() {
  static const OpRow rows[] = {
      {"", "ScatterElements", 11, 3, 3, importScatterElements},
      {"", "ScatterND", 11, 3, 3, importScatterNd},
  };
  return rows;
}
