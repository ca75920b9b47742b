// Which operands of an op may be computed with in a narrower type.

#ifndef ACCEL_INTERFACES_CASTABLE_TD
#define ACCEL_INTERFACES_CASTABLE_TD

include "mlir/IR/OpBase.td"

def CastableOpInterface : OpInterface<"CastableOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    An op that gains from operands in bf16 or fp16 and still sums in f32: matrix
    products and attention. Ops without the interface keep the type they have.
  }];
  let methods = [
    InterfaceMethod<"The operands to be cast; the results then have the types that follow from theirs.",
      "::llvm::SmallVector<unsigned>", "getCastableOperands">,
    InterfaceMethod<"Why, in a few words: stands at each cast in the IR.",
      "::llvm::StringRef", "getCastReason">,
  ];
}

#endif
