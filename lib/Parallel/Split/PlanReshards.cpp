// Takes reshards apart into single collectives.

#include "ReshardPlanner.h"
#include "dialects/Interfaces/Cost.h"
#include "lib/Cost/Decision.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using accel::cost::Exchange;

namespace accel::parallel {
#define GEN_PASS_DEF_PLANRESHARDSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
struct PlanReshardsPass : impl::PlanReshardsPassBase<PlanReshardsPass> {
  using Base::Base;

  /// What gathers all and takes its part of that.
  static double getSecondsByWhole(ReshardPlanner &planner, dist::MeshOp mesh,
                                  double bytes, dist::ShardingAttr from,
                                  dist::ShardingAttr to) {
    double seconds = 0;
    for (dist::AxesAttr axes : from.getDims())
      if (int64_t ranks = mesh.getGroupSize(axes); ranks > 1) {
        seconds += planner.getSeconds(Exchange::AllGather, axes, bytes);
        bytes *= double(ranks);
      }
    if (!from.getPartial().empty())
      seconds +=
          planner.getSeconds(Exchange::AllReduce, from.getPartial(), bytes);
    for (dist::AxesAttr axes : to.getDims())
      if (int64_t ranks = mesh.getGroupSize(axes); ranks > 1) {
        seconds += planner.getSeconds(Exchange::AllSlice, axes, bytes);
        bytes /= double(ranks);
      }
    return seconds;
  }

  /// Once for all of the same shape and shardings, where there was a choice.
  void tell(dist::ReshardOp reshard, ReshardPlanner &planner,
            const ReshardPlan &plan, dist::MeshOp mesh) {
    auto from = dist::ShardingAttr::of(reshard.getInput().getType());
    auto to = dist::ShardingAttr::of(reshard.getType());
    if (to.isPartial() ||
        !told.insert({reshard.getInput().getType(), reshard.getType()}).second)
      return;
    RankedTensorType type = reshard.getType();
    double bytes = getTensorBytes(type);
    for (dist::AxesAttr axes : from.getDims())
      bytes /= double(mesh.getGroupSize(axes));
    double whole = getSecondsByWhole(planner, mesh, bytes, from, to);
    SmallVector<StringRef> names = llvm::map_to_vector(
        plan.steps, [](const ReshardStep &step) { return getName(step.kind); });
    if (names.empty() || whole <= plan.seconds)
      return;
    std::string of;
    llvm::raw_string_ostream(of)
        << RankedTensorType::get(type.getShape(), type.getElementType());
    cost::tell(getOperation(),
               {"reshard",
                of,
                {llvm::join(names, ", "), plan.seconds, std::nullopt, ""},
                {{"whole, then its part", whole, std::nullopt, ""}},
                "the fastest way from " + toText(from) + " to " + toText(to)});
  }

  static std::string toText(dist::ShardingAttr sharding) {
    std::string text;
    llvm::raw_string_ostream(text) << sharding;
    return text;
  }

  static StringRef getName(Exchange kind) {
    switch (kind) {
    case Exchange::AllGather:
      return "all_gather";
    case Exchange::AllSlice:
      return "all_slice";
    case Exchange::AllToAll:
      return "all_to_all";
    case Exchange::AllReduce:
      return "all_reduce";
    case Exchange::ReduceScatter:
      return "reduce_scatter";
    case Exchange::Permute:
      return "permute";
    }
    llvm_unreachable("all kinds are listed");
  }

  llvm::DenseSet<std::pair<Type, Type>> told;

  void runInOrder() override {
    told.clear();
    bool isAsked = cost::isAskedForDecisions(getOperation());
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
      if (isAsked)
        tell(reshard, *planner, plan, mesh);
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
