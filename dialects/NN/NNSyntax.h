// Parts of the text of nn ops that several share, or that is shorter than what
// is stored: the directives `custom<...>` of their assembly formats.

#ifndef ACCEL_DIALECTS_NN_NNSYNTAX_H
#define ACCEL_DIALECTS_NN_NNSYNTAX_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/OpImplementation.h"

namespace accel::nn {

/// Types of operands and of the result. OneType: where all agree it is written
/// once, `nn.add %a, %b : tensor<8x2xf32>`. PredicateType: the operands' type,
/// of a result that is its i1. SelectType: the result's type, of a condition
/// that is its i1. Anything else is a function type.
mlir::ParseResult parseOneType(mlir::OpAsmParser &parser, mlir::Type &operand,
                               mlir::Type &result);
mlir::ParseResult parseOneType(mlir::OpAsmParser &parser, mlir::Type &lhs,
                               mlir::Type &rhs, mlir::Type &result);
mlir::ParseResult parsePredicateType(mlir::OpAsmParser &parser,
                                     mlir::Type &operand, mlir::Type &result);
mlir::ParseResult parsePredicateType(mlir::OpAsmParser &parser, mlir::Type &lhs,
                                     mlir::Type &rhs, mlir::Type &result);
mlir::ParseResult parseSelectType(mlir::OpAsmParser &parser,
                                  mlir::Type &condition, mlir::Type &onTrue,
                                  mlir::Type &onFalse, mlir::Type &result);
void printOneType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                  mlir::Type operand, mlir::Type result);
void printOneType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                  mlir::Type lhs, mlir::Type rhs, mlir::Type result);
void printPredicateType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                        mlir::Type operand, mlir::Type result);
void printPredicateType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                        mlir::Type lhs, mlir::Type rhs, mlir::Type result);
void printSelectType(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::Type condition, mlir::Type onTrue,
                     mlir::Type onFalse, mlir::Type result);

/// A constant and its type, written once: the value's type is the result's
/// without its encoding.
mlir::ParseResult parseConstantValue(mlir::OpAsmParser &parser,
                                     mlir::ElementsAttr &value,
                                     mlir::Type &result);
void printConstantValue(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                        mlir::ElementsAttr value, mlir::Type result);

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_NNSYNTAX_H
