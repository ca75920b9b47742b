// The learning rate of a step. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULE_H
#define ACCEL_LIB_AUTODIFF_SCHEDULE_H

#include "NNBuilder.h"
#include "UpdateRule.h"

namespace accel::autodiff {

/// The learning rate of step number `step` (rank-0 f64, from 1).
mlir::Value buildLearningRate(const NNBuilder &build, const UpdateRule &rule,
                              mlir::Value step);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULE_H
