// The alignment that a pass was asked for, or else its target's.

#ifndef ACCEL_LIB_PLAN_ALIGNMENT_H
#define ACCEL_LIB_PLAN_ALIGNMENT_H

#include "accel/Target/TargetTable.h"

namespace accel::plan {

/// `asked`, or what `target` wants if that is 0. An error at the module if it
/// is no power of two, or there is no such target.
inline mlir::FailureOr<int64_t>
findAlignment(mlir::ModuleOp module, int64_t asked, llvm::StringRef target) {
  if (asked == 0) {
    mlir::FailureOr<const Target *> chosen = findTarget(module, target);
    if (failed(chosen))
      return mlir::failure();
    return (*chosen)->getAlignment();
  }
  if (asked < 1 || !llvm::isPowerOf2_64(asked))
    return module.emitError()
           << "expected a power of two as alignment, found " << asked;
  return asked;
}

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_ALIGNMENT_H
