// RUN: acc-opt %s -split-input-file --pass-pipeline='builtin.module(local-form-kernels,local-lower-to-plan)' | FileCheck %s

// The new value of a state is made in its buffer by the product itself, where
// nothing else reads the old value, the product or the sum.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.gemm @x[8x4xf32 strides [1, 8]], @y[4x6xf32] -> accumulate @acc[8x6xf32]
// CHECK-NEXT: }
nn.state accumulator @acc : tensor<8x6xf32> = dense<0.0>
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<4x6xf32> {nn.input = "y"}, %a: tensor<8x6xf32> {nn.state = @acc}) -> (tensor<8x6xf32> {nn.state = @acc}) attributes {nn.entry = #nn<entry step>} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %s = nn.add %a, %m : tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}

// -----

// Products of bf16 are added in f32, without a cast between.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.gemm {{.*}}[8x4xbf16 {{.*}} -> accumulate @acc[8x6xf32]
// CHECK-NEXT: }
nn.state accumulator @acc : tensor<8x6xf32> = dense<0.0>
func.func @main(%x: tensor<4x8xbf16> {nn.input = "x"}, %y: tensor<4x6xbf16> {nn.input = "y"}, %a: tensor<8x6xf32> {nn.state = @acc}) -> (tensor<8x6xf32> {nn.state = @acc}) attributes {nn.entry = #nn<entry step>} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %c = nn.cast %m : (tensor<8x6xbf16>) -> tensor<8x6xf32>
  %s = nn.add %c, %a : tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}

// -----

// The old value is read again.
// CHECK-LABEL: plan.program @main
// CHECK-NOT: accumulate}
nn.state accumulator @acc : tensor<8x6xf32> = dense<0.0>
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<4x6xf32> {nn.input = "y"}, %a: tensor<8x6xf32> {nn.state = @acc}) -> (tensor<8x6xf32> {nn.state = @acc}, tensor<8x6xf32> {nn.output = "old"}) attributes {nn.entry = #nn<entry step>} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %s = nn.add %a, %m : tensor<8x6xf32>
  return %s, %a : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

// The product is read again.
// CHECK-LABEL: plan.program @main
// CHECK-NOT: accumulate}
nn.state accumulator @acc : tensor<8x6xf32> = dense<0.0>
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<4x6xf32> {nn.input = "y"}, %a: tensor<8x6xf32> {nn.state = @acc}) -> (tensor<8x6xf32> {nn.state = @acc}, tensor<8x6xf32> {nn.output = "m"}) attributes {nn.entry = #nn<entry step>} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %s = nn.add %a, %m : tensor<8x6xf32>
  return %s, %m : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

// The sum is the new value of another state.
// CHECK-LABEL: plan.program @main
// CHECK-NOT: accumulate}
nn.state accumulator @acc : tensor<8x6xf32> = dense<0.0>
nn.state accumulator @other : tensor<8x6xf32> = dense<0.0>
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<4x6xf32> {nn.input = "y"}, %a: tensor<8x6xf32> {nn.state = @acc}) -> (tensor<8x6xf32> {nn.state = @other}) attributes {nn.entry = #nn<entry step>} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %s = nn.add %a, %m : tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}
