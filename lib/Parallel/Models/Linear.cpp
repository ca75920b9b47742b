// Matrix products: batch dimensions, rows and columns pass through, the inner
// dimension is summed over. Of grouped ones any row may be in any group: where
// ranks have different groups' matrices, rows go to them. Iterations of
// products are of whole matrices.

#include "DealRows.h"
#include "Group.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
struct MatmulRule
    : ShardingRuleOpInterface::ExternalModel<MatmulRule, nn::MatmulOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto matmul = cast<nn::MatmulOp>(op);
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> lhs = matmul.getLhs().getType().getShape();
    ArrayRef<int64_t> result = matmul.getResult().getType().getShape();
    unsigned rank = lhs.size();
    unsigned rhsRank = matmul.getRhs().getType().getRank();
    for (unsigned dim = 0; dim + 2 < rank; ++dim) {
      unsigned batch = rule.addFactor(lhs[dim]);
      rule.operands[0][dim] = rule.results[0][dim] = {batch};
      if (rhsRank > 2)
        rule.operands[1][dim] = {batch};
    }
    unsigned rows = rule.addFactor(result[rank - 2]);
    unsigned columns = rule.addFactor(result[rank - 1]);
    unsigned swapLhs = matmul.getTransposeLhs();
    unsigned swapRhs = matmul.getTransposeRhs();
    unsigned inner = rule.addFactor(lhs[rank - 1 - swapLhs], FactorKind::Sum);
    rule.operands[0][rank - 2 + swapLhs] = {rows};
    rule.operands[0][rank - 1 - swapLhs] = {inner};
    rule.operands[1][rhsRank - 2 + swapRhs] = {inner};
    rule.operands[1][rhsRank - 1 - swapRhs] = {columns};
    rule.results[0][rank - 2] = {rows};
    rule.results[0][rank - 1] = {columns};
    rule.linearGroups = {{0}, {1}};
    return rule;
  }
};

/// Matrices pass through, each of them whole.
struct NewtonSchulzRule
    : ShardingRuleOpInterface::ExternalModel<NewtonSchulzRule,
                                             nn::NewtonSchulzOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> batch =
        cast<nn::NewtonSchulzOp>(op).getInput().getType().getShape().drop_back(
            2);
    for (auto [dim, size] : llvm::enumerate(batch))
      rule.passThrough(size, 0, dim, dim);
    return rule;
  }

  /// By its definition, in products, which targets know.
  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto iterations = cast<nn::NewtonSchulzOp>(op);
    Location loc = op->getLoc();
    Value x = operands[0];
    ArrayRef<int64_t> sizes =
        cast<RankedTensorType>(x.getType()).getShape().take_back(2);
    bool isTall = sizes[0] > sizes[1];
    auto multiply = [&](Value a, Value b, bool transposeA = false,
                        bool transposeB = false) -> Value {
      return nn::MatmulOp::create(builder, loc, a, b, transposeA, transposeB);
    };
    auto scale = [&](Value value, double factor) -> Value {
      auto type = cast<RankedTensorType>(value.getType());
      Attribute number = builder.getFloatAttr(type.getElementType(), factor);
      return nn::MulOp::create(
          builder, loc, value,
          nn::ConstantOp::create(builder, loc,
                                 DenseElementsAttr::get(type, number)));
    };
    ArrayRef<double> factors = iterations.getCoefficients();
    for (uint64_t step = 0; step < iterations.getSteps(); ++step) {
      Value gram = multiply(x, x, isTall, !isTall);
      Value polynomial =
          nn::AddOp::create(builder, loc, scale(gram, factors[1]),
                            scale(multiply(gram, gram), factors[2]));
      Value product =
          isTall ? multiply(x, polynomial) : multiply(polynomial, x);
      x = nn::AddOp::create(builder, loc, scale(x, factors[0]), product);
    }
    results.push_back(x);
    return success();
  }
};

/// The axes whose ranks have different groups of `matrices`, if they have
/// different `rows` as well; null if not.
static dist::AxesAttr findDealingAxes(Value matrices, Value rows) {
  dist::AxesAttr axes = dist::ShardingAttr::of(matrices.getType()).getDims()[0],
                 ofRows = dist::ShardingAttr::of(rows.getType()).getDims()[0];
  bool areDealt =
      !axes.empty() && llvm::all_of(axes.getNames(), [&](StringAttr axis) {
        return ofRows.contains(axis);
      });
  return areDealt ? axes : dist::AxesAttr();
}

/// The matrices of all groups, of which each rank has some.
static Value gatherGroups(OpBuilder &builder, Location loc, Value own,
                          Value whole) {
  auto sharding = dist::ShardingAttr::of(whole.getType());
  dist::AxesAttr axes = sharding.getDims()[0];
  if (axes.empty())
    return own;
  auto type = cast<RankedTensorType>(own.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = cast<RankedTensorType>(whole.getType()).getDimSize(0);
  return dist::AllGatherOp::create(builder, loc, type.clone(shape), own,
                                   sharding.getMesh().getValue(), axes,
                                   /*dim=*/0, TypeAttr());
}

struct GroupedMatmulRule
    : ShardingRuleOpInterface::ExternalModel<GroupedMatmulRule,
                                             nn::GroupedMatmulOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto matmul = cast<nn::GroupedMatmulOp>(op);
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> result = matmul.getType().getShape();
    unsigned rows = rule.addFactor(result[0]),
             columns = rule.addFactor(result[1]);
    unsigned inner = rule.addFactor(matmul.getLhs().getType().getDimSize(1),
                                    FactorKind::Sum);
    unsigned swap = matmul.getTransposeRhs();
    rule.operands[0][0] = rule.operands[2][0] = rule.results[0][0] = {rows};
    rule.operands[0][1] = rule.operands[1][1 + swap] = {inner};
    rule.operands[1][2 - swap] = rule.results[0][1] = {columns};
    rule.operands[1][0] = {rule.addFactor(
        matmul.getRhs().getType().getDimSize(0), FactorKind::Exchanged)};
    rule.numbered = rule.operands[1][0];
    rule.linearGroups = {{0}, {1}};
    rule.indexFree = false;
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto matmul = cast<nn::GroupedMatmulOp>(op);
    if (dist::AxesAttr axes =
            findDealingAxes(matmul.getRhs(), matmul.getLhs())) {
      parallel::DealtRows dealt(
          builder, op->getLoc(),
          dist::MeshOp::of(op->getParentOfType<ModuleOp>()), axes, operands[2],
          matmul.getRhs().getType().getDimSize(0));
      Value rows = dealt.send(operands[0]);
      auto type = cast<RankedTensorType>(types[0]);
      int64_t room = cast<RankedTensorType>(rows.getType()).getDimSize(0);
      results.push_back(dealt.bringBack(nn::GroupedMatmulOp::create(
          builder, op->getLoc(), type.clone({room, type.getDimSize(1)}), rows,
          operands[1], dealt.getOwn(), matmul.getTransposeRhs())));
      return success();
    }
    Value matrices =
        gatherGroups(builder, op->getLoc(), operands[1], matmul.getRhs());
    results.push_back(nn::GroupedMatmulOp::create(
        builder, op->getLoc(), types[0], operands[0], matrices, operands[2],
        matmul.getTransposeRhs()));
    return success();
  }
};

struct GroupedMatmulGradRule
    : ShardingRuleOpInterface::ExternalModel<GroupedMatmulGradRule,
                                             nn::GroupedMatmulGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto matmul = cast<nn::GroupedMatmulGradOp>(op);
    auto rule = ShardingRule::getWhole(op);
    ArrayRef<int64_t> result = matmul.getType().getShape();
    unsigned rows = rule.addFactor(matmul.getLhs().getType().getDimSize(0),
                                   FactorKind::Sum);
    for (unsigned operand = 0; operand < 3; ++operand)
      rule.operands[operand][0] = {rows};
    rule.passThrough(result[1], 0, 1, 1);
    rule.passThrough(result[2], 1, 1, 2);
    rule.results[0][0] = {rule.addFactor(result[0], FactorKind::Exchanged)};
    rule.linearGroups = {{0}, {1}};
    rule.indexFree = false;
    return rule;
  }

  /// Over axes that split rows as well, ranks have terms of all groups' sums;
  /// over others they have all of them.
  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto matmul = cast<nn::GroupedMatmulGradOp>(op);
    auto own = cast<RankedTensorType>(types[0]);
    if (dist::AxesAttr axes =
            findDealingAxes(op->getResult(0), matmul.getLhs())) {
      parallel::DealtRows dealt(
          builder, op->getLoc(),
          dist::MeshOp::of(op->getParentOfType<ModuleOp>()), axes, operands[2],
          matmul.getNumGroups());
      results.push_back(nn::GroupedMatmulGradOp::create(
          builder, op->getLoc(), own, dealt.send(operands[0]),
          dealt.send(operands[1]), dealt.getOwn(), own.getDimSize(0)));
      return success();
    }
    SmallVector<int64_t> shape(own.getShape());
    shape[0] = matmul.getNumGroups();
    Value sums = nn::GroupedMatmulGradOp::create(
        builder, op->getLoc(), own.clone(shape), operands[0], operands[1],
        operands[2], matmul.getNumGroups());
    auto sharding = dist::ShardingAttr::of(op->getResult(0).getType());
    auto rows = dist::ShardingAttr::of(matmul.getLhs().getType()).getDims()[0];
    StringRef mesh = sharding.getMesh().getValue();
    // Major to minor, as pieces are numbered.
    for (StringAttr axis : sharding.getDims()[0].getNames()) {
      auto axes = dist::AxesAttr::get(op->getContext(), axis, /*open=*/false);
      shape[0] /= *dist::MeshOp::lookup(op, sharding.getMesh())
                       .findAxisSize(axis.getValue());
      if (rows.contains(axis))
        sums = dist::ReduceScatterOp::create(
            builder, op->getLoc(), own.clone(shape), dist::Reduction::sum, sums,
            mesh, axes, /*dim=*/0, TypeAttr());
      else
        sums = dist::AllSliceOp::create(builder, op->getLoc(), own.clone(shape),
                                        sums, mesh, axes, /*dim=*/0);
    }
    results.push_back(sums);
    return success();
  }
};
} // namespace

void parallel::attachLinearModels(MLIRContext *context) {
  nn::GroupedMatmulOp::attachInterface<GroupedMatmulRule>(*context);
  nn::GroupedMatmulGradOp::attachInterface<GroupedMatmulGradRule>(*context);
  nn::MatmulOp::attachInterface<MatmulRule>(*context);
  nn::NewtonSchulzOp::attachInterface<NewtonSchulzRule>(*context);
}
