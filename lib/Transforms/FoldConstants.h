// Evaluation of nn ops on constants, for the importer and for passes.
#ifndef ACCEL_LIB_TRANSFORMS_FOLDCONSTANTS_H
#define ACCEL_LIB_TRANSFORMS_FOLDCONSTANTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace accel::transforms {

/// The value of an `nn.constant`, or null for anything else (a state, which
/// may hold the same numbers, is an argument and never meant).
mlir::DenseElementsAttr getConstantValue(mlir::Value value);

/// The value a constant holds everywhere, or none.
std::optional<double> getSplatValue(mlir::Value value);

/// The value without the dimensions along which it repeats itself: those have
/// size 1 in the result, which broadcasts back to the value.
mlir::DenseElementsAttr withoutRepeats(mlir::DenseElementsAttr value);

/// Simplifies an op with one result right after it was built: asks its folder,
/// then evaluates it (Evaluate models, rounded to the op's own type) if all its
/// operands are constants. Returns what stands for the result: the result
/// itself, another value, or a new `nn.constant` at `builder`'s insertion
/// point; the op is erased if it is not needed. Constants are not repeated to
/// many elements: such a result is an `nn.broadcast` of a constant, and
/// elementwise ops on such operands are evaluated on what is repeated. Null,
/// after an error, where the op refuses the constants it is given (an index out
/// of range). What takes more operations than `room` has stays an op; what is
/// evaluated is taken from it.
mlir::Value foldOrKeep(mlir::OpBuilder &builder, mlir::Operation *op,
                       int64_t *room = nullptr);

} // namespace accel::transforms

#endif // ACCEL_LIB_TRANSFORMS_FOLDCONSTANTS_H
