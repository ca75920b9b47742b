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

#include <cmath>

namespace accel::nn {

/// Whether two type lists agree in shapes and element types, encodings aside.
bool sameShapesAndElements(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// Verifies that all operands have the result's shape.
mlir::LogicalResult verifyElementwise(mlir::Operation *op);

/// Infers the type of operand `from`, after checking that the operands from
/// there on have one element type; for `inferBool`, of i1.
mlir::LogicalResult inferSame(std::optional<mlir::Location> loc,
                              mlir::ValueRange operands, unsigned from,
                              mlir::SmallVectorImpl<mlir::Type> &types);
mlir::LogicalResult inferBool(std::optional<mlir::Location> loc,
                              mlir::ValueRange operands,
                              mlir::SmallVectorImpl<mlir::Type> &types);
/// Of an op of one operand: its shape, of ui8.
mlir::LogicalResult inferCode(mlir::ValueRange operands,
                              llvm::SmallVectorImpl<mlir::Type> &types);

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

/// What the passes know of an elementwise function: declared with the op.
struct ElementwiseFacts {
  /// Operations per element.
  int64_t flops;
  /// Whether computing an element a second time costs no more than storing it
  /// and reading it back.
  bool isCheap;
  /// Groups of operands, as bits, in which together it is linear; 0: none.
  unsigned linearGroups[2];
};

/// Names of the function argument and result attributes that bind a function to
/// the model: `nn.input = "name"`, `nn.output = "name"` (strings) and
/// `nn.state = @name` (symbol).
inline constexpr llvm::StringLiteral kInputAttr = "nn.input";
inline constexpr llvm::StringLiteral kOutputAttr = "nn.output";
inline constexpr llvm::StringLiteral kStateAttr = "nn.state";
/// Of a result that is a state's new value: a WriteKind, when it is written;
/// in the step where it is not there.
inline constexpr llvm::StringLiteral kWriteAttr = "nn.write";
/// Of a cast that mixed precision put there: why, in a few words.
inline constexpr llvm::StringLiteral kReasonAttr = "nn.reason";
/// Of a product of a linear layer: a ProductAttr, its site and kind.
inline constexpr llvm::StringLiteral kProductAttr = "nn.product";
/// Of a product, unit: it divides a sum by the number of its terms, and so
/// makes it a mean. There where import was asked for it.
inline constexpr llvm::StringLiteral kMeanAttr = "nn.mean";
/// Of a function that is an entry of the program: an EntryKind, or unit for a
/// forward (dialects/NN/Entry.h reads it).
inline constexpr llvm::StringLiteral kEntryAttr = "nn.entry";

} // namespace accel::nn

#include "dialects/NN/NNDialect.h.inc"
#include "dialects/NN/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.h.inc"
#include "dialects/NN/NNSyntax.h"
#define GET_OP_CLASSES
#include "dialects/NN/NNOps.h.inc"

namespace accel::nn {

template <typename Op> struct OpTag { using type = Op; };

namespace detail {
template <typename... Ops, typename Fn> void visitElementwise(Fn &visit) {
  auto visitOne = [&](auto tag) {
    if constexpr (decltype(tag)::type::template hasTrait<Elementwise>())
      visit(tag);
  };
  (visitOne(OpTag<Ops>()), ...);
}
} // namespace detail

/// Calls `visit` with an OpTag for each elementwise op of the dialect: what
/// holds for all of them is said once, and none is forgotten.
template <typename Fn> void forEachElementwiseOp(Fn visit) {
  detail::visitElementwise<
#define GET_OP_LIST
#include "dialects/NN/NNOpList.inc"
      >(visit);
}

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_NN_H
