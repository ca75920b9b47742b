// Ops that move elements: dimensions that an op leaves alone pass through, and
// a reshape's are taken apart into factors that both shapes share.

#include "Group.h"
#include "Zeros.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"

#include <numeric>

using namespace mlir;
using namespace accel;

namespace {
/// Both shapes are cut into common factors from the left: [4, 11, 96] and
/// [44, 96] share 4, 11 and 96, the 44 being (4, 11). Where sizes do not divide
/// each other only the common divisor is shared, as the major factor: [12, 8]
/// and [8, 12] share 4, and chunks of a quarter hold the same elements.
struct ReshapeRule
    : ShardingRuleOpInterface::ExternalModel<ReshapeRule, nn::ReshapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0}};
    ArrayRef<int64_t> in = shapeOf(op->getOperand(0));
    ArrayRef<int64_t> out = shapeOf(op->getResult(0));
    // Nothing is known of an op whose operand has just been padded.
    if (llvm::is_contained(in, 0) ||
        ShapedType::getNumElements(in) != ShapedType::getNumElements(out))
      return rule;
    size_t i = 0, j = 0;
    int64_t inRest = in.empty() ? 1 : in[0];
    int64_t outRest = out.empty() ? 1 : out[0];
    auto nextIn = [&] { inRest = ++i < in.size() ? in[i] : 1; };
    auto nextOut = [&] { outRest = ++j < out.size() ? out[j] : 1; };
    while (i < in.size() && j < out.size()) {
      if (inRest == 1) {
        nextIn();
        continue;
      }
      if (outRest == 1) {
        nextOut();
        continue;
      }
      int64_t common = std::gcd(inRest, outRest);
      if (common > 1) {
        unsigned factor = rule.addFactor(common);
        rule.operands[0][i].push_back(factor);
        rule.results[0][j].push_back(factor);
        inRest /= common;
        outRest /= common;
      }
      // No common divisor left: skip to where both shapes have come equally
      // far.
      if (inRest > 1 && outRest > 1) {
        int64_t inTotal = inRest, outTotal = outRest;
        while (inTotal != outTotal) {
          if (inTotal < outTotal) {
            nextIn();
            inTotal *= inRest;
          } else {
            nextOut();
            outTotal *= outRest;
          }
        }
        inRest = outRest = 1;
      }
    }
    return rule;
  }
};

struct TransposeRule
    : ShardingRuleOpInterface::ExternalModel<TransposeRule, nn::TransposeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0}};
    auto permutation = cast<nn::TransposeOp>(op).getPermutation();
    for (auto [dim, from] : llvm::enumerate(permutation))
      rule.passThrough(shapeOf(op->getResult(0))[dim], 0, from, dim);
    return rule;
  }
};

struct BroadcastRule
    : ShardingRuleOpInterface::ExternalModel<BroadcastRule, nn::BroadcastOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0}};
    ArrayRef<int64_t> in = shapeOf(op->getOperand(0));
    ArrayRef<int64_t> out = shapeOf(op->getResult(0));
    size_t lead = out.size() - in.size();
    for (auto [dim, size] : llvm::enumerate(out)) {
      rule.results[0][dim] = {rule.addFactor(size)};
      if (dim >= lead && in[dim - lead] == size)
        rule.operands[0][dim - lead] = rule.results[0][dim];
    }
    return rule;
  }
};

/// Whole dimensions pass through; a dimension of which some is cut away is
/// whole on every rank.
struct SliceRule
    : ShardingRuleOpInterface::ExternalModel<SliceRule, nn::SliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto slice = cast<nn::SliceOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0}};
    rule.indexFree = false;
    for (auto [dim, size] : llvm::enumerate(shapeOf(slice.getInput())))
      if (slice.getSizes()[dim] == size && slice.getSteps()[dim] == 1)
        rule.passThrough(size, 0, dim, dim);
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    // Sharded dimensions are whole ones: only their sizes change.
    auto slice = cast<nn::SliceOp>(op);
    results.push_back(nn::SliceOp::create(
        builder, op->getLoc(), types[0], operands[0], slice.getStarts(),
        cast<RankedTensorType>(types[0]).getShape(), slice.getSteps()));
    return success();
  }
};

struct ConcatRule
    : ShardingRuleOpInterface::ExternalModel<ConcatRule, nn::ConcatOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto concat = cast<nn::ConcatOp>(op);
    auto rule = ShardingRule::getWhole(op);
    for (auto [dim, size] : llvm::enumerate(shapeOf(concat.getResult()))) {
      if (dim == concat.getDim())
        continue;
      rule.results[0][dim] = {rule.addFactor(size)};
      for (ShardingRule::Tensor &operand : rule.operands)
        operand[dim] = rule.results[0][dim];
    }
    auto &all = rule.linearGroups.emplace_back();
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      all.push_back(operand);
    return rule;
  }
};

struct PadRule : ShardingRuleOpInterface::ExternalModel<PadRule, nn::PadOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto pad = cast<nn::PadOp>(op);
    auto rule = ShardingRule::getWhole(op);
    if (parallel::isZeros(pad.getValue()))
      rule.linearGroups = {{0}}; // any other value would count once per rank
    for (auto [dim, size] : llvm::enumerate(shapeOf(pad.getInput())))
      if (pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0)
        rule.passThrough(size, 0, dim, dim);
    return rule;
  }
};

/// Batch dimensions are common to table, indices and result; those that index
/// tuples point into are whole.
} // namespace

void parallel::attachShapeModels(MLIRContext *context) {
  nn::ReshapeOp::attachInterface<ReshapeRule>(*context);
  nn::TransposeOp::attachInterface<TransposeRule>(*context);
  nn::BroadcastOp::attachInterface<BroadcastRule>(*context);
  nn::SliceOp::attachInterface<SliceRule>(*context);
  nn::ConcatOp::attachInterface<ConcatRule>(*context);
  nn::PadOp::attachInterface<PadRule>(*context);
}
