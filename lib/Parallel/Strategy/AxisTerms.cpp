// Finds terms op by op, as dist-materialize will make them.

#include "AxisTerms.h"

#include "dialects/Interfaces/ShardingRule.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

AxisTerms::AxisTerms(func::FuncOp entry, dist::MeshOp mesh, StringRef axis)
    : mesh(mesh), table(entry),
      axis(StringAttr::get(entry.getContext(), axis)) {
  // In the order of the block: what an op gets is known when it is seen.
  for (Operation &op : entry.front()) {
    auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
    if (shardable &&
        (isCarried(&op) || isSummed(&op, shardable.getShardingRule())))
      terms.insert_range(op.getResults());
  }
}

bool AxisTerms::isCarried(Operation *op) const {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable)
    return false;
  SmallVector<unsigned, 2> those;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (terms.contains(operand))
      those.push_back(index);
  return llvm::is_contained(shardable.getShardingRule().linearGroups, those);
}

/// Whether the op's results are sums over the axis.
bool AxisTerms::isSummed(Operation *op, const ShardingRule &rule) const {
  SmallVector<TensorAxes> tensors;
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  for (Value value : values) {
    TensorAxes &axes = tensors.emplace_back();
    const Propagation::Entry &known = table.lookup(value);
    axes.fixed = known.fixed;
    axes.wishes = table.getWishes(value);
    bool speaks = tensors.size() > rule.operands.size() || !isSilent(op, value);
    for (const Propagation::Dim &dim : known.dims)
      axes.dims.push_back(speaks ? dim.axes : AxisList());
  }
  AxisLists chosen = chooseFactorAxes(mesh, op, rule, tensors);
  return llvm::any_of(llvm::zip(rule.factors, chosen), [&](auto each) {
    auto &[factor, axes] = each;
    return factor.kind == FactorKind::Sum && llvm::is_contained(axes, axis);
  });
}
