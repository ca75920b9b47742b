// The attributes of losses whose rows are taken in chunks.

#ifndef ACCEL_DIALECTS_DIST_LOSSCHUNKS_H
#define ACCEL_DIALECTS_DIST_LOSSCHUNKS_H

#include "llvm/ADT/StringRef.h"

namespace accel::dist {

/// Of a nn.matmul that makes the logits of a loss, i64: into how many chunks
/// its rows are to be cut, and with them all that is done to logits. Written by
/// `dist-mark-loss-chunks`, removed by `dist-chunk-loss`.
inline constexpr llvm::StringLiteral kLossChunksAttr = "dist.loss_chunks";
/// Of an op that works on one of them, i64: which. Tasks keep the ops of all
/// chunks together, in the backward: it is what keeps few logits alive. What is
/// computed does not depend on it.
inline constexpr llvm::StringLiteral kLossChunkAttr = "dist.loss_chunk";

} // namespace accel::dist

#endif // ACCEL_DIALECTS_DIST_LOSSCHUNKS_H
