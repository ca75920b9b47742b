// Errors of a run stand at the op; without an input there is nothing to run.
// RUN: not acc-eval %s 2>&1 | FileCheck %s
// CHECK: errors.mlir:[[# @LINE + 5]]:{{.*}}: error: 'nn.gather' op expected indices in [-4, 3], found 4
module {
  func.func private @helper(%i: tensor<2xi64>) -> tensor<2xf32> {
    %one = nn.constant dense<4> : tensor<2xi64>
    %table = nn.constant dense<1.0> : tensor<4xf32>
    %0 = nn.gather %table, %one dim 0 : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func @main(%i: tensor<2xi64>) -> tensor<2xf32> {
    %0 = call @helper(%i) : (tensor<2xi64>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
