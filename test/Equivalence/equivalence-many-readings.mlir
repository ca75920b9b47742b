// Attention of rows that are equal in all samples: each of the six operands of its gradient may be
// any part of the batch, over any axes. They are read as that, not as each of these parts.
//
// RUN: accel-fuzz-programs --seed 1 --check %s | FileCheck %s
// flags: --optimizer sgd --set optimizer.lr=1 --mesh dp_shard=2,cp=2 --micro-batches 2
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<16x16xf64> = dense<0.125>
  nn.state @u : tensor<2x16xf64> = dense<0.25>
  func.func @main(%x: tensor<4x2xf64> {nn.input = "x"}, %w: tensor<16x16xf64> {nn.state = @w}, %u: tensor<2x16xf64> {nn.state = @u}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.constant dense<5.000000e-01> : tensor<4x8x16xf64>
    %1 = nn.matmul %0, %w {transpose_rhs} : (tensor<4x8x16xf64>, tensor<16x16xf64>) -> tensor<4x8x16xf64>
    %2 = nn.reshape %1 : (tensor<4x8x16xf64>) -> tensor<4x8x4x4xf64>
    %3 = nn.transpose %2 [0, 2, 1, 3] : (tensor<4x8x4x4xf64>) -> tensor<4x4x8x4xf64>
    %result, %logs = nn.attention %3, %3, %3 {scale = 5.000000e-01 : f64} : (tensor<4x4x8x4xf64>, tensor<4x4x8x4xf64>, tensor<4x4x8x4xf64>) -> (tensor<4x4x8x4xf64>, tensor<4x4x8xf64>)
    %4 = nn.transpose %result [0, 2, 1, 3] : (tensor<4x4x8x4xf64>) -> tensor<4x8x4x4xf64>
    %5 = nn.reshape %4 : (tensor<4x8x4x4xf64>) -> tensor<4x8x16xf64>
    %6 = nn.matmul %5, %u {transpose_rhs} : (tensor<4x8x16xf64>, tensor<2x16xf64>) -> tensor<4x8x2xf64>
    %7 = nn.reduce sum %6 dims [1] : (tensor<4x8x2xf64>) -> tensor<4x2xf64>
    %8 = nn.mul %7, %x : tensor<4x2xf64>
    %9 = nn.reduce sum %8 dims [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    %10 = nn.reduce sum %9 dims [0] : (tensor<4xf64>) -> tensor<f64>
    return %10 : tensor<f64>
  }
}
