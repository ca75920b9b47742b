// Concatenations that no command makes: each piece is written where it belongs
// by the command that computes it.

#ifndef ACCEL_LIB_PLAN_LOWER_JOINEDCONCAT_H
#define ACCEL_LIB_PLAN_LOWER_JOINEDCONCAT_H

#include "Views.h"
#include "dialects/NN/NN.h"

namespace accel::plan {

/// A command's result, and where it lies in the concatenation that it is a
/// piece of.
struct ConcatPiece {
  mlir::Value result;
  StridedView view;
};

/// The pieces of `op`, if it is a concatenation of results of attention
/// (reshaped or permuted, perhaps), each of which nothing else reads and which
/// have rows without gaps there: so are the gradients of a fused projection.
/// Empty otherwise.
llvm::SmallVector<ConcatPiece> getConcatPieces(mlir::Operation *op);

/// The concatenation that `value` is a piece of, or null.
nn::ConcatOp findConcat(mlir::Value value);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_JOINEDCONCAT_H
