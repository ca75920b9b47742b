// What an optimizer keeps for a parameter of experts beside tensors of its shape, as NAdam does the
// product of its rates, is one number, which no rank has a part of.
//
// RUN: accel-fuzz-programs --seed 1 --check %s | FileCheck %s
// flags: --optimizer nadam --set optimizer.eps=0.01 --mesh ep=2
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @up : tensor<4x2x2xf64> = dense<0.5>
  func.func @main(%x: tensor<24x2xf64> {nn.input = "x"}, %groups: tensor<24xi64> {nn.input = "groups"}, %up: tensor<4x2x2xf64> {nn.state = @up}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.grouped_matmul %x, %up, %groups : (tensor<24x2xf64>, tensor<4x2x2xf64>, tensor<24xi64>) -> tensor<24x2xf64>
    %1 = nn.sin %0 : tensor<24x2xf64>
    %2 = nn.reduce sum %1 dims [0, 1] : (tensor<24x2xf64>) -> tensor<f64>
    return %2 : tensor<f64>
  }
}
