// The type in which ranks send gradients is declared by the step, before it is split.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/step.mlir --train-declare-wire=hook=bf16 | FileCheck %s --check-prefix=BF16
// BF16: module attributes {accel.gradient_wire = bf16}
// RUN: acc-opt %t/step.mlir --train-declare-wire=hook=fp16 | FileCheck %s --check-prefix=FP16
// FP16: module attributes {accel.gradient_wire = f16}
// RUN: acc-opt %t/step.mlir --train-declare-wire | FileCheck %s --check-prefix=NO
// NO-NOT: accel.gradient_wire
// RUN: not acc-opt %t/step.mlir --train-declare-wire=hook=fp8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: expected no, fp16 or bf16 as the hook, found 'fp8'
// A program without gradients declares nothing.
// RUN: acc-opt %t/forward.mlir --train-declare-wire=hook=bf16 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: warning: comm_hook=bf16 compresses nothing: the program has no gradients
// FORWARD-NOT: accel.gradient_wire

// What is declared is one of these two.
// RUN: not acc-opt %t/wide.mlir 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: expected 'accel.gradient_wire' to be f16 or bf16, found f32

// A step that is made already declares what it declares.
// RUN: sed 's/module {/module attributes {accel.phase = "train"} {/' %t/step.mlir > %t/train.mlir
// RUN: not acc-opt %t/train.mlir --accel-run-phases="to=dist mesh=dp=2 set=comm_hook=bf16" 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: cannot use 'comm_hook': the module is in phase 'train', past what reads it
// RUN: not acc-opt %t/train.mlir --accel-run-phases="to=dist mesh=dp=2 set=comm_hook=fp8" 2>&1 | FileCheck %s --check-prefix=SETTING
// SETTING: error: expected no,fp16,bf16,power_sgd as 'comm_hook', found 'fp8'

//--- step.mlir
module {
  nn.state @w : tensor<4xf32> = dense<0.0>
  func.func @step(%d: tensor<4xf32> {nn.input = "d"}, %w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %g = nn.gradient %d of @w : tensor<4xf32>
    %new = nn.sub %w, %g : tensor<4xf32>
    return %new : tensor<4xf32>
  }
}
//--- forward.mlir
module {
  func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
    return %x : tensor<4xf32>
  }
}
//--- wide.mlir
module attributes {accel.gradient_wire = f32} {
}
