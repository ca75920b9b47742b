// The matrix product: batch dimensions, rows and columns pass through, the
// inner dimension is summed over.

#include "Group.h"
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
} // namespace

void parallel::attachLinearModels(MLIRContext *context) {
  nn::MatmulOp::attachInterface<MatmulRule>(*context);
}
