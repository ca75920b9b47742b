// Which attention of context parallelism is made by a ring, and why some is
// not.

#include "dialects/Dist/Dist.h"
#include "dialects/NN/AttentionDims.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_MARKRINGSPASS
#include "lib/Parallel/Passes.h.inc"

/// The axis that splits the dimension `kRows` of `parts` alone, if `whole` is
/// the same with all of it; null if not.
static StringAttr findGathered(Type parts, Type whole) {
  auto from = dist::ShardingAttr::of(parts), to = dist::ShardingAttr::of(whole);
  if (from.getDims()[nn::kRowDim].getNames().size() != 1 ||
      !to.getDims()[nn::kRowDim].empty())
    return {};
  for (auto [number, pair] :
       llvm::enumerate(llvm::zip_equal(from.getDims(), to.getDims())))
    if (auto [a, b] = pair; number != nn::kRowDim && a != b)
      return {};
  return from.getDims()[nn::kRowDim].getNames().front();
}

/// The axis over which keys or values are gathered for attention.
static StringAttr findAxis(Value keys) {
  auto gather = keys.getDefiningOp<dist::ReshardOp>();
  return gather ? findGathered(gather.getInput().getType(), gather.getType())
                : StringAttr();
}

/// Adds up first what is gathered as terms of sums over other axes: planned as
/// one, the sums would be scattered along the keys, and these gathered over all
/// the axes at once.
static void sumFirst(Value keys) {
  auto gather = keys.getDefiningOp<dist::ReshardOp>();
  auto from = dist::ShardingAttr::of(gather.getInput().getType()),
       to = dist::ShardingAttr::of(gather.getType());
  if (from.getPartial() == to.getPartial())
    return;
  OpBuilder builder(gather);
  auto type = cast<RankedTensorType>(gather.getInput().getType());
  auto sum = dist::ReshardOp::create(
      builder, gather.getLoc(),
      RankedTensorType::get(
          type.getShape(), type.getElementType(),
          dist::ShardingAttr::get(builder.getContext(), from.getMesh(),
                                  from.getDims(), to.getPartial(),
                                  to.getReduction())),
      gather.getInput());
  sum->setAttr(dist::kInsertedByAttr, builder.getStringAttr("dist-mark-rings"));
  gather.getInputMutable().assign(sum);
}

/// Whether something else than attention reads keys or values of all ranks:
/// what a mask's gradient is made of.
static bool isReadOtherwise(Value keys) {
  return llvm::any_of(keys.getUsers(), [](Operation *reader) {
    return !isa<nn::AttentionOp, nn::AttentionGradOp>(reader);
  });
}

/// Whether what ranks add to a gradient is summed over an axis, and scattered.
/// Ranks that share a key head have terms of it as well, which may be summed
/// before.
static bool isScattered(Value gradient, StringAttr axis) {
  while (gradient.hasOneUse()) {
    auto reshard = dyn_cast<dist::ReshardOp>(*gradient.getUsers().begin());
    if (!reshard)
      return false;
    auto from = dist::ShardingAttr::of(gradient.getType()),
         to = dist::ShardingAttr::of(reshard.getType());
    if (!from.getPartial().contains(axis))
      return false;
    if (findGathered(reshard.getType(), gradient.getType()) == axis)
      return !to.getPartial().contains(axis);
    if (from.getDims() != to.getDims())
      return false;
    gradient = reshard.getResult();
  }
  return false;
}

/// Whether log-sum-exps of a ring are counted from rows' levels.
template <typename AttentionLike> static bool hasLevels(AttentionLike op) {
  return op.getMask() && !getElementTypeOrSelf(op.getMask()).isInteger(1);
}

/// What keeps keys from going round; empty if nothing does.
template <typename AttentionLike>
static StringRef findObstacle(AttentionLike op) {
  // Rows' levels are those of all columns.
  if (op.getCausal() && hasLevels(op))
    return "it is causal and has a mask of numbers";
  StringAttr axis = findAxis(op.getKey());
  if (!axis || findAxis(op.getValue()) != axis)
    return "keys and values are not gathered over one axis alone";
  // Copies of rows would be of other bits: each rank adds in another order.
  if (!dist::ShardingAttr::of(op.getQuery().getType())
           .getDims()[nn::kRowDim]
           .contains(axis))
    return "its rows are not split over the axis of its keys";
  if (hasLevels(op) &&
      (isReadOtherwise(op.getKey()) || isReadOtherwise(op.getValue())))
    return "the gradient of its mask reads all of them";
  if (op.getCausal() && op.getDiagonal() < 0)
    return "its first rows see no key";
  if constexpr (std::is_same_v<AttentionLike, nn::AttentionGradOp>) {
    if (op.getLogSumExpGradient())
      return "its log-sum-exp has a gradient";
    if (!isScattered(op.getKeyGradient(), axis) ||
        !isScattered(op.getValueGradient(), axis))
      return "the gradients of keys and values are not scattered at once";
  }
  return "";
}

/// What keeps the keys of each attention from going round.
using Obstacles = llvm::MapVector<Operation *, StringRef>;

/// A log-sum-exp that is counted from levels means nothing but to a gradient
/// that counts from them: of an attention with levels and its gradient both are
/// rings, or neither is.
static void joinLevels(Obstacles &obstacles) {
  for (auto &[op, obstacle] : obstacles) {
    auto grad = dyn_cast<nn::AttentionGradOp>(op);
    auto of = grad ? grad.getLogSumExp().getDefiningOp<nn::AttentionOp>()
                   : nn::AttentionOp();
    if (grad && hasLevels(grad) && obstacle.empty() &&
        (!of || !obstacles.contains(of) || of.getMask() != grad.getMask()))
      obstacle = "its log-sum-exp is another's";
  }
  for (auto &[op, obstacle] : obstacles) {
    auto attention = dyn_cast<nn::AttentionOp>(op);
    if (!attention || !hasLevels(attention))
      continue;
    SmallVector<StringRef *> all = {&obstacle};
    bool isFree = obstacle.empty();
    for (Operation *reader : attention.getLogSumExp().getUsers()) {
      auto grad = dyn_cast<nn::AttentionGradOp>(reader);
      auto found = obstacles.find(reader);
      isFree &= grad && found != obstacles.end() && found->second.empty() &&
                grad.getLogSumExpGradient() != attention.getLogSumExp();
      if (found != obstacles.end())
        all.push_back(&found->second);
    }
    for (StringRef *each : all)
      if (!isFree && each->empty())
        *each = "its log-sum-exp is read by what is no ring";
  }
}

namespace {
struct MarkRingsPass : impl::MarkRingsPassBase<MarkRingsPass> {
  using Base::Base;

  void runInOrder() override {
    if (!enabled)
      return;
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh ||
        mesh.findAxisSize(dist::MeshOp::kContextAxis).value_or(1) == 1) {
      getOperation().emitError() << "expected an axis 'cp' of several ranks on "
                                    "the mesh with 'cp.strategy=ring': keys go "
                                    "from one to the next";
      return signalPassFailure();
    }
    Obstacles obstacles;
    getOperation().walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto attention) {
            auto query = dist::ShardingAttr::of(attention.getQuery().getType());
            if (!query.getDims()[nn::kRowDim].empty())
              obstacles[op] = findObstacle(attention);
          });
    });
    joinLevels(obstacles);
    for (auto [op, obstacle] : obstacles)
      if (obstacle.empty()) {
        op->setAttr(dist::kRingAttr, UnitAttr::get(op->getContext()));
        llvm::TypeSwitch<Operation *>(op)
            .Case<nn::AttentionOp, nn::AttentionGradOp>([](auto attention) {
              sumFirst(attention.getKey());
              sumFirst(attention.getValue());
            });
      } else {
        op->emitWarning() << "'cp.strategy' is 'ring', but keys and values of "
                             "this attention are gathered: "
                          << obstacle;
      }
  }
};
} // namespace
} // namespace accel::parallel
