// RUN: acc-opt %s --nn-cut-step | FileCheck %s

// The gradient of a sum is all ones, wherever it is read: nothing crosses. What a
// state is in, does.
// CHECK: %[[ONES:.*]] = nn.constant
// CHECK: nn.mul %{{.*}}, %[[ONES]]
// CHECK: %[[W:.*]] = nn.cut %{{.*}} from 1 to 0
// CHECK: nn.add %{{.*}}, %[[W]]
nn.state @v : tensor<4xf32> = dense<0.5>
nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 1 : i64}
func.func @main(%v: tensor<4xf32> {nn.state = @v}, %w: tensor<4xf32> {nn.state = @w})
    -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
  %ones = nn.constant dense<1.0> : tensor<4xf32>
  %0 = nn.cut %ones from 1 to 0 : tensor<4xf32>
  %1 = nn.mul %v, %0 : tensor<4xf32>
  %2 = nn.cut %w from 1 to 0 : tensor<4xf32>
  %3 = nn.add %1, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
