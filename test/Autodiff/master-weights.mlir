// RUN: acc-opt %s --split-input-file --nn-build-step="loss=y optimizer=sgd set=optimizer.lr=0.5" | FileCheck %s

// A parameter of bf16 is kept in f32, in a file too; every entry computes with what it rounds to.
// CHECK: nn.state @w : tensor<4xf32> from #{{.*}}[0 : 8] {stored = bf16}
// CHECK: nn.state @b : tensor<4xf32> = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, -0.100097656]>
// CHECK: nn.state @frozen : tensor<4xbf16>
// CHECK: func.func @step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {nn.state = @w}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32> {nn.state = @b}
// CHECK-SAME: tensor<4xbf16> {nn.state = @frozen}
// CHECK-DAG: %[[NARROW:.*]] = nn.cast %[[W]] {nn.reason = "the model's own type of a weight"} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: nn.mul %[[NARROW]]
// CHECK: nn.gradient {{.*}} of @w : tensor<4xf32>
// CHECK: func.func @forward(
// CHECK: nn.cast {{.*}} "the model's own type of a weight"
#file = #nn.file<"weights.bin">
module {
  nn.state @w : tensor<4xbf16> from #file[0 : 8]
  nn.state @b : tensor<4xbf16> = dense<[1.0, 2.0, 3.0, -0.1]>
  nn.state @frozen : tensor<4xbf16> = dense<1.0> {frozen}
  func.func @main(%w: tensor<4xbf16> {nn.state = @w}, %b: tensor<4xbf16> {nn.state = @b}, %f: tensor<4xbf16> {nn.state = @frozen})
      -> (tensor<bf16> {nn.output = "y"}) attributes {nn.entry} {
    %p = nn.mul %w, %f : tensor<4xbf16>
    %q = nn.add %p, %b : tensor<4xbf16>
    %y = nn.reduce sum %q dims [0] : (tensor<4xbf16>) -> tensor<bf16>
    return %y : tensor<bf16>
  }
  func.func @forward(%w: tensor<4xbf16> {nn.state = @w}) -> (tensor<4xbf16> {nn.output = "z"}) attributes {nn.entry} {
    %z = nn.neg %w : tensor<4xbf16>
    return %z : tensor<4xbf16>
  }
}
