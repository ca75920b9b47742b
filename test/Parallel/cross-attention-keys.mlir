// Keys of another number than the positions that ranks of sp divide: they, and their gradients, are whole on
// each rank, and are not refused.
//
// RUN: accel-fuzz-programs --seed 1 --check %s | FileCheck %s
// RUN: sed 's/sp=4/sp=2,cp=2 --set zero_stage=3/' %s > %t.mlir && accel-fuzz-programs --seed 1 --check %t.mlir | FileCheck %s
// flags: --optimizer sgd --set optimizer.lr=1 --mesh sp=4
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<64x64xf64> = dense<0.1>
  nn.state @u : tensor<64x64xf64> = dense<0.2>
  func.func @main(%x: tensor<2x8x64xf64> {nn.input = "x"}, %z: tensor<2x6x64xf64> {nn.input = "z"}, %w: tensor<64x64xf64> {nn.state = @w}, %u: tensor<64x64xf64> {nn.state = @u}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %a = nn.matmul %x, %w : (tensor<2x8x64xf64>, tensor<64x64xf64>) -> tensor<2x8x64xf64>
    %b = nn.matmul %z, %u : (tensor<2x6x64xf64>, tensor<64x64xf64>) -> tensor<2x6x64xf64>
    %c = nn.reshape %a : (tensor<2x8x64xf64>) -> tensor<2x8x4x16xf64>
    %d = nn.reshape %b : (tensor<2x6x64xf64>) -> tensor<2x6x4x16xf64>
    %q = nn.transpose %c [0, 2, 1, 3] : (tensor<2x8x4x16xf64>) -> tensor<2x4x8x16xf64>
    %k = nn.transpose %d [0, 2, 1, 3] : (tensor<2x6x4x16xf64>) -> tensor<2x4x6x16xf64>
    %y, %l = nn.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<2x4x8x16xf64>, tensor<2x4x6x16xf64>, tensor<2x4x6x16xf64>) -> (tensor<2x4x8x16xf64>, tensor<2x4x8xf64>)
    %m = nn.mul %y, %y : tensor<2x4x8x16xf64>
    %r = nn.reduce sum %m dims [0, 1, 2, 3] : (tensor<2x4x8x16xf64>) -> tensor<f64>
    return %r : tensor<f64>
  }
}
