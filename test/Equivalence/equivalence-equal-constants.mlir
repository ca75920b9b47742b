// Constants of one number, of different ranks: the squares of one are not those of
// the other, though each element is.
// RUN: acc-opt %s --compile-to=local | FileCheck %s
// CHECK: nn.mul {{.*}} : tensor<4x4xf64>
// CHECK: nn.mul {{.*}} : tensor<4xf64>

module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4xf64> {nn.input = "x"}) -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %a = nn.constant dense<3.0> : tensor<4x4xf64>
    %b = nn.constant dense<3.0> : tensor<4xf64>
    %squares = nn.mul %a, %a : tensor<4x4xf64>
    %rows = nn.reduce sum %squares dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>
    %others = nn.mul %b, %b : tensor<4xf64>
    %both = nn.add %rows, %others : tensor<4xf64>
    %products = nn.mul %both, %x : tensor<4xf64>
    %y = nn.reduce sum %products dims [0] : (tensor<4xf64>) -> tensor<f64>
    return %y : tensor<f64>
  }
}
