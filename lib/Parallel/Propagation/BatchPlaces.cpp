// Tells through reshapes where the batch is, and makes as few views as there
// can be.

#include "BatchPlaces.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

int64_t parallel::product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

Value parallel::reshape(OpBuilder &builder, Location loc, Value value,
                        ArrayRef<int64_t> shape) {
  if (auto before = value.getDefiningOp<nn::ReshapeOp>())
    value = before.getInput();
  if (shapeOf(value) == shape)
    return value;
  return nn::ReshapeOp::create(
      builder, loc,
      RankedTensorType::get(shape, getElementTypeOrSelf(value.getType())),
      value);
}

Value parallel::transpose(OpBuilder &builder, Location loc, Value value,
                          ArrayRef<int64_t> permutation) {
  Shape order(permutation);
  if (auto before = value.getDefiningOp<nn::TransposeOp>()) {
    value = before.getInput();
    for (int64_t &dim : order)
      dim = before.getPermutation()[dim];
  }
  if (llvm::equal(order, llvm::seq<int64_t>(order.size())))
    return value;
  return nn::TransposeOp::create(builder, loc, value, order);
}

Value parallel::moveDim(OpBuilder &builder, Location loc, Value value,
                        size_t from, size_t to) {
  Shape order = llvm::to_vector(llvm::seq<int64_t>(shapeOf(value).size()));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return transpose(builder, loc, value, order);
}

Shape parallel::withDim(ArrayRef<int64_t> shape, size_t dim,
                        ArrayRef<int64_t> sizes) {
  Shape made(shape.take_front(dim));
  llvm::append_range(made, sizes);
  llvm::append_range(made, shape.drop_front(dim + 1));
  return made;
}

/// Whether what an op makes of nothing, or spreads, is equal along a dimension.
static bool isMadeEqualAlong(Value value, size_t dim) {
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return true;
  if (auto iota = value.getDefiningOp<nn::IotaOp>())
    return iota.getDim() != dim;
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast)
    return false;
  ArrayRef<int64_t> from = shapeOf(broadcast.getInput());
  size_t lead = shapeOf(value).size() - from.size();
  return dim < lead || from[dim - lead] != shapeOf(value)[dim];
}

bool parallel::isEqualAlong(Value value, size_t dim) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  for (size_t next = 0; next < values.size(); ++next) {
    Operation *op = values[next].getDefiningOp();
    if (isMadeEqualAlong(values[next], dim))
      continue;
    if (!op || !op->hasTrait<nn::Elementwise>() || op->getNumOperands() == 0)
      return false;
    values.insert_range(op->getOperands());
  }
  return true;
}

std::optional<Place> parallel::findPlace(ArrayRef<int64_t> from,
                                         const Place &place,
                                         ArrayRef<int64_t> to, int64_t leads) {
  int64_t after = place.inner * product(from.drop_front(place.dim + 1));
  int64_t behind = 1; // elements that a step along the dimension passes
  for (size_t dim = to.size(); dim-- > 0; behind *= to[dim]) {
    if (after % behind != 0)
      return std::nullopt;
    int64_t inner = after / behind;
    if (to[dim] % (inner * place.batch) != 0)
      continue;
    int64_t outer = to[dim] / (inner * place.batch);
    bool first = product(to.take_front(dim)) == 1;
    int64_t before = first && outer % leads == 0 ? leads : 1;
    // Behind other dimensions, what is in front of the same rows stays there.
    if (!first && outer == place.outer * place.before)
      before = place.before;
    return Place{dim, outer / before, place.batch, inner, before};
  }
  return std::nullopt;
}
