// A state whose rows the update takes in another order, as attention under cp moves the rows of
// the product behind it, is not padded: said, and not thought about for ever.
//
// RUN: not acc-opt %s --train --loss loss --optimizer sgd --set optimizer.lr=1 --mesh dp_shard=2,cp=2 --set zero_stage=3 --compile-to=local -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: reads a state of 'tensor<18x3xf64>', which 4 ranks cannot split without padding, through an op that padding does not pass

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
