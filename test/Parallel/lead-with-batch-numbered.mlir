// Rows that indices point at keep their numbers: they are put back in the program's order before
// they are looked up, or added to.
// RUN: acc-opt %s --dist-lead-with-batch -o %t.mlir && FileCheck %s < %t.mlir
// RUN: acc-eval %t.mlir --compare %s --tolerance 1e-14

// CHECK: %[[MIXED:.*]] = nn.tanh
// CHECK: nn.transpose
// CHECK: %[[BACK:.*]] = nn.reshape %{{.*}} -> tensor<32x12xf64>
// CHECK: nn.gather %[[BACK]], %{{.*}} dim 0
// CHECK: nn.gather_nd %[[BACK]]
// CHECK: nn.scatter_add %[[BACK]]
// What is looked up may come in any order.
// CHECK: nn.gather %{{.*}}, %{{.*}} dim 0 : (tensor<9x12xf64>, tensor<32xi64>)
// CHECK-NEXT: nn.sin
// Classes, the rows of a causal mask and groups have numbers, too.
// CHECK: %[[CLASSES:.*]] = nn.reshape %{{.*}} -> tensor<3x32xf64>
// CHECK: nn.cross_entropy %[[CLASSES]],
// CHECK: %[[POSITIONS:.*]] = nn.reshape %{{.*}} -> tensor<1x1x32x12xf64>
// CHECK: nn.attention %[[POSITIONS]],
// CHECK: nn.attention_grad %[[POSITIONS]],
// CHECK: %[[GROUPS:.*]] = nn.reshape %{{.*}} -> tensor<32x4x3xf64>
// CHECK: nn.grouped_matmul %{{.*}}, %[[GROUPS]],
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["sp" = 2]
  func.func @main(%x: tensor<8x4x12xf64> {nn.input = "x"}, %u: tensor<5x12xf64> {nn.input = "u"}, %table: tensor<9x12xf64> {nn.input = "table"}, %which: tensor<8x4xi64> {nn.input = "which"}, %keys: tensor<1x1x32x12xf64> {nn.input = "keys"})
      -> (tensor<5x12xf64> {nn.output = "a"}, tensor<3x12xf64> {nn.output = "b"}, tensor<32x12xf64> {nn.output = "c"}, tensor<12xf64> {nn.output = "d"}, tensor<3xf64> {nn.output = "e"}, tensor<1x1x32x12xf64> {nn.output = "f"}, tensor<4x3xf64> {nn.output = "g"}, tensor<1x1x32x12xf64> {nn.output = "h"}) attributes {nn.entry} {
    %i = nn.constant dense<[30, 1, 17, 2, 5]> : tensor<5xi64>
    %pairs = nn.constant dense<[[7], [0], [29]]> : tensor<3x1xi64>
    %0 = dist.constraint %x to <@mesh, [{}, {sp}, {}]> : tensor<8x4x12xf64>
    %1 = nn.reshape %0 : (tensor<8x4x12xf64>) -> tensor<32x12xf64>
    %rows = nn.tanh %1 : tensor<32x12xf64>
    %a = nn.gather %rows, %i dim 0 : (tensor<32x12xf64>, tensor<5xi64>) -> tensor<5x12xf64>
    %b = nn.gather_nd %rows, %pairs : (tensor<32x12xf64>, tensor<3x1xi64>) -> tensor<3x12xf64>
    %c = nn.scatter_add %rows, %i, %u dim 0 : (tensor<32x12xf64>, tensor<5xi64>, tensor<5x12xf64>) -> tensor<32x12xf64>
    %2 = dist.constraint %which to <@mesh, [{}, {sp}]> : tensor<8x4xi64>
    %3 = nn.reshape %2 : (tensor<8x4xi64>) -> tensor<32xi64>
    %4 = nn.gather %table, %3 dim 0 : (tensor<9x12xf64>, tensor<32xi64>) -> tensor<32x12xf64>
    %5 = nn.sin %4 : tensor<32x12xf64>
    %d = nn.reduce sum %5 dims [0] : (tensor<32x12xf64>) -> tensor<12xf64>
    %line = nn.reduce sum %rows dims [1] : (tensor<32x12xf64>) -> tensor<32xf64>
    %logits = nn.broadcast %line : (tensor<32xf64>) -> tensor<3x32xf64>
    %labels = nn.constant dense<[30, 1, 17]> : tensor<3xi64>
    %e = nn.cross_entropy %logits, %labels : (tensor<3x32xf64>, tensor<3xi64>) -> tensor<3xf64>
    %query = nn.reshape %rows : (tensor<32x12xf64>) -> tensor<1x1x32x12xf64>
    %f, %log_sum = nn.attention %query, %keys, %keys {causal, scale = 0.5 : f64} : (tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>) -> (tensor<1x1x32x12xf64>, tensor<1x1x32xf64>)
    %h, %dk, %dv = nn.attention_grad %query, %keys, %keys output %keys, %log_sum gradient %keys {causal, scale = 0.5 : f64} : (tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>, tensor<1x1x32xf64>, tensor<1x1x32x12xf64>) -> (tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>, tensor<1x1x32x12xf64>)
    %matrices = nn.reshape %rows : (tensor<32x12xf64>) -> tensor<32x4x3xf64>
    %group = nn.constant dense<[2, 9, 11, 30]> : tensor<4xi64>
    %left = nn.constant dense<0.5> : tensor<4x4xf64>
    %g = nn.grouped_matmul %left, %matrices, %group : (tensor<4x4xf64>, tensor<32x4x3xf64>, tensor<4xi64>) -> tensor<4x3xf64>
    return %a, %b, %c, %d, %e, %f, %g, %h : tensor<5x12xf64>, tensor<3x12xf64>, tensor<32x12xf64>, tensor<12xf64>, tensor<3xf64>, tensor<1x1x32x12xf64>, tensor<4x3xf64>, tensor<1x1x32x12xf64>
  }
}
