// How an op is emitted into a generated loop: one element at a time, on demand.

#ifndef ACCEL_INTERFACES_ELEMENTSOURCE_TD
#define ACCEL_INTERFACES_ELEMENTSOURCE_TD

include "mlir/IR/OpBase.td"

def ElementSourceOpInterface : OpInterface<"ElementSourceOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    An op with one result that can say, in scalar operations, what one element of
    its result is. It asks the emitter for the elements of its operands that it
    needs; what depends on outer indices only is emitted once for them, outside
    of the inner loops. KernelSource says which ops belong together; this says
    what code they are.
  }];
  let methods = [
    InterfaceMethod<"Emits the element of the result at `index` (i64 values, one "
      "per dimension, all within range) and returns it in the emitter's type for "
      "computing with it.",
      "::mlir::Value", "emitElement",
      (ins "::accel::RowEmitter &":$emitter, "::llvm::ArrayRef<::mlir::Value>":$index)>,
  ];
}

#endif
