// The passes that choose in which types a program computes.

#ifndef ACCEL_PRECISION_PASSES_TD
#define ACCEL_PRECISION_PASSES_TD

include "mlir/Pass/PassBase.td"

def NarrowProductsPass : Pass<"nn-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "Computes products and attention in 16 bits";
  let description = [{
    Ops that implement Castable get their f32 operands cast to `type`, and their
    results cast back, so that everything else (norms, softmax of losses, sums,
    updates) stays in f32, and states keep their type: the weights in f32 are the
    master weights. A value is cast once, above the ops that only view it (the
    query, key and value of one product share a cast). Each cast says why it is
    there (`nn.reason`). Runs on the forward program, before differentiation:
    the vector-Jacobian product of a cast is the cast back, so the products of
    the backward are narrow as well, and gradients of weights are f32 before
    anything adds them up. What torch.autocast does, as rewrites to be read.
    Gradients in f16 vanish without a scaled loss (`scaler.type`).

    ```mlir
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    // becomes
    %0 = nn.cast %x {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %1 = nn.cast %w {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<8x2xf32>) -> tensor<8x2xbf16>
    %2 = nn.matmul %0, %1 : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %y = nn.cast %2 {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<4x2xbf16>) -> tensor<4x2xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">];
}

def DeclareWirePass : Pass<"train-declare-wire", "::mlir::ModuleOp"> {
  let summary = "Says in which type data-parallel ranks send their terms of gradients";
  let description = [{
    Writes `accel.gradient_wire` on a module that has a training step: what
    `dist-compress-gradients` obeys, and what the proof of one rank's program takes for
    a rounding that was asked for. It changes no op: on one rank no gradient is sent.

    ```mlir
    module attributes {accel.gradient_wire = bf16} { … }
    ```
  }];
  let dependentDialects = ["::accel::AccelDialect"];
  let options = [Option<"hook", "hook", "std::string", "\"no\"", "no, fp16 or bf16: what `comm_hook` of PyTorch's DDP is">];
}

#endif
