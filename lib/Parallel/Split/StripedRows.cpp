// Striped rows: layouts that say so, and views that put what is the same on all
// ranks in stripes, or what they join back in order.

#include "StripedRows.h"

#include "TurnedMask.h"
#include "dialects/NN/AttentionDims.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

namespace {
class Striper {
public:
  Striper(func::FuncOp entry, StringAttr axis, ArrayRef<GatheredKeys> rings)
      : entry(entry),
        mesh(dist::MeshOp::of(entry->getParentOfType<ModuleOp>())), axis(axis),
        ranks(*mesh.findAxisSize(axis)) {
    for (const GatheredKeys &ring : rings)
      attentions.insert(ring.attention);
  }

  void apply(const RingRows &rows);

private:
  dist::LayoutAttr interleave(dist::LayoutAttr layout, unsigned dim);
  void gather(Operation *op, AllRows all);
  void count(RowCounter counter);
  template <typename AttentionLike>
  void stripe(AttentionLike attention, const GatheredKeys &ring);

  func::FuncOp entry;
  dist::MeshOp mesh;
  StringAttr axis;
  int64_t ranks;
  llvm::DenseSet<Operation *> attentions;
  llvm::DenseMap<Value, Value> masks; ///< with their columns in stripes
};
} // namespace

/// All ranks' rows, put in stripes: those of one rank together, and each of
/// them `ranks` places behind the one before; or put back in their own order.
static Value order(OpBuilder &builder, Value value, AllRows all,
                   bool toStripes) {
  using Sizes = SmallVector<int64_t>;
  Location loc = value.getLoc();
  Sizes shape(shapeOf(value));
  auto cut = [&](Value what, Sizes sizes) -> Value {
    return reshape(builder, loc, what, withDim(shape, all.dim, sizes));
  };
  auto move = [&](Value what, Sizes order) -> Value {
    Sizes permutation;
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (dim < all.dim)
        permutation.push_back(dim);
      else if (dim > all.dim)
        permutation.push_back(dim + order.size() - 1);
      else
        for (int64_t each : order)
          permutation.push_back(dim + each);
    return nn::TransposeOp::create(builder, loc, what, permutation);
  };
  Sizes ranges = {all.outer, all.ranks, all.rows, all.between, all.inner},
        turns = {all.outer, all.rows, all.ranks, all.between, all.inner};
  value = cut(value, {all.outer, all.ranks, all.between, all.rows, all.inner});
  // What is between ranks' rows stands behind them while they are put in order.
  if (toStripes) {
    value =
        all.between == 1 ? cut(value, ranges) : move(value, {0, 1, 3, 2, 4});
    value = move(cut(value, turns), {0, 2, 3, 1, 4});
  } else {
    value = cut(move(value, {0, 3, 1, 2, 4}), ranges);
    if (all.between != 1)
      value = move(value, {0, 1, 3, 2, 4});
  }
  return reshape(builder, loc, value, shape);
}

dist::LayoutAttr Striper::interleave(dist::LayoutAttr layout, unsigned dim) {
  auto order = dist::InterleavedAttr::get(
      layout.getContext(), dim, {ranks}, ranks, layout.getShape()[dim] / ranks);
  return dist::LayoutAttr::get(layout.getContext(), layout.getMesh(),
                               layout.getShape(), layout.getDims(),
                               layout.getPartial(), order);
}

/// Whether an attention reads it as its mask, the columns of which it puts in
/// stripes itself.
static bool isMask(OpOperand &use) {
  return llvm::TypeSwitch<Operation *, bool>(use.getOwner())
      .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto attention) {
        auto mask = attention.getMaskMutable();
        return !mask.empty() && &mask[0] == &use;
      })
      .Default([](Operation *) { return false; });
}

/// Whoever reads all rows, but for rings' keys, reads them in their order.
void Striper::gather(Operation *op, AllRows all) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : op->getUses())
    if (!attentions.contains(use.getOwner()) || isMask(use))
      uses.push_back(&use);
  if (uses.empty())
    return;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value ordered = order(builder, op->getResult(0), all, /*toStripes=*/false);
  for (OpOperand *use : uses)
    use->set(ordered);
}

/// Counts all rows, of which the rank takes its own.
void Striper::count(RowCounter counter) {
  auto [add, iota, index] = counter;
  OpBuilder builder(add);
  auto local = cast<RankedTensorType>(add.getType());
  unsigned dim = iota.getDim();
  SmallVector<int64_t> shape(local.getShape());
  shape[dim] *= mesh.getGroupSize(index.getAxes());
  Value all = nn::IotaOp::create(builder, add.getLoc(), local.clone(shape), dim,
                                 iota.getStart());
  all = order(builder, all, {dim, 1, ranks, 1, shape[dim] / ranks, 1},
              /*toStripes=*/true);
  auto own = dist::AllSliceOp::create(builder, add.getLoc(), local, all,
                                      index.getMesh(), index.getAxes(), dim);
  own->setAttr(dist::kInsertedByAttr,
               builder.getStringAttr("dist-ring-attention"));
  add.getResult().replaceAllUsesWith(own);
}

/// A ring of keys in stripes: of a mask all columns are in all ranks' order.
template <typename AttentionLike>
void Striper::stripe(AttentionLike attention, const GatheredKeys &ring) {
  OpBuilder builder(attention.getContext());
  int64_t count = shapeOf(ring.getKeys())[nn::kRowDim];
  if (Value mask = attention.getMask()) {
    Value &ordered = masks[mask];
    if (!ordered) {
      builder.setInsertionPointAfterValue(mask);
      ordered = order(builder, mask, {kMaskColumns, 1, ranks, 1, count, 1},
                      /*toStripes=*/true);
    }
    attention.getMaskMutable().assign(ordered);
  }
  if (!attention.getCausal())
    return;
  attention.setRowStepsAttr(builder.getDictionaryAttr(
      builder.getNamedAttr(axis, builder.getI64IntegerAttr(1))));
  attention.setStride(ranks);
}

void Striper::apply(const RingRows &rows) {
  for (auto [number, dim] : rows.arguments)
    entry.setArgAttr(number, dist::kLayoutAttr,
                     interleave(entry.getArgAttrOfType<dist::LayoutAttr>(
                                    number, dist::kLayoutAttr),
                                dim));
  for (auto [number, dim] : rows.results)
    entry.setResultAttr(number, dist::kLayoutAttr,
                        interleave(entry.getResultAttrOfType<dist::LayoutAttr>(
                                       number, dist::kLayoutAttr),
                                   dim));
  for (auto [op, all] : rows.slices) {
    OpBuilder builder(op);
    op->setOperand(0,
                   order(builder, op->getOperand(0), all, /*toStripes=*/true));
  }
  for (auto [op, all] : rows.gathers)
    gather(op, all);
  for (const RowCounter &counter : rows.counters)
    count(counter);
  for (const GatheredKeys *ring : rows.rings)
    llvm::TypeSwitch<Operation *>(ring->attention)
        .Case<nn::AttentionOp, nn::AttentionGradOp>(
            [&](auto attention) { stripe(attention, *ring); });
}

void parallel::stripeRows(func::FuncOp entry, ArrayRef<GatheredKeys> rings) {
  // Ranks of one row each have nothing to exchange.
  auto getRows = [](const GatheredKeys &ring) {
    return shapeOf(ring.getKeys())[nn::kRowDim];
  };
  auto isWanted = [&](const GatheredKeys &ring) {
    return getRows(ring) > 1 &&
           llvm::TypeSwitch<Operation *, bool>(ring.attention)
               .Case<nn::AttentionOp, nn::AttentionGradOp>(
                   [](auto attention) { return attention.getCausal(); });
  };
  const auto *first = llvm::find_if(rings, isWanted);
  if (first == rings.end())
    return;
  StringAttr axis = first->getAxis();
  SmallVector<GatheredKeys> along;
  for (const GatheredKeys &ring : rings)
    if (ring.getAxis() == axis)
      along.push_back(ring);
  if (std::optional<RingRows> rows = followRows(entry, axis, along))
    Striper(entry, axis, along).apply(*rows);
}
