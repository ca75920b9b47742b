// A stopped value counts, and passes no gradient: of sum(w * stop(w)) the gradient
// is stop(w) alone. Once gradients are there, the stop is gone.
// RUN: acc-opt %s --train --loss y --optimizer sgd --emit-gradients --compile-to=train -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// CHECK-LABEL: func.func @step
// CHECK: %[[W:[^ ]*]]: tensor<3xf32> {nn.state = @w}
// CHECK-NOT: nn.stop_gradient
// CHECK: nn.mul %[[W]], %[[W]]
// CHECK: nn.gradient %[[W]] of @w
// RUN: acc-eval %t.mlir --steps 1 | FileCheck %s --check-prefix=LOSS
// LOSS: "loss":14

// A loss that is stopped itself depends on nothing.
// RUN: not acc-opt %s --train --loss stopped --optimizer sgd --compile-to=train 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: expected a loss that depends on a trained parameter, found none

// A forward program has no gradients to stop.
// RUN: not acc-opt %s --compile-to=train 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: node 's': error: 'nn.stop_gradient' op means something only where gradients are built, expected --train

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<3xf32> = dense<[1.0, 2.0, 3.0]>
  func.func @main(%w: tensor<3xf32> {nn.state = @w})
      -> (tensor<f32> {nn.output = "y"}, tensor<f32> {nn.output = "stopped"})
      attributes {nn.entry} {
    %s = nn.stop_gradient %w : tensor<3xf32> loc("s")
    %p = nn.mul %w, %s : tensor<3xf32>
    %y = nn.reduce sum %p dims [0] : (tensor<3xf32>) -> tensor<f32>
    %t = nn.stop_gradient %y : tensor<f32> loc("s")
    return %y, %t : tensor<f32>, tensor<f32>
  }
}
