// What collectives mean, on the tensors of a group of ranks in the group's
// order; shared by `local` and `plan`.

#ifndef ACCEL_LIB_EVALUATE_COLLECTIVES_H
#define ACCEL_LIB_EVALUATE_COLLECTIVES_H

#include "dialects/Dist/Dist.h"
#include "dialects/Tensor/Tensor.h"

namespace accel::evaluate {

/// One tensor per rank of a group.
using GroupTensors = llvm::SmallVector<Tensor>;

/// All tensors combined element by element, in the order of the group.
Tensor combine(dist::Reduction kind, const GroupTensors &group);

/// The tensors joined along `dim`.
Tensor join(const GroupTensors &group, int64_t dim);

/// Chunk `index` of `count` equal ones of dimension `dim`.
Tensor takeChunk(const Tensor &tensor, int64_t dim, int64_t index,
                 int64_t count);

GroupTensors allReduce(dist::Reduction kind, const GroupTensors &group);
GroupTensors reduceScatter(dist::Reduction kind, const GroupTensors &group,
                           int64_t dim);
GroupTensors allGather(const GroupTensors &group, int64_t dim);
GroupTensors allToAll(const GroupTensors &group, int64_t splitDim,
                      int64_t concatDim);
GroupTensors permute(const GroupTensors &group,
                     llvm::ArrayRef<int64_t> sources);
/// `indices` are each rank's own; an error at `op` for one outside.
mlir::FailureOr<GroupTensors> fetchRows(mlir::Operation *op,
                                        const GroupTensors &group,
                                        const GroupTensors &indices);
GroupTensors broadcast(const GroupTensors &group, int64_t root);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_COLLECTIVES_H
