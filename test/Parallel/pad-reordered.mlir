// Attention under cp moves the rows of the product behind it. Its weight's gradient comes back to
// the program's order before anything else is done with it: the update, and what it is padded to,
// are of the state's rows.
//
// RUN: acc-opt %s --train --loss loss --optimizer sgd --set optimizer.lr=1 --mesh dp_shard=2,cp=2 --set zero_stage=3 --compile-to=local | FileCheck %s
// CHECK-LABEL: func.func private @update(
// CHECK-NOT: nn.transpose
// CHECK-NOT: dist.all_gather
// CHECK: nn.sub %back, %{{.*}} : tensor<5x3xf64>
// CHECK-NOT: nn.transpose
// CHECK-NOT: dist.all_gather
// CHECK: return

module attributes {accel.phase = "nn"} {
  nn.state @back : tensor<18x3xf64> = dense<0.1>
  nn.state @out : tensor<8x3xf64> = dense<0.2>
  func.func @main(%x: tensor<4x1x2x3xf64> {nn.input = "x"}, %back: tensor<18x3xf64> {nn.state = @back}, %out: tensor<8x3xf64> {nn.state = @out}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %y, %l = nn.attention %x, %x, %x {scale = 0.5 : f64} : (tensor<4x1x2x3xf64>, tensor<4x1x2x3xf64>, tensor<4x1x2x3xf64>) -> (tensor<4x1x2x3xf64>, tensor<4x1x2xf64>)
    %0 = nn.broadcast %y : (tensor<4x1x2x3xf64>) -> tensor<4x3x2x3xf64>
    %1 = nn.reshape %0 : (tensor<4x3x2x3xf64>) -> tensor<4x18xf64>
    %2 = nn.matmul %1, %back : (tensor<4x18xf64>, tensor<18x3xf64>) -> tensor<4x3xf64>
    %3 = nn.matmul %2, %out {transpose_rhs} : (tensor<4x3xf64>, tensor<8x3xf64>) -> tensor<4x8xf64>
    %4 = nn.reduce sum %3 dims [0, 1] : (tensor<4x8xf64>) -> tensor<f64>
    return %4 : tensor<f64>
  }
}
