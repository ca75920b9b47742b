// How an op takes part in reverse-mode differentiation: its vector-Jacobian
// product.

#ifndef ACCEL_INTERFACES_DIFFERENTIABLE_TD
#define ACCEL_INTERFACES_DIFFERENTIABLE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    An op without this interface cannot stand between a loss and a trained
    parameter: differentiation refuses it by name. Rules are written in nn ops on
    unencoded types, before anything is placed.
  }];
  let methods = [
    InterfaceMethod<"Builds the vector-Jacobian product at `builder`. "
      "`gradients` has one value per result, null where the loss does not depend "
      "on it (at least one is not null); `wanted` says of which operands the "
      "gradient is asked. Sets `operandGradients[i]` (one per operand, null on "
      "entry) for the wanted ones that the results depend on, each of its "
      "operand's type. Emits an error at the op and fails where it cannot.",
      "::llvm::LogicalResult", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$gradients,
           "::llvm::ArrayRef<bool>":$wanted,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGradients)>,
  ];
}

#endif
