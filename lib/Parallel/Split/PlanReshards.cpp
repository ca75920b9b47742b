// Takes reshards apart into single collectives.

#include "ReshardPlanner.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PLANRESHARDSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
struct PlanReshardsPass : impl::PlanReshardsPassBase<PlanReshardsPass> {
  using Base::Base;

  void runOnOperation() override {
    llvm::DenseMap<Operation *, std::unique_ptr<ReshardPlanner>> planners;
    getOperation().walk([&](dist::ReshardOp reshard) {
      RankedTensorType type = reshard.getType();
      auto from = dist::ShardingAttr::of(reshard.getInput().getType());
      auto to = dist::ShardingAttr::of(type);
      for (dist::ShardingAttr end : {from, to})
        if (failed(dist::verifySharding(reshard, end, type.getShape())))
          return signalPassFailure();
      dist::MeshOp mesh = dist::MeshOp::lookup(reshard, from.getMesh());
      auto &planner = planners[mesh];
      if (!planner)
        planner = std::make_unique<ReshardPlanner>(mesh);
      const ReshardPlan &plan = planner->plan(
          type.getShape(), llvm::divideCeil(type.getElementTypeBitWidth(), 8),
          from, to);
      // The last step stays as the reshard that was there.
      OpBuilder builder(reshard);
      for (const ReshardStep &step :
           ArrayRef(plan.steps).drop_back(plan.steps.empty() ? 0 : 1)) {
        auto stepType = RankedTensorType::get(
            type.getShape(), type.getElementType(), step.sharding);
        auto single = dist::ReshardOp::create(builder, reshard.getLoc(),
                                              stepType, reshard.getInput());
        single->setDiscardableAttrs(reshard->getDiscardableAttrDictionary());
        reshard.getInputMutable().assign(single);
      }
    });
  }
};
} // namespace
} // namespace accel::parallel
