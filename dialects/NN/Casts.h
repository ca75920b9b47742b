// What a cast does to the numbers of its operand.

#ifndef ACCEL_DIALECTS_NN_CASTS_H
#define ACCEL_DIALECTS_NN_CASTS_H

#include "dialects/NN/NN.h"

namespace accel::nn {

/// Whether floats become floats of a type that has every number of theirs: none
/// changes, and adding before or after it is one sum.
inline bool isExact(CastOp cast) {
  auto from = llvm::dyn_cast<mlir::FloatType>(
      cast.getInput().getType().getElementType());
  auto to = llvm::dyn_cast<mlir::FloatType>(cast.getType().getElementType());
  return from && to &&
         llvm::APFloat::isRepresentableBy(from.getFloatSemantics(),
                                          to.getFloatSemantics());
}

/// Whether numbers of the type are cast and moved, and not computed with.
inline bool isCode(mlir::Type element) {
  return llvm::isa<mlir::Float8E8M0FNUType, mlir::Float8E4M3FNUZType,
                   mlir::Float8E5M2FNUZType, mlir::Float6E2M3FNType,
                   mlir::Float6E3M2FNType, mlir::Float4E2M1FNType>(element) ||
         element.isInteger(4) || element.isInteger(2);
}

/// Whether zero stays zero: f8E8M0FNU has none.
inline bool keepsZero(CastOp cast) {
  auto to = llvm::dyn_cast<mlir::FloatType>(cast.getType().getElementType());
  return !to || llvm::APFloat::semanticsHasZero(to.getFloatSemantics());
}

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_CASTS_H
