// What an op costs: the figures that placement, schedules and reports count in.

#ifndef ACCEL_INTERFACES_COST_TD
#define ACCEL_INTERFACES_COST_TD

include "mlir/IR/OpBase.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    The arithmetic of one execution of an op on the types it has: of the whole
    tensors before localisation, of one rank's after it.
  }];
  let methods = [
    InterfaceMethod<"Floating-point operations; a multiply-add counts as two.",
      "int64_t", "getFlops">,
  ];
}

#endif
