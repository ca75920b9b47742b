// Makes the gradient of a table that indices pick from in pieces: ranks
// exchange the few rows that they add, not the table that they are added to.

#include "GradientOps.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Models/Zeros.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/FactorAxes.h"
#include "lib/Parallel/Split/ReshardPlanner.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_EXCHANGEROWSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One step.
class RowExchanger {
public:
  RowExchanger(func::FuncOp step, dist::MeshOp mesh)
      : step(step), mesh(mesh), planner(mesh) {}
  void run();

private:
  /// What `sum` makes of a term of its operand, or of it all; null where the
  /// sum itself is as good.
  Value makePieces(Value term, dist::ReshardOp sum);
  Value exchange(nn::ScatterAddOp scatter, dist::ReshardOp sum);
  bool isDivisible(int64_t size, ArrayRef<StringAttr> axes);
  double getSeconds(Type of, dist::ShardingAttr target);

  func::FuncOp step;
  dist::MeshOp mesh;
  ReshardPlanner planner;
  SmallVector<Operation *> replaced; ///< terms, each behind those it adds
};
} // namespace

void RowExchanger::run() {
  llvm::SetVector<dist::ReshardOp> sums;
  for (auto gradient : step.getOps<nn::GradientOp>())
    for (dist::ReshardOp sum : findGradientSums(gradient))
      // Behind the sum over micro-batches, where there is one.
      for (; sum; sum = sum.getInput().getDefiningOp<dist::ReshardOp>())
        sums.insert(sum);
  for (dist::ReshardOp sum : sums) {
    Value pieces = makePieces(sum.getInput(), sum);
    if (!pieces)
      continue;
    sum.replaceAllUsesWith(pieces);
    sum.erase();
    for (Operation *op : llvm::reverse(replaced)) {
      auto zeros = op->getOperand(0).getDefiningOp<nn::ConstantOp>();
      op->erase();
      if (zeros && zeros->use_empty())
        zeros->erase();
    }
    replaced.clear();
  }
}

Value RowExchanger::makePieces(Value term, dist::ReshardOp sum) {
  if (!term.hasOneUse())
    return nullptr;
  if (auto scatter = term.getDefiningOp<nn::ScatterAddOp>())
    return exchange(scatter, sum);
  auto add = term.getDefiningOp<nn::AddOp>();
  if (!add)
    return nullptr;
  Value sides[] = {makePieces(add.getLhs(), sum),
                   makePieces(add.getRhs(), sum)};
  if (!sides[0] && !sides[1])
    return nullptr;
  replaced.push_back(add);
  OpBuilder builder(add);
  for (auto [side, operand] : llvm::zip_equal(sides, add.getOperands())) {
    if (!side) {
      auto rest = cast<dist::ReshardOp>(builder.clone(*sum));
      rest.getInputMutable().assign(operand);
      side = rest;
    }
  }
  return nn::AddOp::create(builder, add.getLoc(), sum.getType(), sides[0],
                           sides[1]);
}

bool RowExchanger::isDivisible(int64_t size, ArrayRef<StringAttr> axes) {
  for (StringAttr axis : axes) {
    int64_t ranks = *mesh.findAxisSize(axis);
    if (size % ranks != 0)
      return false;
    size /= ranks;
  }
  return true;
}

/// What it takes to place a value of a type otherwise.
double RowExchanger::getSeconds(Type of, dist::ShardingAttr target) {
  auto type = cast<RankedTensorType>(of);
  return planner
      .plan(type.getShape(), llvm::divideCeil(type.getElementTypeBitWidth(), 8),
            dist::ShardingAttr::of(type), target)
      .seconds;
}

/// The axes without those of `drop`.
static AxisList without(ArrayRef<StringAttr> axes, ArrayRef<StringAttr> drop) {
  AxisList kept;
  llvm::copy_if(axes, std::back_inserter(kept), [&](StringAttr axis) {
    return !llvm::is_contained(drop, axis);
  });
  return kept;
}

/// The sharding without `axes`, but along `dim`, where there is one.
static dist::ShardingAttr move(dist::ShardingAttr from,
                               ArrayRef<StringAttr> axes,
                               std::optional<size_t> dim) {
  AxisLists dims = getAxisLists(from);
  for (AxisList &list : dims)
    list = without(list, axes);
  if (dim)
    llvm::append_range(dims[*dim], axes);
  AxisList partial = without(from.getPartial().getNames(), axes);
  return getSharding(from.getMesh(), dims, partial,
                     partial.empty() ? dist::Reduction::sum
                                     : from.getReduction());
}

Value RowExchanger::exchange(nn::ScatterAddOp scatter, dist::ReshardOp sum) {
  if (!isZeros(scatter.getInit()))
    return nullptr;
  auto from = dist::ShardingAttr::of(sum.getInput().getType());
  auto to = dist::ShardingAttr::of(sum.getType());
  AxisList axes;
  for (dist::AxesAttr dim : to.getDims())
    for (StringAttr axis : dim.getNames())
      if (from.getPartial().contains(axis))
        axes.push_back(axis);
  if (axes.empty())
    return nullptr;

  // Where the sum has them, if indices do not point there: every rank would
  // have to know which of them point into its part.
  RankedTensorType table = scatter.getType();
  std::optional<size_t> split;
  for (size_t dim = scatter.getBatchDims(); dim < size_t(table.getRank());
       ++dim) {
    AxisList all(from.getDims()[dim].getNames());
    llvm::append_range(all, axes);
    if (dim != scatter.getDim() && isDivisible(table.getDimSize(dim), all) &&
        (!split || to.getDims()[dim].contains(axes.front())))
      split = dim;
  }
  if (!split)
    return nullptr;

  Value indices = scatter.getIndices(), updates = scatter.getUpdates();
  size_t inUpdates = *split;
  if (*split > scatter.getDim())
    inUpdates += cast<RankedTensorType>(indices.getType()).getRank() - 1 -
                 scatter.getBatchDims();
  auto ofIndices = move(dist::ShardingAttr::of(indices.getType()), axes, {});
  auto ofUpdates =
      move(dist::ShardingAttr::of(updates.getType()), axes, inUpdates);
  Type pieces = withSharding(table, move(from, axes, split));
  if (getSeconds(indices.getType(), ofIndices) +
          getSeconds(updates.getType(), ofUpdates) + getSeconds(pieces, to) >=
      getSeconds(table, to))
    return nullptr;

  replaced.push_back(scatter);
  OpBuilder builder(scatter);
  auto place = [&](Value value, dist::ShardingAttr target) -> Value {
    if (dist::ShardingAttr::of(value.getType()) == target)
      return value;
    auto placed =
        dist::ReshardOp::create(builder, scatter.getLoc(),
                                withSharding(value.getType(), target), value);
    placed->setAttr(dist::kInsertedByAttr,
                    builder.getStringAttr("dist-exchange-rows"));
    return placed;
  };
  // A constant of zeros has no piece that another rank would have to send.
  Value zeros = scatter.getInit();
  while (auto placed = zeros.getDefiningOp<dist::ReshardOp>())
    zeros = placed.getInput();
  Value none = builder.clone(*zeros.getDefiningOp())->getResult(0);
  none.setType(
      withSharding(table, move(getSharding(from.getMesh(), getAxisLists(from)),
                               axes, split)));
  Value made = nn::ScatterAddOp::create(
      builder, scatter.getLoc(), pieces, none, place(indices, ofIndices),
      place(updates, ofUpdates), scatter.getDim(), scatter.getBatchDims());
  return place(made, to);
}

namespace {
struct ExchangeRowsPass : impl::ExchangeRowsPassBase<ExchangeRowsPass> {
  using Base::Base;

  void runInOrder() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        RowExchanger(function, mesh).run();
  }
};
} // namespace
} // namespace accel::parallel
