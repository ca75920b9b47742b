// Import of operators that only rearrange elements, and of those that ask for
// shapes, which are constants here.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// What `compute` makes of sizes of operand 0, those from dimension `first` on,
/// of which one may be known at run time alone.
static Value
makeSizes(Importer &n, ArrayRef<int64_t> sizes, int64_t first,
          llvm::function_ref<SmallVector<int64_t>(ArrayRef<int64_t>)> compute) {
  auto build = [&](ArrayRef<int64_t> values) {
    SmallVector<int64_t> made = compute(values);
    return n.ints(made, static_cast<int64_t>(made.size()));
  };
  Choices &choices = n.graph.choices;
  if (failed(choices.checkGrouped(n, n.operand(0))))
    return nullptr;
  Value result = build(sizes);
  auto chosen = choices.find(n.operand(0));
  int64_t dim = chosen ? chosen->dim - first : -1;
  if (!result || dim < 0 || dim >= static_cast<int64_t>(sizes.size()))
    return result;
  // Linear in the one that is not known.
  SmallVector<int64_t> none(sizes), once(sizes);
  auto [of, factor] = choices.countOf(chosen->number);
  none[dim] = 0;
  once[dim] = factor;
  SmallVector<Value> parts(of + 2);
  parts.front() = build(none);
  parts.back() = n.binary<nn::SubOp>(build(once), parts.front());
  choices.markSize(result, std::move(parts));
  return result;
}

/// A tensor that has a size of a choice from elsewhere is of that choice: all
/// of its places hold the same, or an error.
static Value expandByChoice(Importer &n, Value value,
                            std::optional<Choices::Chosen> chosen) {
  Choices &choices = n.graph.choices;
  if (!value || !chosen)
    return value;
  auto is = choices.find(value);
  if (is && is->number == chosen->number && is->dim == chosen->dim)
    return value;
  if (is || !isUniform(value, chosen->dim)) {
    n.error() << "expected a tensor with the number of elements that NonZero "
                 "chooses at run time as a size to hold these elements, or the "
                 "same for each of them, found "
              << value.getType();
    return nullptr;
  }
  Value own = Importer::constantOf(value)
                  ? n.constant(Importer::constantOf(value))
                  : n.copy(value);
  choices.enter(own, *chosen);
  return own;
}

static LogicalResult importShape(Importer &n) {
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  int64_t rank = shape.size();
  auto clamp = [&](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
  };
  int64_t start = clamp(n.intAttr("start", 0));
  int64_t end = clamp(n.intAttr("end", rank));
  ArrayRef<int64_t> part =
      shape.slice(start, std::max<int64_t>(0, end - start));
  return n.finish(makeSizes(n, part, start, [](ArrayRef<int64_t> sizes) {
    return SmallVector<int64_t>(sizes);
  }));
}

static LogicalResult importSize(Importer &n) {
  Value size = makeSizes(
      n, Importer::shape(n.operand(0)), 0, [](ArrayRef<int64_t> sizes) {
        return SmallVector<int64_t>{ShapedType::getNumElements(sizes)};
      });
  return n.finish(n.reshape(size, {}));
}

/// What is of no choice, with one row for each that is chosen, in a shape that
/// asks for that number of rows; null if it is no such thing.
static Value reshapeToChosen(Importer &n, Value x, ArrayRef<int64_t> target,
                             Choices::Chosen chosen) {
  SmallVector<int64_t> shape(target);
  int64_t total = ShapedType::getNumElements(Importer::shape(x)), others = 1;
  for (auto [dim, size] : llvm::enumerate(target))
    others *= static_cast<int64_t>(dim) == chosen.dim ? 1 : size;
  if (others < 1 || total % others != 0)
    return nullptr;
  shape[chosen.dim] = total / others;
  Value rows =
      n.graph.choices.meet(n, n.reshape(x, shape), chosen.dim, chosen.number);
  return rows && n.graph.choices.find(rows) ? rows : Value();
}

static LogicalResult importReshape(Importer &n) {
  Value x = n.operand(0);
  auto [target, chosen] = n.constantSizes(1);
  bool allowZero = n.intAttr("allowzero", 0);
  int64_t total = cast<RankedTensorType>(x.getType()).getNumElements();
  int64_t known = 1, open = -1, copied = -1;
  std::optional<Choices::Chosen> own = n.graph.choices.find(x);
  for (auto [index, size] : llvm::enumerate(target)) {
    int64_t dim = index;
    if (size == 0 && !allowZero) {
      if (dim >= Importer::rank(x))
        return n.error() << "size 0 of dimension #" << dim
                         << " copies a dimension that " << x.getType()
                         << " has not";
      size = Importer::shape(x)[dim];
      if (own && own->dim == dim)
        copied = dim;
    }
    if (size < -1 || (size == -1 && open >= 0))
      return n.error() << "expected sizes with at most one -1, found ["
                       << target << "]";
    if (size == -1)
      open = dim;
    else if (llvm::MulOverflow(known, size, known))
      return n.error() << "cannot reshape " << x.getType() << " to [" << target
                       << "]";
  }
  if (chosen && !own)
    if (Value rows = reshapeToChosen(n, x, target, *chosen);
        rows || n.hasFailed())
      return n.finish(rows);
  if (open >= 0 && known != 0 && total % known == 0)
    target[open] = total / known;
  else if (open >= 0 || known != total)
    return n.error() << "cannot reshape " << x.getType() << " to [" << target
                     << "]";
  if (own && !chosen && open >= 0)
    if (Value grouped = n.graph.choices.group(n, x, target, open);
        grouped || n.hasFailed())
      return n.finish(grouped);
  Value result = n.reshape(x, target);
  if (!result || (!own && !chosen))
    return n.finish(result);
  // A size that is a number is one, however many are chosen: what depends on
  // that is the size that is asked for by it, or follows.
  auto is = n.graph.choices.find(result);
  int64_t asked = chosen ? chosen->dim : copied >= 0 ? copied : open;
  if (!is || is->dim != asked || (chosen && is->number != chosen->number))
    return n.error() << "expected one size of what NonZero chooses at run time "
                        "to be -1 or its number, and the others numbers, found "
                        "it in dimension #"
                     << (is ? is->dim : asked) << " of [" << target
                     << "], where places stand for what is chosen";
  return n.finish(result);
}

static LogicalResult importFlatten(Importer &n) {
  Value x = n.operand(0);
  ArrayRef<int64_t> shape = Importer::shape(x);
  int64_t rank = shape.size(), axis = n.intAttr("axis", 1);
  axis = axis == rank ? rank : n.normalizeAxis(axis, rank);
  int64_t rows = 1, columns = 1;
  for (auto [dim, size] : llvm::enumerate(shape))
    (static_cast<int64_t>(dim) < axis ? rows : columns) *= size;
  return n.finish(n.reshape(x, {rows, columns}));
}

/// The list that is operand 1, and before opset 13 the attribute `name`; none
/// where it is left out.
static std::optional<SmallVector<int64_t>> findList(Importer &n,
                                                    StringRef name) {
  if (n.version < 13)
    return n.intsAttr(name);
  if (n.operand(1))
    return n.constantInts(1);
  return std::nullopt;
}

static LogicalResult importSqueeze(Importer &n) {
  Value x = n.operand(0);
  std::optional<SmallVector<int64_t>> axes = findList(n, "axes");
  if (axes)
    axes = n.normalizeAxes(*axes, Importer::rank(x));
  SmallVector<int64_t> shape;
  auto chosen = n.graph.choices.find(x);
  if (chosen && (!axes || llvm::is_contained(*axes, chosen->dim)))
    return n.error() << "expected dimensions other than that of what NonZero "
                        "chooses at run time, which is dropped where one is "
                        "chosen alone: say which to drop, squeeze(-1)";
  for (auto [index, size] : llvm::enumerate(Importer::shape(x))) {
    int64_t dim = index;
    bool drop = axes ? llvm::is_contained(*axes, dim) : size == 1;
    if (drop && size != 1)
      return n.error() << "expected size 1 of dimension #" << dim << ", found "
                       << size;
    if (!drop)
      shape.push_back(size);
  }
  return n.finish(n.reshape(x, shape));
}

static LogicalResult importUnsqueeze(Importer &n) {
  Value x = n.operand(0);
  std::optional<SmallVector<int64_t>> given = findList(n, "axes");
  if (!given)
    return n.error() << "expected axes, found none";
  int64_t rank = Importer::rank(x) + given->size();
  SmallVector<int64_t> axes = n.normalizeAxes(*given, rank);
  SmallVector<int64_t> shape;
  ArrayRef<int64_t> rest = Importer::shape(x);
  for (int64_t dim = 0; dim < rank && !n.hasFailed(); ++dim) {
    bool added = llvm::is_contained(axes, dim);
    shape.push_back(added ? 1 : rest.front());
    rest = rest.drop_front(added ? 0 : 1);
  }
  return n.finish(n.reshape(x, shape));
}

static LogicalResult importTranspose(Importer &n) {
  Value x = n.operand(0);
  SmallVector<int64_t> reversed =
      llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(Importer::rank(x))));
  return n.finish(n.transpose(x, n.intsAttr("perm").value_or(reversed)));
}

static LogicalResult importExpand(Importer &n) {
  Value x = n.operand(0);
  auto [target, chosen] = n.constantSizes(1);
  if (chosen)
    x = n.graph.choices.meet(n, x,
                             chosen->dim - static_cast<int64_t>(target.size()) +
                                 Importer::rank(x),
                             chosen->number);
  if (n.hasFailed())
    return failure();
  SmallVector<int64_t> shape(Importer::shape(x));
  if (auto own = n.graph.choices.find(x)) {
    int64_t dim = own->dim + static_cast<int64_t>(target.size() - shape.size());
    if (dim >= 0 && target[dim] != 1 && target[dim] != shape[own->dim])
      return n.error()
             << "expected the number of elements that NonZero chooses "
                "at run time to be that of dimension #"
             << dim << " of [" << target << "], which holds them; "
             << "a number of the sample's is none: "
             << n.graph.table.exportRemedy
             << ", or write rows where they are chosen by "
                "masked_scatter";
  }
  if (chosen)
    chosen->dim += std::max<int64_t>(0, shape.size() - target.size());
  if (shape.size() < target.size())
    shape.insert(shape.begin(), target.size() - shape.size(), 1);
  for (auto [size, wanted] :
       llvm::zip(llvm::reverse(shape), llvm::reverse(target))) {
    if (wanted < 0 || (size != wanted && size != 1 && wanted != 1))
      return n.error() << "cannot expand " << x.getType() << " to [" << target
                       << "]";
    if (size == 1)
      size = wanted;
  }
  return n.finish(expandByChoice(n, n.broadcast(x, shape), chosen));
}

/// Each dimension d becomes (1, d), is repeated to (r, d), and merged.
static LogicalResult importTile(Importer &n) {
  Value x = n.operand(0);
  SmallVector<int64_t> repeats = n.constantInts(1);
  ArrayRef<int64_t> shape = Importer::shape(x);
  if (!n.hasFailed() && repeats.size() != shape.size())
    return n.error() << "expected " << shape.size() << " repeats, found "
                     << repeats.size();
  SmallVector<int64_t> split, repeated, merged;
  for (auto [size, count] : llvm::zip(shape, repeats)) {
    if (count < 0 || !isAddressable({size, count}))
      return n.error() << "cannot repeat " << x.getType() << " by [" << repeats
                       << "]";
    split.append({1, size});
    repeated.append({count, size});
    merged.push_back(count * size);
  }
  return n.finish(
      n.reshape(n.broadcast(n.reshape(x, split), repeated), merged));
}

static LogicalResult importConcat(Importer &n) {
  SmallVector<Value> values;
  for (unsigned index = 0; index < n.operandCount(); ++index)
    values.push_back(n.operand(index));
  int64_t axis =
      n.normalizeAxis(n.intAttr("axis", 0), Importer::rank(values[0]));
  return n.finish(n.concat(values, axis));
}

/// The pieces of a split along `dim`; sizes must add up.
static SmallVector<Value> splitInto(Importer &n, Value value, int64_t dim,
                                    ArrayRef<int64_t> sizes) {
  SmallVector<Value> pieces;
  int64_t start = 0, size = Importer::shape(value)[dim];
  for (int64_t each : sizes) {
    if (each < 0 || each > size - start)
      break;
    pieces.push_back(n.slice(value, dim, start, each));
    start += each;
  }
  if (start == size && pieces.size() == sizes.size())
    return pieces;
  n.error() << "expected sizes that add up to " << size << ", found [" << sizes
            << "]";
  return {};
}

/// More tensors than a sequence has that somebody means.
static constexpr int64_t kMostPieces = 1 << 16;

/// `count` sizes, equal but for a smaller last one.
static SmallVector<int64_t> evenSizes(int64_t total, int64_t each) {
  SmallVector<int64_t> sizes;
  for (int64_t start = 0; start < total; start += each)
    sizes.push_back(std::min(each, total - start));
  return sizes;
}

static LogicalResult importSplit(Importer &n) {
  Value x = n.operand(0);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", 0), Importer::rank(x));
  int64_t count = n.intAttr("num_outputs", n.node.output_size());
  if (n.hasFailed())
    return failure();
  int64_t size = Importer::shape(x)[dim];
  SmallVector<int64_t> sizes;
  if (std::optional<SmallVector<int64_t>> given = findList(n, "split"))
    sizes = *given;
  else if (count != n.node.output_size())
    return n.error() << "expected 'num_outputs' to be " << n.node.output_size()
                     << ", as there are results, found " << count;
  else if (count > 0)
    sizes =
        evenSizes(size, std::max<int64_t>(1, llvm::divideCeil(size, count)));
  if (n.hasFailed())
    return failure();
  if (sizes.size() != static_cast<size_t>(n.node.output_size()))
    return n.error() << "expected " << sizes.size() << " results, found "
                     << n.node.output_size();
  for (auto [index, piece] : llvm::enumerate(splitInto(n, x, dim, sizes)))
    n.setResult(index, piece);
  return n.finish();
}

static LogicalResult importSplitToSequence(Importer &n) {
  Value x = n.operand(0);
  int64_t dim = n.normalizeAxis(n.intAttr("axis", 0), Importer::rank(x));
  bool keepDims = n.intAttr("keepdims", 1);
  if (n.hasFailed())
    return failure();
  int64_t size = Importer::shape(x)[dim], each = 1;
  SmallVector<int64_t> sizes;
  if (Value split = n.operand(1)) {
    keepDims = true; // the operator's own rule
    sizes = n.constantInts(1);
    if (n.hasFailed())
      return failure();
    each = Importer::rank(split) == 0 ? sizes[0] : 0;
    if (Importer::rank(split) == 0 && each <= 0)
      return n.error() << "expected a positive size, found " << each;
  }
  if (each && size / each > kMostPieces)
    return n.error() << "expected at most " << kMostPieces
                     << " tensors of a sequence, found " << size / each;
  if (each)
    sizes = evenSizes(size, each);
  ImportedValue result;
  result.isSequence = true;
  for (Value piece : splitInto(n, x, dim, sizes)) {
    SmallVector<int64_t> shape(Importer::shape(piece));
    if (!keepDims && !shape.empty())
      shape.erase(shape.begin() + dim);
    result.sequence.push_back(n.reshape(piece, shape));
  }
  n.setResult(0, std::move(result));
  return n.finish();
}

/// What is left of the dimension of a choice, which a slice takes a part of by
/// places known now, counted from the front.
static Value sliceChosen(Importer &n, Value x, int64_t first, int64_t last,
                         int64_t step) {
  Choices &choices = n.graph.choices;
  Choices::Chosen chosen = *choices.find(x);
  if (first < 0 || last <= first || step != 1) {
    n.error() << "expected a slice of what NonZero chooses at run time to be "
                 "counted from its front, in steps of 1, found ["
              << first << ", " << last << ") in steps of " << step;
    return nullptr;
  }
  if (first == 0 && last >= Importer::shape(x)[chosen.dim])
    return x;
  // Behind its mask; and nothing comes in that is of no choice.
  unsigned part = choices.takeRange(n, chosen.number, first, last);
  Value own = n.copy(x);
  choices.mark(own, {part, chosen.dim});
  return own;
}

/// A slice. Every n-th of rows that are a multiple of n is one of each group of
/// n, a view, which ranks and micro-batches split where they split no group:
/// chosen and rejected, `r[0::2]` and `r[1::2]`. The last dimension of several,
/// of features, nobody splits so.
static Value sliceBySteps(Importer &n, Value x, ArrayRef<int64_t> starts,
                          ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  SmallVector<int64_t> apart, from, counts, by;
  ArrayRef<int64_t> shape = Importer::shape(x);
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool isOfGroups = (dim + 1 < shape.size() || dim == 0) && steps[dim] > 1 &&
                      sizes[dim] > 1 && starts[dim] < steps[dim] &&
                      sizes[dim] * steps[dim] == size;
    if (isOfGroups) {
      apart.append({sizes[dim], steps[dim]});
      from.append({0, starts[dim]});
      counts.append({sizes[dim], 1});
      by.append({1, 1});
      continue;
    }
    apart.push_back(size);
    from.push_back(starts[dim]);
    counts.push_back(sizes[dim]);
    by.push_back(steps[dim]);
  }
  Value picked = n.create<nn::SliceOp>(
      n.reshape(x, apart), {n.named("starts", from), n.named("sizes", counts),
                            n.named("steps", by)});
  return n.reshape(picked, sizes);
}

/// Starts, ends, axes and steps of Slice, brought to sizes per dimension.
static LogicalResult importSlice(Importer &n) {
  Value x = n.operand(0);
  ArrayRef<int64_t> shape = Importer::shape(x);
  int64_t rank = shape.size();
  SmallVector<int64_t> from = n.constantInts(1), axes;
  auto [to, upTo] = n.constantSizes(2);
  if (n.operand(3))
    axes = n.constantInts(3);
  else
    llvm::append_range(axes, llvm::seq<int64_t>(from.size()));
  SmallVector<int64_t> by(axes.size(), 1);
  if (n.operand(4))
    by = n.constantInts(4);
  if (n.hasFailed())
    return failure();
  if (from.size() != axes.size() || to.size() != axes.size() ||
      by.size() != axes.size())
    return n.error() << "expected starts, ends, axes and steps of one length, "
                        "found "
                     << from.size() << ", " << to.size() << ", " << axes.size()
                     << " and " << by.size();
  SmallVector<int64_t> starts(rank, 0), sizes(shape), steps(rank, 1);
  for (auto [start, end, axis, step] : llvm::zip(from, to, axes, by)) {
    int64_t dim = n.normalizeAxis(axis, rank);
    if (n.hasFailed())
      return failure();
    if (step == 0)
      return n.error() << "expected steps other than 0";
    if (n.graph.choices.findGrouped(x) && start == 0 && step == 1 &&
        end >= shape[dim])
      continue; // all that there are
    auto chosen = n.graph.choices.find(x);
    bool isCounted = upTo && &to[upTo->dim] == &end;
    if (isCounted || (chosen && chosen->dim == dim)) {
      if (isCounted && (start != 0 || step != 1))
        return n.error()
               << "expected a slice up to the number of elements that "
                  "NonZero chooses at run time to begin at 0, in steps of 1, "
                  "found one from "
               << start << " in steps of " << step;
      x = isCounted ? n.graph.choices.takeFirst(n, x, dim, upTo->number)
                    : sliceChosen(n, x, start, end, step);
      if (n.hasFailed())
        return failure();
      sizes[dim] = Importer::shape(x)[dim];
      continue;
    }
    int64_t size = shape[dim];
    // ONNX clamps to [0, size] going up and to [-1, size - 1] going down.
    auto clamp = [&](int64_t bound, int64_t low) {
      if (bound < 0 && bound >= -size)
        bound += size;
      else if (bound < 0)
        bound = low;
      return std::clamp(bound, low, low + size);
    };
    int64_t low = step > 0 ? 0 : -1;
    int64_t first =
        step > 0 ? clamp(start, 0)
                 : std::clamp<int64_t>(start < 0 ? start + size : start, 0,
                                       std::max<int64_t>(size - 1, 0));
    int64_t last = clamp(end, low);
    int64_t span = step > 0 ? last - first : first - last;
    // A step past the end, however long, is as good as one to the end.
    int64_t stride = std::clamp(step, -size - 1, size + 1);
    int64_t count = span <= 0 || size == 0
                        ? 0
                        : int64_t(llvm::divideCeil(span, std::abs(stride)));
    starts[dim] = count == 0 ? 0 : first;
    sizes[dim] = count;
    steps[dim] = count == 0 ? 1 : stride;
  }
  if (n.graph.choices.findGrouped(x) && sizes == shape)
    return n.finish(x);
  return n.finish(sliceBySteps(n, x, starts, sizes, steps));
}

ArrayRef<OpRow> accel::import::shapeOps() {
  static const OpRow rows[] = {
      {"", "Concat", 4, 1, -1, importConcat},
      {"", "Expand", 8, 2, 2, importExpand},
      {"", "Flatten", 1, 1, 1, importFlatten},
      {"", "Reshape", 5, 2, 2, importReshape},
      {"", "Shape", 1, 1, 1, importShape},
      {"", "Size", 1, 1, 1, importSize},
      {"", "Slice", 10, 3, 5, importSlice},
      {"", "Split", 2, 1, 2, importSplit},
      {"", "SplitToSequence", 11, 1, 2, importSplitToSequence},
      {"", "Squeeze", 1, 1, 2, importSqueeze},
      {"", "Tile", 6, 2, 2, importTile},
      {"", "Transpose", 1, 1, 1, importTranspose},
      {"", "Unsqueeze", 1, 1, 2, importUnsqueeze},
  };
  return rows;
}
