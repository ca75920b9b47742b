// The axes of tensor parallelism.

#ifndef ACCEL_LIB_PARALLEL_STRATEGY_TENSORAXES_H
#define ACCEL_LIB_PARALLEL_STRATEGY_TENSORAXES_H

#include "dialects/Dist/Dist.h"

namespace accel::parallel {

/// Major to `tp`: the axis over which key heads are split, where several ranks
/// share one (`dist-share-key-heads`).
inline constexpr llvm::StringLiteral kKeyHeadsAxis = "tp_kv";

/// The axes that tensor-parallel ranks are arranged along, major to minor; none
/// if there is one such rank.
llvm::SmallVector<llvm::StringRef, 2> getTensorAxes(dist::MeshOp mesh);
/// How many ranks these are.
int64_t countTensorRanks(dist::MeshOp mesh);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STRATEGY_TENSORAXES_H
