// What an op means: its results for given operands, plainly computed.

#ifndef ACCEL_INTERFACES_EVALUATE_TD
#define ACCEL_INTERFACES_EVALUATE_TD

include "mlir/IR/OpBase.td"

def EvaluateOpInterface : OpInterface<"EvaluateOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    The reference meaning of an op, sharing no code with the kernels. Floats are
    computed in double; rounding to the op's own types is the caller's choice:
    call `accel::evaluateOp`, which also checks the operands, rather than this.
  }];
  let methods = [
    InterfaceMethod<"Appends one tensor per result, of the shape and element "
      "type of the result's type, floats unrounded. Requires operands of the "
      "operands' shapes and element types. Where the values have no meaning (an "
      "index out of range), emits an error at the op and fails.",
      "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<::accel::Tensor>":$operands,
           "::llvm::SmallVectorImpl<::accel::Tensor> &":$results)>,
  ];
}

#endif
