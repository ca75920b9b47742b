// What becomes of partial results in an op.

#ifndef ACCEL_LIB_PARALLEL_PROPAGATION_PARTIALSUMS_H
#define ACCEL_LIB_PARALLEL_PROPAGATION_PARTIALSUMS_H

#include "FactorAxes.h"

namespace accel::parallel {

/// The axes over which an op's results are partial, and how they combine.
struct PartialAxes {
  AxisList axes;
  dist::Reduction reduction = dist::Reduction::sum;
};

/// The axes that the op's reduced factors are split over. Fails, without a
/// message, if they combine in different ways.
mlir::FailureOr<PartialAxes>
getReducedAxes(const ShardingRule &rule, llvm::ArrayRef<AxisList> factorAxes);

/// Those of the reduced axes that a result is partial over: they split factors
/// which do not stand in it.
AxisList getPartialAxes(const PartialAxes &reduced,
                        llvm::ArrayRef<AxisList> factorAxes,
                        const ShardingRule::Tensor &result);

/// Whether operands that are partial sums over `axis` may stay so: exactly
/// those of one linear group are, no factor is split over it, and results are
/// summed. `operands` are the shardings of the op's operands.
bool passesPartial(const ShardingRule &rule,
                   llvm::ArrayRef<AxisList> factorAxes,
                   const PartialAxes &reduced,
                   llvm::ArrayRef<dist::ShardingAttr> operands,
                   mlir::StringAttr axis);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_PROPAGATION_PARTIALSUMS_H
