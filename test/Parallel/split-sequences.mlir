// Sequences over `cp` and `sp`: the dimension of an input that is as long as what
// attends to each other, and the rows of a weight's gradient in the order of ranks.
// RUN: acc-opt %s --split-input-file --verify-diagnostics --dist-annotate="mesh=dp=2,cp=2,sp=2" --dist-lead-with-batch | FileCheck %s

// CHECK: dist.mesh @mesh ["dp_replicate" = 2, "cp" = 2, "sp" = 2]
// CHECK-LABEL: @main
// CHECK-DAG: %[[X:.*]] = dist.constraint %arg0 to #dp_replicate-cp_sp-any : tensor<4x8x6xf64>
// CHECK-DAG: dist.constraint %arg1 to #dp_replicate-any-any-cp_sp : tensor<4x1x1x8xf64>
// CHECK-DAG: dist.constraint %arg2 to #dp_replicate-any : tensor<4x6xf64>
// CHECK-DAG: dist.constraint %arg3 to #dp_replicate : tensor<4xi64>
// The parts of a batch, those of a sequence, and what is left of both.
// CHECK: %[[A:.*]] = nn.reshape %[[X]] : (tensor<4x8x6xf64>) -> tensor<2x2x4x2x6xf64>
// CHECK: %[[B:.*]] = nn.transpose %[[A]] [0, 2, 1, 3, 4]
// CHECK: %[[ROWS:.*]] = nn.reshape %[[B]] : (tensor<2x4x2x2x6xf64>) -> tensor<32x6xf64>
// CHECK: nn.matmul %[[ROWS]], %{{.*}} {transpose_lhs}
// The order of the program for who asks for it.
// CHECK: nn.reshape %{{.*}} : (tensor<4x8x6xf64>) -> tensor<32x6xf64>
// CHECK-NEXT: nn.cumsum
func.func @main(%x: tensor<4x8x6xf64> {nn.input = "x"}, %mask: tensor<4x1x1x8xf64> {nn.input = "mask"}, %other: tensor<4x6xf64> {nn.input = "other"}, %label: tensor<4xi64> {nn.input = "label"})
    -> (tensor<6x6xf64>, tensor<32x6xf64>, tensor<4x1x8x6xf64>, tensor<4x6xf64>, tensor<4xi64>) attributes {nn.entry} {
  %h = nn.reshape %x : (tensor<4x8x6xf64>) -> tensor<4x1x8x6xf64>
  %a, %l = nn.attention %h, %h, %h mask %mask {causal, scale = 1.0} : (tensor<4x1x8x6xf64>, tensor<4x1x8x6xf64>, tensor<4x1x8x6xf64>, tensor<4x1x1x8xf64>) -> (tensor<4x1x8x6xf64>, tensor<4x1x8xf64>)
  %y = nn.exp %x : tensor<4x8x6xf64>
  %rows = nn.reshape %x : (tensor<4x8x6xf64>) -> tensor<32x6xf64>
  %others = nn.reshape %y : (tensor<4x8x6xf64>) -> tensor<32x6xf64>
  %dw = nn.matmul %rows, %others {transpose_lhs} : (tensor<32x6xf64>, tensor<32x6xf64>) -> tensor<6x6xf64>
  %z = nn.tanh %x : tensor<4x8x6xf64>
  %flat = nn.reshape %z : (tensor<4x8x6xf64>) -> tensor<32x6xf64>
  %sums = nn.cumsum %flat dim 0 : tensor<32x6xf64>
  return %dw, %sums, %a, %other, %label : tensor<6x6xf64>, tensor<32x6xf64>, tensor<4x1x8x6xf64>, tensor<4x6xf64>, tensor<4xi64>
}

// -----

// What ranks cannot share evenly is whole on each, and that is said.
// CHECK-LABEL: @odd
// CHECK: dist.constraint %arg0 to #dp_replicate-any-any : tensor<4x6x6xf64>
// expected-warning @below {{input 'x': its sequences of 6 are whole on each of the 4 ranks that were to share them (cp, sp): pad them to a multiple}}
func.func @odd(%x: tensor<4x6x6xf64> {nn.input = "x"}) -> tensor<4x1x6x6xf64> attributes {nn.entry} {
  %h = nn.reshape %x : (tensor<4x6x6xf64>) -> tensor<4x1x6x6xf64>
  %a, %l = nn.attention %h, %h, %h {scale = 1.0} : (tensor<4x1x6x6xf64>, tensor<4x1x6x6xf64>, tensor<4x1x6x6xf64>) -> (tensor<4x1x6x6xf64>, tensor<4x1x6xf64>)
  return %a : tensor<4x1x6x6xf64>
}
// Once, not for each entry that reads it.
func.func @odd_again(%x: tensor<4x6x6xf64> {nn.input = "x"}) -> tensor<4x1x6x6xf64> attributes {nn.entry} {
  %h = nn.reshape %x : (tensor<4x6x6xf64>) -> tensor<4x1x6x6xf64>
  %a, %l = nn.attention %h, %h, %h {scale = 1.0} : (tensor<4x1x6x6xf64>, tensor<4x1x6x6xf64>, tensor<4x1x6x6xf64>) -> (tensor<4x1x6x6xf64>, tensor<4x1x6xf64>)
  return %a : tensor<4x1x6x6xf64>
}
