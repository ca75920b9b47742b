// Matrices of which each rank has one row go to their owners as a stack that is joined of these rows:
// what Newton and Schulz's iterations make of it follows as that of each matrix.
//
// RUN: accel-fuzz-programs --seed 1 --check %s | FileCheck %s
// RUN: sed 's/dp_shard=4/cp=2,sp=2/' %s > %t.mlir && accel-fuzz-programs --seed 1 --check %t.mlir | FileCheck %s
// flags: --optimizer muon --set optimizer.lr=0.1 --set optimizer.eps=0.01 --mesh dp_shard=4 --set zero_stage=3
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @a : tensor<4x4xf64> = dense<[[0.5, -0.25, 0.125, 1.0], [0.75, 0.5, -0.5, 0.25], [-1.0, 0.25, 0.5, 0.125], [0.25, 0.5, 0.75, -0.5]]>
  nn.state @b : tensor<4x4xf64> = dense<[[0.25, 0.5, -0.75, 0.5], [0.5, -1.0, 0.25, 0.125], [0.125, 0.75, 0.5, -0.25], [1.0, -0.5, 0.25, 0.5]]>
  nn.state @c : tensor<4x4xf64> = dense<[[-0.5, 0.25, 1.0, 0.125], [0.25, 0.75, -0.5, 0.5], [0.5, 0.125, 0.25, -1.0], [0.75, 0.5, 0.5, 0.25]]>
  nn.state @d : tensor<4x4xf64> = dense<[[0.125, 1.0, 0.5, -0.5], [0.5, 0.25, 0.75, 0.25], [-0.25, 0.5, -1.0, 0.5], [0.5, 0.75, 0.25, 0.125]]>
  func.func @main(%x: tensor<4x4x4xf64> {nn.input = "x"}, %a: tensor<4x4xf64> {nn.state = @a}, %b: tensor<4x4xf64> {nn.state = @b}, %c: tensor<4x4xf64> {nn.state = @c}, %d: tensor<4x4xf64> {nn.state = @d}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %a : (tensor<4x4x4xf64>, tensor<4x4xf64>) -> tensor<4x4x4xf64>
    %1 = nn.sin %0 : tensor<4x4x4xf64>
    %2 = nn.matmul %1, %b : (tensor<4x4x4xf64>, tensor<4x4xf64>) -> tensor<4x4x4xf64>
    %3 = nn.sin %2 : tensor<4x4x4xf64>
    %4 = nn.matmul %3, %c : (tensor<4x4x4xf64>, tensor<4x4xf64>) -> tensor<4x4x4xf64>
    %5 = nn.sin %4 : tensor<4x4x4xf64>
    %6 = nn.matmul %5, %d : (tensor<4x4x4xf64>, tensor<4x4xf64>) -> tensor<4x4x4xf64>
    %7 = nn.mul %6, %6 : tensor<4x4x4xf64>
    %8 = nn.reduce sum %7 dims [0, 1, 2] : (tensor<4x4x4xf64>) -> tensor<f64>
    return %8 : tensor<f64>
  }
}
