// The programs of a plan, one for each stage of a pipeline: each is a text of
// its own, and what is done with one asks nothing of the others.

#ifndef ACCEL_DIALECTS_PLAN_FOREACHPROGRAM_H
#define ACCEL_DIALECTS_PLAN_FOREACHPROGRAM_H

#include "dialects/Plan/Plan.h"
#include "mlir/IR/Threading.h"

#include <atomic>

namespace accel::plan {

/// Calls `f(program)` on every program of a module, several at a time, and
/// fails if it does on any. All are looked at, and their errors come in the
/// programs' order, so that what is said does not depend on the threads. `f`
/// may change its program and read what surrounds it.
template <class F>
mlir::LogicalResult forEachProgram(mlir::ModuleOp module, F &&f) {
  llvm::SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
  std::atomic<bool> failed = false;
  mlir::parallelForEach(module.getContext(), programs, [&](ProgramOp program) {
    if (mlir::failed(f(program)))
      failed = true;
  });
  return mlir::failure(failed);
}

} // namespace accel::plan

#endif // ACCEL_DIALECTS_PLAN_FOREACHPROGRAM_H
