// A rank's slice of a constant without elements is nowhere in the buffer, whatever the rank: it has
// no place along an axis that would lie behind the buffer's end.
// RUN: acc-opt %s --mesh dp_shard=2 --compile-to=plan | FileCheck %s
// CHECK: plan.buffer @constant : constant device at 0, 0 bytes
// CHECK: plan.copy @constant[2x0xf32 strides [1, 1]] ->
module attributes {accel.phase = "nn"} {
  func.func @main(%x: tensor<4x3xf32> {nn.input = "x"}) -> (tensor<4x3xf32> {nn.output = "y"}) attributes {nn.entry} {
    %none = nn.constant dense<> : tensor<4x0xf32>
    %0 = nn.concat %x, %none dim 1 : (tensor<4x3xf32>, tensor<4x0xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
