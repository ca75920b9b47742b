// What all sharding rules share.

#include "dialects/Interfaces/ShardingRule.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;

#include "dialects/Interfaces/ShardingRule.cpp.inc"

ShardingRule ShardingRule::getWhole(Operation *op) {
  ShardingRule rule;
  for (Type type : op->getOperandTypes())
    rule.operands.emplace_back(cast<RankedTensorType>(type).getRank());
  for (Type type : op->getResultTypes())
    rule.results.emplace_back(cast<RankedTensorType>(type).getRank());
  return rule;
}

unsigned ShardingRule::addFactor(int64_t size, FactorKind kind) {
  factors.push_back({size, kind});
  return factors.size() - 1;
}

void ShardingRule::passThrough(int64_t size, unsigned operand,
                               unsigned operandDim, unsigned resultDim) {
  unsigned factor = addFactor(size);
  operands[operand][operandDim] = {factor};
  results[0][resultDim] = {factor};
}

LogicalResult accel::localizeIndexFree(Operation *op, OpBuilder &builder,
                                       ValueRange operands, TypeRange types,
                                       SmallVectorImpl<Value> &results) {
  if (!cast<ShardingRuleOpInterface>(op).getShardingRule().indexFree)
    return op->emitOpError()
           << "depends on indices and has no rule for one rank's piece";
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *local = op->clone(mapping);
  for (auto [result, type] : llvm::zip_equal(local->getResults(), types))
    result.setType(type);
  builder.insert(local);
  llvm::append_range(results, local->getResults());
  return success();
}
