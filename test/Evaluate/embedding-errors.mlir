// An embedding has no rows before its first.
// RUN: not acc-eval %s 2>&1 | FileCheck %s
// CHECK: embedding-errors.mlir:[[# @LINE + 4]]:{{.*}}: error: 'nn.gather' op expected indices in [0, 3], found -1
module {
  func.func @main(%table: tensor<4xf32>) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %i = nn.constant dense<[2, -1]> : tensor<2xi64>
    %y = nn.gather %table, %i dim 0 {non_negative} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
