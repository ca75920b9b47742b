// What a schedule makes of the hyperparameters of each group in a step. Private
// to the library.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULE_H
#define ACCEL_LIB_AUTODIFF_SCHEDULE_H

#include "UpdateRule.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

namespace accel::autodiff {

/// The hyperparameters of steps, group by group.
class Schedules {
public:
  /// `step`: the number of the step (rank-0 f64, from 1).
  Schedules(const NNBuilder &build, const UpdateRule &rule, mlir::Value step);

  /// The learning rate of `optimizer.lr`: rank-0 f64.
  mlir::Value getRate() const { return rate; }
  /// What the update of a group of these numbers reads; `own` outlives it.
  GroupScalars buildGroup(const OptimizerRule &own) const;

private:
  mlir::Value buildGroupRate(const OptimizerRule &own) const;

  NNBuilder build;
  const UpdateRule &rule;
  mlir::Value step, rate, momentum, decay;
};

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULE_H
