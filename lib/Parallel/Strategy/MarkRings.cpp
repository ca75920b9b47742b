// Which attention of context parallelism is made by a ring, and why some is
// not.

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_MARKRINGSPASS
#include "lib/Parallel/Passes.h.inc"

static constexpr unsigned kRows = 2; ///< of a query; of a key, keys

/// The axis that splits the dimension `kRows` of `parts` alone, if `whole` is
/// the same with all of it; null if not.
static StringAttr findGathered(Type parts, Type whole) {
  auto from = dist::ShardingAttr::of(parts), to = dist::ShardingAttr::of(whole);
  if (from.getDims()[kRows].getNames().size() != 1 ||
      !to.getDims()[kRows].empty())
    return {};
  for (auto [number, pair] :
       llvm::enumerate(llvm::zip_equal(from.getDims(), to.getDims())))
    if (auto [a, b] = pair; number != kRows && a != b)
      return {};
  return from.getDims()[kRows].getNames().front();
}

/// The axis over which keys or values are gathered for attention.
static StringAttr findAxis(Value keys) {
  auto gather = keys.getDefiningOp<dist::ReshardOp>();
  return gather ? findGathered(gather.getInput().getType(), gather.getType())
                : StringAttr();
}

/// Whether what ranks add to a gradient is summed over an axis, and scattered.
static bool isScattered(Value gradient, StringAttr axis) {
  auto scatter = gradient.hasOneUse()
                     ? dyn_cast<dist::ReshardOp>(*gradient.getUsers().begin())
                     : dist::ReshardOp();
  return scatter &&
         findGathered(scatter.getType(), gradient.getType()) == axis &&
         !dist::ShardingAttr::of(scatter.getType()).isPartial() &&
         llvm::equal(
             dist::ShardingAttr::of(gradient.getType()).getPartial().getNames(),
             ArrayRef(axis));
}

/// What keeps keys from going round; empty if nothing does.
template <typename AttentionLike>
static StringRef findObstacle(AttentionLike op) {
  if (op.getMask())
    return "it has a mask";
  StringAttr axis = findAxis(op.getKey());
  if (!axis || findAxis(op.getValue()) != axis)
    return "keys and values are not gathered over one axis alone";
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

namespace {
struct MarkRingsPass : impl::MarkRingsPassBase<MarkRingsPass> {
  using Base::Base;

  void runOnOperation() override {
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
    getOperation().walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto attention) {
            auto query = dist::ShardingAttr::of(attention.getQuery().getType());
            if (query.getDims()[kRows].empty())
              return;
            StringRef obstacle = findObstacle(attention);
            if (obstacle.empty())
              op->setAttr(dist::kRingAttr, UnitAttr::get(op->getContext()));
            else
              op->emitWarning() << "'cp.strategy' is 'ring', but keys and "
                                   "values of this attention are gathered: "
                                << obstacle;
          });
    });
  }
};
} // namespace
} // namespace accel::parallel
