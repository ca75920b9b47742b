// Constants and counters: every dimension may be sharded; a rank takes its
// piece by its own coordinates.

#include "Group.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

/// Every dimension of the result is a factor.
static ShardingRule everyDimension(Operation *op) {
  auto rule = ShardingRule::getWhole(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    rule.results[0][dim] = {rule.addFactor(size)};
  rule.indexFree = false;
  return rule;
}

namespace {
struct ConstantRule
    : ShardingRuleOpInterface::ExternalModel<ConstantRule, nn::ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return everyDimension(op);
  }

  /// Equal values need no slicing; others stay whole in the program, and each
  /// rank slices its piece.
  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto constant = cast<nn::ConstantOp>(op);
    auto local = cast<RankedTensorType>(types[0]);
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue())) {
      results.push_back(nn::ConstantOp::create(builder, op->getLoc(), local,
                                               splat.resizeSplat(local)));
      return success();
    }
    RankedTensorType global = constant.getType();
    auto sharding = dist::ShardingAttr::of(global);
    SmallVector<int64_t> shape(global.getShape());
    Value piece = nn::ConstantOp::create(
        builder, op->getLoc(),
        RankedTensorType::get(shape, global.getElementType()),
        constant.getValue());
    for (auto [dim, axes] : llvm::enumerate(sharding.getDims())) {
      if (shape[dim] == local.getDimSize(dim))
        continue;
      shape[dim] = local.getDimSize(dim);
      piece = dist::AllSliceOp::create(
          builder, op->getLoc(),
          RankedTensorType::get(shape, global.getElementType()), piece,
          sharding.getMesh().getValue(), axes, dim);
    }
    results.push_back(piece);
    return success();
  }
};

struct IotaRule : ShardingRuleOpInterface::ExternalModel<IotaRule, nn::IotaOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return everyDimension(op);
  }

  /// Counts from the rank's own offset: its number along the axes times the
  /// size of a piece.
  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto iota = cast<nn::IotaOp>(op);
    auto local = cast<RankedTensorType>(types[0]);
    Location loc = op->getLoc();
    Value count =
        nn::IotaOp::create(builder, loc, local, iota.getDim(), iota.getStart());
    int64_t piece = local.getDimSize(iota.getDim());
    if (piece != iota.getType().getDimSize(iota.getDim())) {
      auto sharding = dist::ShardingAttr::of(iota.getType());
      auto scalar = RankedTensorType::get({}, builder.getI64Type());
      Value index = dist::AxisIndexOp::create(
          builder, loc, scalar, sharding.getMesh().getValue(),
          sharding.getDims()[iota.getDim()]);
      Value size = nn::ConstantOp::create(
          builder, loc, DenseElementsAttr::get(scalar, piece));
      Value offset = nn::MulOp::create(builder, loc, scalar, index, size);
      if (!local.getElementType().isInteger(64))
        offset = nn::CastOp::create(
            builder, loc, RankedTensorType::get({}, local.getElementType()),
            offset);
      offset = nn::BroadcastOp::create(builder, loc, local, offset);
      count = nn::AddOp::create(builder, loc, local, count, offset);
    }
    results.push_back(count);
    return success();
  }
};
} // namespace

void parallel::attachStateModels(MLIRContext *context) {
  nn::ConstantOp::attachInterface<ConstantRule>(*context);
  nn::IotaOp::attachInterface<IotaRule>(*context);
}
