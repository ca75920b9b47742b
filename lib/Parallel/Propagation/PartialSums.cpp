// What becomes of partial results in an op.

#include "PartialSums.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

FailureOr<PartialAxes> parallel::getReducedAxes(const ShardingRule &rule,
                                                ArrayRef<AxisList> factorAxes) {
  PartialAxes reduced;
  for (auto [factor, axes] : llvm::zip(rule.factors, factorAxes)) {
    if (axes.empty() || factor.kind == FactorKind::PassThrough ||
        factor.kind == FactorKind::Inside ||
        factor.kind == FactorKind::Exchanged)
      continue;
    dist::Reduction kind = factor.kind == FactorKind::Sum ? dist::Reduction::sum
                           : factor.kind == FactorKind::Max
                               ? dist::Reduction::max
                               : dist::Reduction::min;
    if (!reduced.axes.empty() && reduced.reduction != kind)
      return failure();
    reduced.reduction = kind;
    llvm::append_range(reduced.axes, axes);
  }
  return reduced;
}

AxisList parallel::getPartialAxes(const PartialAxes &reduced,
                                  ArrayRef<AxisList> factorAxes,
                                  const ShardingRule::Tensor &result) {
  AxisList axes = reduced.axes;
  for (const ShardingRule::Dim &dim : result)
    for (StringAttr axis : joinFactors(dim, factorAxes))
      llvm::erase(axes, axis);
  return axes;
}

bool parallel::passesPartial(const ShardingRule &rule,
                             ArrayRef<AxisList> factorAxes,
                             const PartialAxes &reduced,
                             ArrayRef<dist::ShardingAttr> operands,
                             StringAttr axis) {
  if (!reduced.axes.empty() && reduced.reduction != dist::Reduction::sum)
    return false;
  if (!rule.passesMicroBatches && axis == dist::MeshOp::kMicroBatchAxis)
    return false;
  if (llvm::any_of(factorAxes, [&](const AxisList &axes) {
        return llvm::is_contained(axes, axis);
      }))
    return false;
  SmallVector<unsigned, 2> partial;
  for (auto [index, sharding] : llvm::enumerate(operands)) {
    if (!sharding.getPartial().contains(axis))
      continue;
    if (sharding.getReduction() != dist::Reduction::sum)
      return false;
    partial.push_back(index);
  }
  return llvm::is_contained(rule.linearGroups, partial);
}
