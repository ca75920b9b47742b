// RUN: acc-opt %s -split-input-file --pass-pipeline='builtin.module(local-form-kernels,local-lower-to-plan)' | FileCheck %s

// What leaves the task in f32 is never rounded to bf16.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.gemm {{.*}}[8x4xbf16 {{.*}} -> {{.*}}[8x6xf32]
// CHECK-NEXT: }
func.func @main(%x: tensor<4x8xbf16> {nn.input = "x"}, %y: tensor<4x6xbf16> {nn.input = "y"}) -> (tensor<8x6xf32> {nn.output = "g"}) attributes {nn.entry} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %c = nn.cast %m : (tensor<8x6xbf16>) -> tensor<8x6xf32>
  return %c : tensor<8x6xf32>
}

// -----

// A table that slices are added to is made wide at once, and added to in place.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.gemm {{.*}} -> @[[TABLE:.*]][8x6xf32]
// CHECK-NEXT: plan.kernel {{.*}}@[[TABLE]][
func.func @main(%x: tensor<4x8xbf16> {nn.input = "x"}, %y: tensor<4x6xbf16> {nn.input = "y"}, %i: tensor<3xi64> {nn.input = "i"}, %u: tensor<3x6xf32> {nn.input = "u"}) -> (tensor<8x6xf32> {nn.output = "g"}) attributes {nn.entry} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %c = nn.cast %m : (tensor<8x6xbf16>) -> tensor<8x6xf32>
  %s = nn.scatter_add %c, %i, %u dim 0 : (tensor<8x6xf32>, tensor<3xi64>, tensor<3x6xf32>) -> tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}

// -----

// A kernel that computes with it reads half the bytes, and casts on the way.
// CHECK-LABEL: plan.program @main
// CHECK: plan.gemm {{.*}} -> {{.*}}[8x6xbf16]
func.func @main(%x: tensor<4x8xbf16> {nn.input = "x"}, %y: tensor<4x6xbf16> {nn.input = "y"}) -> (tensor<8x6xf32> {nn.output = "g"}) attributes {nn.entry} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %c = nn.cast %m : (tensor<8x6xbf16>) -> tensor<8x6xf32>
  %e = nn.exp %c : tensor<8x6xf32>
  return %e : tensor<8x6xf32>
}

// -----

// Who else reads the product reads it rounded.
// CHECK-LABEL: plan.program @main
// CHECK: plan.gemm {{.*}} -> {{.*}}[8x6xbf16]
func.func @main(%x: tensor<4x8xbf16> {nn.input = "x"}, %y: tensor<4x6xbf16> {nn.input = "y"}) -> (tensor<8x6xf32> {nn.output = "g"}, tensor<8x6xbf16> {nn.output = "h"}) attributes {nn.entry} {
  %m = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %c = nn.cast %m : (tensor<8x6xbf16>) -> tensor<8x6xf32>
  return %c, %m : tensor<8x6xf32>, tensor<8x6xbf16>
}
