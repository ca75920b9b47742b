// What a mask chooses, seen by samples: `x[mask].view(samples, -1, width)`. The
// mask has as many true elements in each sample, or the run stops; then those
// of a sample are its own, wherever other samples' are, and one of each, as
// `[:, -1]`, is gathered from the sample. Nothing else can be made of such a
// view: how many there are of each sample nobody knows.

#include "Choices.h"

#include "NodeImporter.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

Value Choices::group(Importer &n, Value value, ArrayRef<int64_t> target,
                     int64_t open) {
  std::optional<Chosen> own = find(value);
  if (!own || own->dim != 0 || open < 1)
    return nullptr;
  const Choice &choice = all[own->number];
  ArrayRef<int64_t> shape = choice.shape, samples = target.take_front(open);
  if (choice.base || !llvm::is_sorted(choice.order) ||
      size_t(open) >= shape.size() || samples != shape.take_front(open) ||
      ShapedType::getNumElements(target.drop_front(open + 1)) !=
          ShapedType::getNumElements(Importer::shape(value).drop_front()))
    return nullptr;
  int64_t count = ShapedType::getNumElements(samples),
          places = ShapedType::getNumElements(shape.drop_front(open));
  Suspension suspension(*this);
  SmallVector<int64_t> apart(samples);
  apart.push_back(places);
  llvm::append_range(apart, target.drop_front(open + 1));
  Value made = n.copy(n.reshape(value, apart)),
        mask = n.reshape(choice.mask, {count, places});
  if (made && mask)
    grouped[made] = {mask, open};
  return made;
}

/// Whether samples have equally many, of all that run at once: i1 [samples].
static Value haveEquallyMany(Importer &n, Value counts, int64_t batch) {
  int64_t samples = Importer::shape(counts)[0],
          parts = n.graph.options.batchParts;
  if (parts < 1 || batch % parts != 0)
    parts = 1;
  Value apart = n.reshape(counts, {parts, samples / parts});
  auto extreme = [&](nn::ReductionKind kind) {
    return n.reduce(kind, apart, {1}, /*keepDims=*/true);
  };
  Value same =
      n.compare(nn::ComparePredicate::eq, extreme(nn::ReductionKind::min),
                extreme(nn::ReductionKind::max));
  return n.reshape(n.broadcast(same, {parts, samples / parts}), samples);
}

Value Choices::takeOfEach(Importer &n, Value value, int64_t index) {
  auto [mask, dim] = grouped.lookup(value);
  Suspension suspension(*this);
  SmallVector<int64_t> shape(Importer::shape(value));
  int64_t samples = Importer::shape(mask)[0], places = Importer::shape(mask)[1];
  Type integer = n.graph.builder.getI64Type();
  Value ones = n.cast(mask, integer);
  Value counts =
      n.reduce(nn::ReductionKind::sum, ones, {1}, /*keepDims=*/false);
  Value upTo = n.create<nn::CumsumOp>(ones, {n.named("dim", int64_t(1))});
  if (n.hasFailed())
    return nullptr;
  // From 1 on, as the running sum counts.
  Value wanted =
      index < 0 ? n.binary<nn::AddOp>(counts, n.splatLike(counts, index + 1))
                : n.splatLike(counts, index + 1);
  Value isIt = n.binary<nn::AndOp>(
      mask, n.compare(nn::ComparePredicate::eq, upTo,
                      n.broadcast(n.reshape(wanted, {samples, 1}),
                                  {samples, places})));
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(places));
  Value place = n.reduce(
      nn::ReductionKind::sum,
      n.select(isIt,
               n.broadcast(n.ints(numbers, {1, places}), {samples, places}),
               n.splatLike(ones, 0)),
      {1}, /*keepDims=*/false);
  Value isThere = n.binary<nn::AndOp>(
      n.compare(nn::ComparePredicate::ge, wanted, n.splatLike(wanted, 1)),
      n.compare(nn::ComparePredicate::le, wanted, counts));
  isThere = n.binary<nn::AndOp>(isThere, haveEquallyMany(n, counts, shape[0]));
  // Behind the last place, and so the run stops.
  place = n.select(isThere, place, n.splatLike(place, places));
  SmallVector<int64_t> apart{samples, places}, whole(shape);
  llvm::append_range(apart, ArrayRef(shape).drop_front(dim + 1));
  whole.erase(whole.begin() + dim);
  Value picked = n.create<nn::GatherNdOp>(
      {n.reshape(value, apart), n.reshape(place, {samples, 1})},
      {n.named("batch_dims", int64_t(1))});
  return n.reshape(picked, whole);
}

LogicalResult Choices::checkGrouped(Importer &n, ValueRange operands) const {
  if (suspended > 0 || llvm::none_of(operands, [&](Value operand) {
        return grouped.contains(operand);
      }))
    return success();
  return n.error() << "expected one of what NonZero chooses in each sample to "
                      "be taken by a number, as [:, -1], found another "
                      "computation on all of them: write what is chosen as a "
                      "product with a mask, or torch.where";
}
