// RUN: acc-opt %s --pass-pipeline="builtin.module(dist-annotate{micro-batches=2 batch-dim=w=none batch-dim=c=none},dist-lead-with-batch)" | FileCheck %s
// Without an axis that splits the batch nothing changes.
// RUN: acc-opt %s --pass-pipeline="builtin.module(dist-annotate{mesh=dp=1 batch-dim=w=none batch-dim=c=none},dist-lead-with-batch)" | FileCheck %s --check-prefix=WHOLE
// The order of rows is all that changes, and every layout means the same (law 11).
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --pass-pipeline="builtin.module(dist-annotate{micro-batches=2 batch-dim=w=none batch-dim=c=none},dist-lead-with-batch)" -o %t/led.mlir
// RUN: acc-eval %t/led.mlir --compare %s --tolerance 1e-14
// DEFINE: %{layout} = mesh=dp=2
// DEFINE: %{compare} = acc-opt %s --pass-pipeline="builtin.module(dist-annotate{%{layout} batch-dim=w=none batch-dim=c=none},dist-lead-with-batch,dist-propagate,dist-materialize,dist-declare-accumulators,dist-plan-reshards,dist-localize,local-split-tasks,local-verify)" -o %t/local.mlir && acc-eval %t/local.mlir --compare %s --tolerance 1e-14
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=4
// RUN: %{compare}

// CHECK: func.func @main
// CHECK: %[[X:.*]] = dist.constraint %arg0
// WHOLE: func.func @main
func.func @main(%x: tensor<4x6x8xf64> {nn.input = "x"}, %w: tensor<8x8xf64> {nn.input = "w"}, %c: tensor<8xf64> {nn.input = "c"}, %a: tensor<4x8xf64> {nn.input = "a"}, %b: tensor<4x8xf64> {nn.input = "b"}, %d: tensor<4x2x3x5xf64> {nn.input = "d"}) -> (tensor<4x6x8xf64> {nn.output = "rows"}, tensor<8x8xf64> {nn.output = "sums"}, tensor<4x8xf64> {nn.output = "parts"}, tensor<8xf64> {nn.output = "part"}, tensor<24x8xf64> {nn.output = "ordered"}, tensor<5xf64> {nn.output = "deep"}) attributes {nn.entry} {
  // Rows of (position, batch) become rows of (batch, position): the transposes
  // around them are gone.
  // CHECK: %[[ROWS:.*]] = nn.reshape %[[X]] : (tensor<4x6x8xf64>) -> tensor<24x8xf64>
  // CHECK: %[[P:.*]] = nn.matmul %[[ROWS]]
  // CHECK: %[[B:.*]] = nn.broadcast
  // CHECK: %[[S:.*]] = nn.add %[[P]], %[[B]]
  // CHECK: %[[Y:.*]] = nn.reshape %[[S]] : (tensor<24x8xf64>) -> tensor<4x6x8xf64>
  // WHOLE: nn.transpose
  // WHOLE: nn.reshape %{{.*}} : (tensor<6x4x8xf64>) -> tensor<24x8xf64>
  // WHOLE: nn.transpose
  %0 = nn.transpose %x [1, 0, 2] : (tensor<4x6x8xf64>) -> tensor<6x4x8xf64>
  %1 = nn.reshape %0 : (tensor<6x4x8xf64>) -> tensor<24x8xf64>
  %2 = nn.matmul %1, %w : (tensor<24x8xf64>, tensor<8x8xf64>) -> tensor<24x8xf64>
  %3 = nn.broadcast %c : (tensor<8xf64>) -> tensor<24x8xf64>
  %4 = nn.add %2, %3 : tensor<24x8xf64>
  %5 = nn.reshape %4 : (tensor<24x8xf64>) -> tensor<6x4x8xf64>
  %rows = nn.transpose %5 [1, 0, 2] : (tensor<6x4x8xf64>) -> tensor<4x6x8xf64>

  // What sums over the rows does not notice; what is no batch's, and differs
  // from row to row, is put into the same order.
  // CHECK: %[[IOTA:.*]] = nn.iota {dim = 0
  // CHECK-NEXT: %[[DOWN:.*]] = nn.neg %[[IOTA]]
  // CHECK: nn.reshape %[[DOWN]] : (tensor<24x8xf64>) -> tensor<6x4x8xf64>
  // CHECK-NEXT: nn.transpose %{{.*}} [1, 0, 2]
  // CHECK-NEXT: %[[NUMBERS:.*]] = nn.reshape
  // CHECK: %[[M:.*]] = nn.mul %{{.*}}, %[[NUMBERS]]
  // CHECK: %[[COLUMNS:.*]] = nn.iota {dim = 1
  // CHECK-NEXT: %[[SAME:.*]] = nn.neg %[[COLUMNS]]
  // CHECK-NEXT: %[[N:.*]] = nn.mul %[[M]], %[[SAME]]
  // CHECK: %[[G:.*]] = nn.matmul %[[N]], %{{.*}} {transpose_lhs}
  %n0 = nn.iota {dim = 0 : i64} : tensor<24x8xf64>
  %n = nn.neg %n0 : tensor<24x8xf64>
  %10 = nn.mul %1, %n : tensor<24x8xf64>
  %k0 = nn.iota {dim = 1 : i64} : tensor<24x8xf64>
  %k = nn.neg %k0 : tensor<24x8xf64>
  %11 = nn.mul %10, %k : tensor<24x8xf64>
  %sums = nn.matmul %11, %1 {transpose_lhs} : (tensor<24x8xf64>, tensor<24x8xf64>) -> tensor<8x8xf64>

  // Chosen and rejected answers of a batch in one dimension, taken apart again;
  // and the way back.
  // CHECK: %[[BOTH:.*]] = nn.concat %{{.*}}, %{{.*}} dim 1 : (tensor<4x1x8xf64>, tensor<4x1x8xf64>) -> tensor<4x2x8xf64>
  // CHECK: nn.reshape %[[BOTH]] : (tensor<4x2x8xf64>) -> tensor<8x8xf64>
  // CHECK: nn.exp
  // CHECK: nn.slice %{{.*}} starts [0, 0, 0] sizes [4, 1, 8]
  // CHECK: nn.slice %{{.*}} starts [0, 1, 0] sizes [4, 1, 8]
  // CHECK: nn.pad %{{.*}} low [0, 1, 0] high [0, 0, 0]
  // CHECK: nn.reduce sum
  %zero = nn.constant dense<0.0> : tensor<f64>
  %20 = nn.concat %a, %b dim 0 : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<8x8xf64>
  %21 = nn.exp %20 : tensor<8x8xf64>
  %22 = nn.slice %21 starts [0, 0] sizes [4, 8] steps [1, 1] : (tensor<8x8xf64>) -> tensor<4x8xf64>
  %23 = nn.slice %21 starts [4, 0] sizes [4, 8] steps [1, 1] : (tensor<8x8xf64>) -> tensor<4x8xf64>
  %parts = nn.sub %22, %23 : tensor<4x8xf64>
  %25 = nn.pad %parts, %zero low [4, 0] high [0, 0] : (tensor<4x8xf64>, tensor<f64>) -> tensor<8x8xf64>
  %26 = nn.mul %25, %21 : tensor<8x8xf64>
  %part = nn.reduce sum %26 dims [0] : (tensor<8x8xf64>) -> tensor<8xf64>

  // What needs the rows in the program's order gets them back.
  // CHECK: %[[E:.*]] = nn.tanh
  // CHECK-NEXT: nn.reshape %[[E]] : (tensor<24x8xf64>) -> tensor<4x6x8xf64>
  // CHECK-NEXT: nn.transpose %{{.*}} [1, 0, 2]
  // CHECK-NEXT: %[[BACK:.*]] = nn.reshape
  // CHECK-NEXT: nn.cumsum %[[BACK]]
  %30 = nn.tanh %1 : tensor<24x8xf64>
  %ordered = nn.cumsum %30 dim 0 : tensor<24x8xf64>

  // Positions before the batch, twos behind it, merged in two steps.
  // CHECK: nn.transpose %{{.*}} [2, 0, 1, 3] : (tensor<4x2x3x5xf64>) -> tensor<3x4x2x5xf64>
  // CHECK: nn.sin
  // CHECK: nn.transpose %{{.*}} [0, 2, 1, 3, 4] : (tensor<1x3x4x2x5xf64>) -> tensor<1x4x3x2x5xf64>
  // CHECK: return %[[Y]], %[[G]]
  %40 = nn.transpose %d [2, 1, 0, 3] : (tensor<4x2x3x5xf64>) -> tensor<3x2x4x5xf64>
  %41 = nn.reshape %40 : (tensor<3x2x4x5xf64>) -> tensor<3x8x5xf64>
  %42 = nn.sin %41 : tensor<3x8x5xf64>
  %43 = nn.reshape %42 : (tensor<3x8x5xf64>) -> tensor<24x5xf64>
  %m = nn.iota {dim = 0 : i64} : tensor<24x5xf64>
  %44 = nn.mul %43, %m : tensor<24x5xf64>
  %deep = nn.reduce sum %44 dims [0] : (tensor<24x5xf64>) -> tensor<5xf64>
  return %rows, %sums, %parts, %part, %ordered, %deep : tensor<4x6x8xf64>, tensor<8x8xf64>, tensor<4x8xf64>, tensor<8xf64>, tensor<24x8xf64>, tensor<5xf64>
}
