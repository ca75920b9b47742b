// The Evaluate interface: what an op means, on tensors in memory.

#ifndef ACCEL_DIALECTS_INTERFACES_EVALUATE_H
#define ACCEL_DIALECTS_INTERFACES_EVALUATE_H

#include "dialects/Tensor/Tensor.h"
#include "mlir/IR/OpDefinition.h"

namespace accel {

/// Whether float results keep the precision of double (`Float64`: for proofs)
/// or are rounded to their element type after each op (`OwnTypes`: as a machine
/// would hold them between ops).
enum class EvaluationMode { Float64, OwnTypes };

/// Evaluates one op. Appends one tensor per result to `results`. Emits an error
/// at the op and fails where the op has no EvaluateOpInterface, where an
/// operand is not of its type's shape and element type, or where the op refuses
/// the values.
llvm::LogicalResult evaluateOp(mlir::Operation *op,
                               llvm::ArrayRef<Tensor> operands,
                               EvaluationMode mode,
                               llvm::SmallVectorImpl<Tensor> &results);

} // namespace accel

#include "dialects/Interfaces/Evaluate.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_EVALUATE_H
