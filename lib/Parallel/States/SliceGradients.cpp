// Cuts what is added to a gradient's sum over ranks, so that the sum is made in
// pieces: a term that every rank has whole would have it made whole.

#include "GradientOps.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/FactorAxes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SLICEGRADIENTSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One step.
class GradientSlicer {
public:
  GradientSlicer(func::FuncOp step, dist::MeshOp mesh)
      : step(step), mesh(mesh), ops(step) {}
  void run();

private:
  void setInsertionPoint(OpBuilder &builder, Value whole);
  /// The pieces of a value.
  Value slice(Value whole, dist::ShardingAttr target);
  Value sliceOp(Operation *op, dist::ShardingAttr target);
  bool isOfSums(Operation *op, dist::ShardingAttr target);
  Value spread(Value value);

  func::FuncOp step;
  dist::MeshOp mesh;
  GradientOps ops;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> pieces;
  /// By the axes that sums are over, the ops that are made of any.
  SmallVector<std::pair<AxisList, llvm::DenseSet<Operation *>>, 1> ofSums;
};
} // namespace

/// What ranks have combined, a sum or a largest or smallest number, and each of
/// them has whole.
static dist::ReshardOp getCombined(Value value) {
  auto reshard = value.getDefiningOp<dist::ReshardOp>();
  if (!reshard ||
      !dist::ShardingAttr::of(reshard.getInput().getType()).isPartial() ||
      dist::ShardingAttr::of(reshard.getType()).isPartial())
    return nullptr;
  return reshard;
}

/// A sum over ranks that each of them has whole.
static dist::ReshardOp getSum(Value value) {
  dist::ReshardOp reshard = getCombined(value);
  if (!reshard ||
      dist::ShardingAttr::of(reshard.getInput().getType()).getReduction() !=
          dist::Reduction::sum)
    return nullptr;
  return reshard;
}

/// Whether what an op makes of a sum is the sum of what it makes of its terms,
/// for no more work than that. Of a cut it would be more: of a sum, one message
/// goes to the other chunk, of terms one for each, in each micro-batch.
static bool isLinear(Operation *op) {
  if (isa<nn::CutOp>(op) || (op->getNumOperands() != 1 && !isa<nn::PadOp>(op)))
    return false;
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  return shardable && op->getNumResults() == 1 &&
         llvm::is_contained(shardable.getShardingRule().linearGroups,
                            ArrayRef<unsigned>{0});
}

/// Whether an op adds or subtracts: linear in both operands together.
static bool isSumOfTwo(Operation *op) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  return shardable && op->getNumOperands() == 2 &&
         op->hasTrait<nn::Elementwise>() &&
         llvm::is_contained(shardable.getShardingRule().linearGroups,
                            ArrayRef<unsigned>{0, 1});
}

/// Whether a step makes a gradient of sums over all axes that its pieces are
/// over. What every rank makes whole is no sum in pieces: each takes its
/// own of it.
bool GradientSlicer::isOfSums(Operation *op, dist::ShardingAttr target) {
  AxisList axes;
  for (dist::AxesAttr dim : target.getDims())
    llvm::append_range(axes, dim.getNames());
  auto *known = llvm::find_if(
      ofSums, [&](const auto &each) { return each.first == axes; });
  if (known != ofSums.end())
    return known->second.contains(op);
  llvm::DenseSet<Operation *> made;
  for (Operation &each : step.front()) {
    auto isMade = [&](Value operand) {
      return made.contains(operand.getDefiningOp());
    };
    auto isSummed = [&](dist::ReshardOp sum) {
      auto partial =
          dist::ShardingAttr::of(sum.getInput().getType()).getPartial();
      return llvm::all_of(
          axes, [&](StringAttr axis) { return partial.contains(axis); });
    };
    dist::ReshardOp sum =
        each.getNumResults() == 1 ? getSum(each.getResult(0)) : nullptr;
    if ((sum && isSummed(sum)) || llvm::any_of(each.getOperands(), isMade))
      made.insert(&each);
  }
  ofSums.emplace_back(axes, std::move(made));
  return ofSums.back().second.contains(op);
}

void GradientSlicer::run() {
  for (auto gradient : step.getOps<nn::GradientOp>()) {
    auto cut = gradient.getInput().getDefiningOp<dist::ReshardOp>();
    if (!cut || !isWhole(cut.getInput().getType()) ||
        !isOfSums(cut, dist::ShardingAttr::of(cut.getType())))
      continue;
    gradient.getInputMutable().assign(
        slice(cut.getInput(), dist::ShardingAttr::of(cut.getType())));
  }
  if (pieces.empty())
    return;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// In the backward: right behind a value of it, in front of the first reader of
/// any other, which the forward may have long before.
void GradientSlicer::setInsertionPoint(OpBuilder &builder, Value whole) {
  Operation *op = whole.getDefiningOp();
  if (op && ops.backward.contains(op))
    return builder.setInsertionPointAfter(op);
  Operation *first = nullptr;
  for (Operation *reader : whole.getUsers())
    if (ops.backward.contains(reader) &&
        (!first || reader->isBeforeInBlock(first)))
      first = reader;
  builder.setInsertionPoint(first);
}

Value GradientSlicer::slice(Value whole, dist::ShardingAttr target) {
  if (dist::ShardingAttr::of(whole.getType()) == target)
    return whole;
  if (Value known = pieces.lookup({whole, target}))
    return known;
  Operation *op = whole.getDefiningOp();
  OpBuilder builder(step.getContext());
  setInsertionPoint(builder, whole);
  Value made;
  if (op && op->getNumOperands() == 0) {
    made = builder.clone(*op)->getResult(0);
    made.setType(withSharding(whole.getType(), target));
  } else if (auto gather = dyn_cast_if_present<dist::ReshardOp>(op);
             gather && (!getCombined(whole) ||
                        (getSum(whole) && ops.backward.contains(op)))) {
    // Of a sum, a scatter, but of what the forward has summed whole; of what
    // was gathered, what it was gathered from.
    made = gather.getInput();
    if (dist::ShardingAttr::of(made.getType()) != target) {
      auto placed = cast<dist::ReshardOp>(builder.clone(*gather));
      placed.getResult().setType(withSharding(whole.getType(), target));
      made = placed;
    }
  } else if (op && ops.backward.contains(op)) {
    made = sliceOp(op, target);
  }
  if (!made) {
    auto cut = dist::ReshardOp::create(
        builder, whole.getLoc(), withSharding(whole.getType(), target), whole);
    cut->setAttr(dist::kInsertedByAttr,
                 builder.getStringAttr("dist-slice-gradients"));
    made = cut;
  }
  return pieces[{whole, target}] = made;
}

/// The op on pieces of its operands; null if it needs more of them.
Value GradientSlicer::sliceOp(Operation *op, dist::ShardingAttr target) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable || op->getNumResults() != 1)
    return nullptr;
  // Twice the work of anything else would not be free. What was just made has
  // no reader yet.
  if (!op->use_empty() && !op->hasOneUse() &&
      !op->hasTrait<nn::Elementwise>() && !isView(op))
    return nullptr;
  // Terms are summed in the type of the sum, not in that of rounded ones, and
  // before what pads the whole.
  if (isLinear(op))
    if (Value sum = spread(op->getResult(0)); sum != op->getResult(0))
      return slice(sum, target);
  ShardingRule rule = shardable.getShardingRule();
  SmallVector<TensorAxes> tensors;
  for (const ShardingRule::Tensor &operand : rule.operands)
    tensors.emplace_back().dims.resize(operand.size());
  tensors.push_back({getAxisLists(target), /*fixed=*/true});
  AxisLists factorAxes = chooseFactorAxes(mesh, op, rule, tensors);
  auto shardingOf = [&](const ShardingRule::Tensor &tensor) {
    AxisLists dims;
    for (const ShardingRule::Dim &dim : tensor)
      dims.push_back(joinFactors(dim, factorAxes));
    return getSharding(target.getMesh(), dims);
  };
  if (shardingOf(rule.results[0]) != target)
    return nullptr;
  OpBuilder builder(op);
  SmallVector<Value> operands;
  for (auto [operand, tensor] :
       llvm::zip_equal(op->getOperands(), rule.operands))
    operands.push_back(slice(operand, shardingOf(tensor)));
  Operation *made = builder.clone(*op);
  made->setOperands(operands);
  made->getResult(0).setType(withSharding(op->getResult(0).getType(), target));
  ops.backward.insert(made);
  return made->getResult(0);
}

/// The same value as a sum over ranks, or of terms, if a linear op makes it of
/// such a sum; the value itself if not.
Value GradientSlicer::spread(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isLinear(op))
    return value;
  Value input = spread(op->getOperand(0));
  auto apply = [&](Value term, dist::ShardingAttr sharding) {
    OpBuilder builder(op);
    Operation *made = builder.clone(*op);
    made->setOperand(0, term);
    made->getResult(0).setType(withSharding(value.getType(), sharding));
    ops.backward.insert(made);
    return made->getResult(0);
  };
  auto whole = dist::ShardingAttr::of(value.getType());
  OpBuilder builder(op);
  if (dist::ReshardOp sum = getSum(input)) {
    auto from = dist::ShardingAttr::of(sum.getInput().getType());
    Value terms =
        apply(sum.getInput(),
              getSharding(whole.getMesh(), getAxisLists(whole),
                          from.getPartial().getNames(), from.getReduction()));
    auto made = cast<dist::ReshardOp>(builder.clone(*sum));
    made.getInputMutable().assign(terms);
    made.getResult().setType(cast<RankedTensorType>(value.getType()));
    ops.backward.insert(made);
    return made;
  }
  Operation *added = input.getDefiningOp();
  if (!added || !ops.backward.contains(added))
    return value;
  // Of what another chunk has summed, there: pieces are less to send.
  if (!isSumOfTwo(added) && !isa<nn::CutOp>(added))
    return value;
  Operation *made = builder.clone(*added);
  for (OpOperand &operand : made->getOpOperands())
    operand.set(apply(operand.get(), whole));
  made->getResult(0).setType(cast<RankedTensorType>(value.getType()));
  // Its operands come first.
  made->moveBefore(op);
  ops.backward.insert(made);
  return made->getResult(0);
}

namespace {
struct SliceGradientsPass : impl::SliceGradientsPassBase<SliceGradientsPass> {
  using Base::Base;

  void runInOrder() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        GradientSlicer(function, mesh).run();
  }
};
} // namespace
} // namespace accel::parallel
