// Which rows of a sequence ranks have where its attention is causal and a ring:
// each n-th, instead of one range.

#ifndef ACCEL_LIB_PARALLEL_SPLIT_STRIPEDROWS_H
#define ACCEL_LIB_PARALLEL_SPLIT_STRIPEDROWS_H

#include "RingRows.h"

namespace accel::parallel {

/// Gives each rank of an entry row i · n + r of the n rows of all ranks, r
/// being its number along the rings' axis, where that makes ranks' shares of
/// causal rings alike: turn by turn each has a triangle of scores. What reads
/// or writes rows in their own order, beside the rings, gets them put in it;
/// `rings` must all be made rings of afterwards. With a warning, nothing is
/// changed where rows cannot be followed through the program.
///
/// Brandon et al., Striped Attention, arXiv:2311.09431.
void stripeRows(mlir::func::FuncOp entry, llvm::ArrayRef<GatheredKeys> rings);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_SPLIT_STRIPEDROWS_H
