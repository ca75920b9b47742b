// What a call takes and gives has a name, or is a state: else no one can say what it is to be.
// RUN: not acc-opt %s --compile-to=local 2>&1 | FileCheck %s
// RUN: sed -e 's/%w: tensor<4x4xf32>/%w: tensor<4x4xf32> {nn.input = "w"}/' -e 's/ {nn.output = "y"}//' %s | not acc-opt --compile-to=local 2>&1 | FileCheck %s --check-prefix=OUTPUT

// CHECK: error: expected an input with a name, or a state, found neither
// OUTPUT: error: expected an output with a name, or a state, found neither
module attributes {accel.phase = "nn"} {
  func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32>) -> (tensor<8x4xf32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}
