// The axes over whose ranks the states of a step are shared.

#ifndef ACCEL_LIB_PARALLEL_STATES_SHARINGAXES_H
#define ACCEL_LIB_PARALLEL_STATES_SHARINGAXES_H

#include "dialects/Dist/Dist.h"

namespace accel::parallel {

/// Axes along which every rank would have the same states, and a term of each
/// gradient: `dp_shard`, whose ranks have other rows, and `cp` and `sp`, whose
/// ranks have other positions. In the order in which pieces of states are
/// numbered, major to minor; of one rank each are left out. So do PyTorch's
/// FSDP2 under Accelerate (the mesh `dp_shard_cp`), DeepSpeed (its
/// sequence-data-parallel group) and Megatron-LM (data parallel with context
/// parallel) share them. Along `dp_replicate` states are whole, along `tp` each
/// rank has its own. The axis of groups (`dist-annotate`) comes last: what a
/// rank has of its group's copy is a range of what it has of the tensor.
llvm::SmallVector<llvm::StringRef> getSharingAxes(dist::MeshOp mesh);
/// How many ranks these are.
int64_t countSharers(dist::MeshOp mesh);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STATES_SHARINGAXES_H
