// What the ops that name a dimension check of it, in one sentence.

#ifndef ACCEL_DIALECTS_NN_NNDIMS_H
#define ACCEL_DIALECTS_NN_NNDIMS_H

#include "mlir/IR/Diagnostics.h"

namespace accel::nn {

/// Whether `least` <= `dim` < `rank`; says at `loc`, where there is one, what
/// 'dim' may be.
inline llvm::LogicalResult verifyDim(std::optional<mlir::Location> loc,
                                     int64_t dim, int64_t rank,
                                     int64_t least = 0) {
  if (dim >= least && dim < rank)
    return mlir::success();
  return mlir::emitOptionalError(loc, "expected 'dim' in [", least, ", ", rank,
                                 "), found ", dim);
}

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_NNDIMS_H
