// Parts of one size of which ranks have shares are digits of a position: gathered share by share, and
// merged with another dimension, they are summed in that order as in any.
//
// RUN: accel-fuzz-programs --seed 8840 --check %s | FileCheck %s
// RUN: sed 's/tp=2/tp=4 --set sequence_parallelism=true/' %s > %t.mlir && accel-fuzz-programs --seed 8840 --check %t.mlir | FileCheck %s
// flags: --optimizer sgd --set optimizer.lr=1 --mesh tp=2
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @table : tensor<16x8xf64> = dense<0.25>
  nn.state @bias : tensor<2x3x16xf64> = dense<0.5>
  nn.state @beside : tensor<2x3x8xf64> = dense<0.75>
  nn.state @shift : tensor<2x3x8xf64> = dense<0.125>
  func.func @main(%ids: tensor<2x3xi64> {nn.input = "ids"}, %table: tensor<16x8xf64> {nn.state = @table}, %bias: tensor<2x3x16xf64> {nn.state = @bias}, %beside: tensor<2x3x8xf64> {nn.state = @beside}, %shift: tensor<2x3x8xf64> {nn.state = @shift}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.gather %table, %ids dim 0 : (tensor<16x8xf64>, tensor<2x3xi64>) -> tensor<2x3x8xf64>
    %1 = nn.add %0, %shift : tensor<2x3x8xf64>
    %2 = nn.gelu tanh %1 : tensor<2x3x8xf64>
    %3 = nn.concat %2, %beside dim 2 : (tensor<2x3x8xf64>, tensor<2x3x8xf64>) -> tensor<2x3x16xf64>
    %4 = nn.add %3, %bias : tensor<2x3x16xf64>
    %5 = nn.sin %4 : tensor<2x3x16xf64>
    %6 = nn.max %4, %5 : tensor<2x3x16xf64>
    %7 = nn.reshape %6 : (tensor<2x3x16xf64>) -> tensor<2x48xf64>
    %8 = nn.reduce sum %7 dims [1] : (tensor<2x48xf64>) -> tensor<2xf64>
    %9 = nn.reduce sum %8 dims [0] : (tensor<2xf64>) -> tensor<f64>
    return %9 : tensor<f64>
  }
}
