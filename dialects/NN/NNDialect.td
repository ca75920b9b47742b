// The nn dialect: what is computed, on whole tensors, and nothing else.

#ifndef ACCEL_NN_DIALECT_TD
#define ACCEL_NN_DIALECT_TD

include "mlir/IR/OpBase.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::accel::nn";
  let summary = "What a model computes: tensors of whatever shape, states by name";
  let description = [{
    `nn` says *what* is computed. Values are statically shaped tensors; a state
    (parameter, moment, buffer) is a symbol, and enters and leaves functions as
    an operand and a result. There are no devices, no bytes and no order here.

    Broadcasting is explicit (`nn.broadcast`), means are sums times a constant,
    and every op carries the name of the ONNX node it came from as its location.

    The same ops serve three phases: with plain types in `nn` and `train`, with
    `#dist.sharding` encodings on the types in `dist`, and with local shapes in
    `local`. Verifiers therefore compare shapes and element types, and leave
    encodings to the verifier of the phase.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

#endif
