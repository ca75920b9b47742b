// The gradient of a bias that is only added is a sum of inputs alone, which any
// chunk could make. What is made of that sum for an output, here the gradient
// gathered and without its padding, is made by the chunk that has the sum.
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --emit-gradients --entries=step --mesh=sp=2,pp=2 --micro-batches=3 --set zero_stage=3 --compile-to=local | FileCheck %s

// CHECK-LABEL: func.func private @update_0(
// CHECK-NOT: dist.all_gather
// CHECK-LABEL: func.func private @update_1(
// CHECK: nn.output = "b.grad"
// CHECK: dist.all_gather %accumulator_b
// CHECK-LABEL: func.func private @update_0_round_1(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<6x3xf64> = dense<0.5>
nn.state @w : tensor<3x3xf64> = dense<0.25>
nn.state @b : tensor<3xf64> = dense<0.125>
func.func @main(%mask: tensor<3x6x3xi1> {nn.input = "mask"}, %ids: tensor<3x6xi64> {nn.input = "ids"}, %table: tensor<6x3xf64> {nn.state = @table}, %w: tensor<3x3xf64> {nn.state = @w}, %b: tensor<3xf64> {nn.state = @b})
    -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
  %0 = nn.gather %table, %ids dim 0 : (tensor<6x3xf64>, tensor<3x6xi64>) -> tensor<3x6x3xf64>
  %1 = nn.matmul %0, %w : (tensor<3x6x3xf64>, tensor<3x3xf64>) -> tensor<3x6x3xf64>
  %2 = nn.broadcast %b : (tensor<3xf64>) -> tensor<3x6x3xf64>
  %3 = nn.add %1, %2 : tensor<3x6x3xf64>
  %4 = nn.select %mask, %3, %0 : tensor<3x6x3xf64>
  %loss = nn.reduce sum %4 dims [0, 1, 2] : (tensor<3x6x3xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
}
