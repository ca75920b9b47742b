// How an op is emitted into a generated loop: one element at a time, on demand.

#ifndef ACCEL_INTERFACES_ELEMENTSOURCE_TD
#define ACCEL_INTERFACES_ELEMENTSOURCE_TD

include "mlir/IR/OpBase.td"

def ElementSourceOpInterface : OpInterface<"ElementSourceOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    An op with one result that can say, in scalar operations, what one element of
    its result is. It asks the builder (ElementBuilder.h), which the target of a
    kernel implements, for the elements of its operands that it needs, and for
    reductions, scans, scratch; what depends on outer indices only is built once
    for them, outside of the inner loops. KernelSource says which ops belong
    together; this says what code they are.
  }];
  let methods = [
    InterfaceMethod<"Builds the element of the result at `index` (i64 values, one "
      "per dimension, all within range) and returns it in the builder's type for "
      "computing with it.",
      "::mlir::Value", "emitElement",
      (ins "::accel::ElementBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$index)>,
  ];
}

#endif
