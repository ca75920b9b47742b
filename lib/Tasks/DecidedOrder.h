// The order of a pipeline's tasks as the module's decisions say it, where no
// name does: `order` of `accel.decisions`, of each stage a text such as
// "F0[0] F0[1] B0[0] B0[1]".

#ifndef ACCEL_LIB_TASKS_DECIDEDORDER_H
#define ACCEL_LIB_TASKS_DECIDEDORDER_H

#include "lib/Pipeline/Schedule.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel::tasks {

inline constexpr llvm::StringLiteral kOrderKey = "order";

/// The texts of a schedule whose chunk c lies on stage c.
mlir::ArrayAttr writeOrder(mlir::Builder &builder,
                           const pipeline::Schedule &schedule);

/// Reads them, of so many stages and micro-batches, and proves the order: each
/// chunk goes through each micro-batch once, forward and backward, what a task
/// needs is before it, and the step ends. Errors, at `at`: there is none; a
/// text that is none; an order that is none.
mlir::FailureOr<pipeline::Schedule> readOrder(mlir::Operation *at,
                                              mlir::DictionaryAttr decisions,
                                              int64_t stages,
                                              int64_t microBatches);

} // namespace accel::tasks

#endif // ACCEL_LIB_TASKS_DECIDEDORDER_H
