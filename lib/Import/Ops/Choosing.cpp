// Import of NonZero: which elements are not zero, known now, or chosen at run
// time (Choices.h).

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// A value as it was before it was transposed.
struct Untransposed {
  Value value;
  /// Which dimension of what was asked for each of its dimensions is.
  SmallVector<int64_t> order;
};
} // namespace

/// What is zero where a mask is, in the order of what that was made of, before
/// that was transposed and an expert's part was taken: so are choices that a
/// layer makes for each token in the order of tokens, as all else of them.
static Untransposed undoTranspose(Importer &n, Value mask) {
  ArrayRef<int64_t> shape = Importer::shape(mask);
  Operation *op = mask.getDefiningOp();
  if (auto transpose = dyn_cast_if_present<nn::TransposeOp>(op)) {
    SmallVector<int64_t> order(shape.size());
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
      order[from] = dim;
    return {transpose.getInput(), order};
  }
  if (auto cast = dyn_cast_if_present<nn::CastOp>(op)) {
    Untransposed of = undoTranspose(n, cast.getInput());
    // A truth that was made a number says as much.
    if (Importer::element(cast.getInput()).isInteger(1))
      return of;
    return {n.cast(of.value, Importer::element(mask)), of.order};
  }
  if (auto slice = dyn_cast_if_present<nn::SliceOp>(op)) {
    Untransposed of = undoTranspose(n, slice.getInput());
    auto sort = [&](ArrayRef<int64_t> list) {
      return llvm::map_to_vector(of.order,
                                 [&](int64_t dim) { return list[dim]; });
    };
    return {n.create<nn::SliceOp>(of.value,
                                  {n.named("starts", sort(slice.getStarts())),
                                   n.named("sizes", sort(slice.getSizes())),
                                   n.named("steps", sort(slice.getSteps()))}),
            of.order};
  }
  if (auto reshape = dyn_cast_if_present<nn::ReshapeOp>(op)) {
    // Where sizes of 1 go, and nothing else.
    ArrayRef<int64_t> from = Importer::shape(reshape.getInput());
    SmallVector<int64_t> kept(from.size(), -1);
    size_t at = 0;
    for (auto [dim, size] : llvm::enumerate(from))
      if (at < shape.size() && size == shape[at])
        kept[dim] = at++;
      else if (size != 1)
        return {mask, llvm::to_vector(llvm::seq<int64_t>(shape.size()))};
    if (at == shape.size()) {
      Untransposed of = undoTranspose(n, reshape.getInput());
      SmallVector<int64_t> order, sizes;
      for (int64_t dim : of.order)
        if (kept[dim] >= 0) {
          order.push_back(kept[dim]);
          sizes.push_back(from[dim]);
        }
      return {n.reshape(of.value, sizes), order};
    }
  }
  return {mask, llvm::to_vector(llvm::seq<int64_t>(shape.size()))};
}

/// Numbers of places, which lie in the module while it is imported.
static constexpr int64_t kMostPlaceIndices = int64_t(1) << 24;

/// The choice of what is not zero in `x`, known or new.
static FailureOr<unsigned> choose(Importer &n, Value x) {
  if (std::optional<unsigned> known = n.graph.choices.findBy(x))
    return *known;
  auto [mask, order] = undoTranspose(n, x);
  if (mask && !Importer::element(mask).isInteger(1))
    mask = n.compare(nn::ComparePredicate::ne, mask, n.splatLike(mask, 0));
  SmallVector<int64_t> shape(Importer::shape(x));
  mask = n.reshape(mask, ShapedType::getNumElements(shape));
  if (!mask)
    return failure();
  // Of one dimension it may be the model's own.
  return n.graph.choices.add(
      {x, n.copy(mask), shape, order, std::nullopt, 1, std::nullopt});
}

/// Of a mask that says of whole rows whether they are chosen, what says it for
/// each of them; null if it is none.
static Value findRowMask(Importer &n, Value mask) {
  auto broadcast = mask.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast)
    return nullptr;
  ArrayRef<int64_t> wide = Importer::shape(mask),
                    narrow = Importer::shape(broadcast.getInput());
  size_t rows = 0;
  while (rows < narrow.size() && narrow[rows] == wide[rows])
    ++rows;
  if (narrow.size() != wide.size() || rows == 0 || rows == narrow.size() ||
      !llvm::all_of(narrow.drop_front(rows),
                    [](int64_t size) { return size == 1; }))
    return nullptr;
  if (ShapedType::getNumElements(wide.take_front(rows)) < 2)
    return nullptr;
  auto reshape = broadcast.getInput().getDefiningOp<nn::ReshapeOp>();
  return reshape && Importer::shape(reshape.getInput()) == wide.take_front(rows)
             ? reshape.getInput()
             : n.reshape(broadcast.getInput(), wide.take_front(rows));
}

/// Where only the run knows what is not zero: a choice among all elements
/// (Choices.h). Its order says nothing: what depends on it asks for it.
static LogicalResult importChoice(Importer &n) {
  Value x = n.operand(0);
  Choices &choices = n.graph.choices;
  if (choices.find(x))
    return n.error() << "expected elements whose number is known at compile "
                        "time, found some that NonZero chose at run time: "
                        "combine both masks";
  Value rows = findRowMask(n, x), mask = rows ? rows : x;
  ArrayRef<int64_t> shape = Importer::shape(mask);
  int64_t count = ShapedType::getNumElements(shape);
  if (n.hasFailed() || shape.empty() || count < 2 ||
      count > kMostPlaceIndices / int64_t(shape.size()))
    return n.error() << "expected 2 to " << kMostPlaceIndices
                     << " indices of elements that may not be zero at run "
                        "time, found "
                     << x.getType()
                     << ": write what is chosen as a product with a mask, or "
                        "torch.where";
  FailureOr<unsigned> number = choose(n, mask);
  if (failed(number))
    return failure();
  if (rows)
    return n.finish(choices.listRowPlaces(n, *number, Importer::shape(x),
                                          Importer::rank(mask)));
  Value places = choices.listPlaces(n, *number, shape);
  if (places)
    choices.mark(places, {*number, 1});
  return n.finish(places);
}

/// The indices of what is not zero, one column each, in row-major order.
static LogicalResult importNonZero(Importer &n) {
  DenseElementsAttr known = Importer::constantOf(n.operand(0));
  if (!known)
    return importChoice(n);
  auto isZero = [](Attribute element) {
    if (auto number = dyn_cast<FloatAttr>(element))
      return number.getValue().isZero();
    return cast<IntegerAttr>(element).getValue().isZero();
  };
  ArrayRef<int64_t> shape = known.getType().getShape();
  SmallVector<int64_t> places;
  for (auto [place, element] : llvm::enumerate(known.getValues<Attribute>()))
    if (!isZero(element))
      places.push_back(place);
  SmallVector<int64_t> indices;
  int64_t behind = known.getNumElements();
  for (int64_t size : shape) {
    behind = size == 0 ? 0 : behind / size;
    for (int64_t place : places)
      indices.push_back(place / behind % size);
  }
  return n.finish(n.ints(indices, {static_cast<int64_t>(shape.size()),
                                   static_cast<int64_t>(places.size())}));
}

ArrayRef<OpRow> accel::import::choosingOps() {
  static const OpRow rows[] = {{"", "NonZero", 9, 1, 1, importNonZero}};
  return rows;
}
