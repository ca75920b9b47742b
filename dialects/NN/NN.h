// The nn dialect for C++: include this to name any op, attribute or helper of
// it.

#ifndef ACCEL_DIALECTS_NN_NN_H
#define ACCEL_DIALECTS_NN_NN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace accel::nn {

/// Whether two type lists agree in shapes and element types, encodings aside.
bool sameShapesAndElements(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// Verifies that all operands have the result's shape.
mlir::LogicalResult verifyElementwise(mlir::Operation *op);

/// The element type of attention's log-sum-exp, for operands of `element`.
mlir::Type getLogSumExpType(mlir::Type element);

/// Ops whose result elements depend on the operands' elements in the same place
/// and on nothing else, the place included. Attributes only choose the
/// function.
template <typename ConcreteType>
class Elementwise : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return verifyElementwise(op);
  }
};

/// Names of the function argument and result attributes that bind a function to
/// the model: `nn.input = "name"`, `nn.output = "name"` (strings) and
/// `nn.state = @name` (symbol).
inline constexpr llvm::StringLiteral kInputAttr = "nn.input";
inline constexpr llvm::StringLiteral kOutputAttr = "nn.output";
inline constexpr llvm::StringLiteral kStateAttr = "nn.state";
/// Of a result that is a state's new value: a WriteKind, when it is written.
inline constexpr llvm::StringLiteral kWriteAttr = "nn.write";
/// Of a cast that mixed precision put there: why, in a few words.
inline constexpr llvm::StringLiteral kReasonAttr = "nn.reason";
/// Of a function that is an entry of the program: an EntryKind, or unit for a
/// forward (dialects/NN/Entry.h reads it).
inline constexpr llvm::StringLiteral kEntryAttr = "nn.entry";

} // namespace accel::nn

#include "dialects/NN/NNDialect.h.inc"
#include "dialects/NN/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/NN/NNOps.h.inc"

#endif // ACCEL_DIALECTS_NN_NN_H
