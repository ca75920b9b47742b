// RUN: acc-opt %s --dist-localize | FileCheck %s

// Indices into a table of which ranks have rows: less where the rank's begin, 0 for those of other ranks, and as
// they are where they point nowhere, so that the run stops. What others have is zeros. An index below 0 counts from
// the end, but for `non_negative`.
dist.mesh @m ["a" = 2]
!table = tensor<8x3xf32, #dist.sharding<@m, [{a}, {}]>>
!ids = tensor<5xi32, #dist.sharding<@m, [{}]>>
!rows = tensor<5x3xf32, #dist.sharding<@m, [{}, {}]>>
// CHECK-LABEL: @lookup(%arg0: tensor<4x3xf32>
// CHECK-NEXT: %[[I:.*]] = nn.cast %arg1 : (tensor<5xi32>) -> tensor<5xi64>
// CHECK-NEXT: %[[ZERO:.*]] = nn.constant dense<0> : tensor<5xi64>
// CHECK-NEXT: %[[SIZE:.*]] = nn.constant dense<8> : tensor<5xi64>
// CHECK-NEXT: %[[BELOW:.*]] = nn.compare lt %[[I]], %[[ZERO]]
// CHECK-NEXT: %[[WRAPPED:.*]] = nn.add %[[I]], %[[SIZE]]
// CHECK-NEXT: %[[ROW:.*]] = nn.select %[[BELOW]], %[[WRAPPED]], %[[I]]
// CHECK: %[[RANK:.*]] = dist.axis_index @m {a}
// CHECK-NEXT: nn.constant dense<4> : tensor<i64>
// CHECK-NEXT: %[[BEGIN:.*]] = nn.mul %[[RANK]]
// CHECK-NEXT: %[[FIRST:.*]] = nn.broadcast %[[BEGIN]]
// CHECK: %[[END:.*]] = nn.add %[[FIRST]]
// CHECK-NEXT: %[[GE:.*]] = nn.compare ge %[[ROW]], %[[FIRST]]
// CHECK-NEXT: %[[LT:.*]] = nn.compare lt %[[ROW]], %[[END]]
// CHECK-NEXT: %[[OWN:.*]] = nn.and %[[GE]], %[[LT]]
// CHECK: %[[THERE:.*]] = nn.and
// CHECK-NEXT: %[[OTHER:.*]] = nn.select %[[THERE]], %[[ZERO]], %[[I]]
// CHECK-NEXT: %[[OFFSET:.*]] = nn.sub %[[ROW]], %[[FIRST]]
// CHECK-NEXT: %[[INDEX:.*]] = nn.select %[[OWN]], %[[OFFSET]], %[[OTHER]]
// CHECK-NEXT: %[[FOUND:.*]] = nn.gather %arg0, %[[INDEX]] dim 0 : (tensor<4x3xf32>, tensor<5xi64>) -> tensor<5x3xf32>
// CHECK-NEXT: %[[UNIT:.*]] = nn.reshape %[[OWN]] : (tensor<5xi1>) -> tensor<5x1xi1>
// CHECK-NEXT: %[[MASK:.*]] = nn.broadcast %[[UNIT]] : (tensor<5x1xi1>) -> tensor<5x3xi1>
// CHECK-NEXT: %[[NONE:.*]] = nn.constant dense<0.000000e+00> : tensor<5x3xf32>
// CHECK-NEXT: nn.select %[[MASK]], %[[FOUND]], %[[NONE]]
func.func @lookup(%table: !table, %ids: !ids) -> tensor<5x3xf32, #dist.sharding<@m, [{}, {}], partial = {a}>> {
  %0 = nn.gather %table, %ids dim 0 padding 1 : (!table, !ids) -> tensor<5x3xf32, #dist.sharding<@m, [{}, {}], partial = {a}>>
  return %0 : tensor<5x3xf32, #dist.sharding<@m, [{}, {}], partial = {a}>>
}

// CHECK-LABEL: @non_negative(
// CHECK-NOT: nn.add
// CHECK: %[[END:.*]] = nn.add
// CHECK-NOT: nn.add
// CHECK: nn.gather {{.*}} {non_negative}
func.func @non_negative(%table: !table, %ids: !ids) -> tensor<5x3xf32, #dist.sharding<@m, [{}, {}], partial = {a}>> {
  %0 = nn.gather %table, %ids dim 0 {non_negative} : (!table, !ids) -> tensor<5x3xf32, #dist.sharding<@m, [{}, {}], partial = {a}>>
  return %0 : tensor<5x3xf32, #dist.sharding<@m, [{}, {}], partial = {a}>>
}

// The gradient of a lookup, on the rank that has the row.
// CHECK-LABEL: @add(%arg0: tensor<4x3xf32>
// CHECK: nn.sub
// CHECK-NEXT: %[[INDEX:.*]] = nn.select
// CHECK-NEXT: %[[UNIT:.*]] = nn.reshape
// CHECK-NEXT: %[[MASK:.*]] = nn.broadcast %[[UNIT]]
// CHECK: %[[UPDATES:.*]] = nn.select %[[MASK]], %arg2
// CHECK-NEXT: nn.scatter_add %arg0, %[[INDEX]], %[[UPDATES]] dim 0 : (tensor<4x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<4x3xf32>
func.func @add(%table: !table, %ids: !ids, %rows: !rows) -> !table {
  %0 = nn.scatter_add %table, %ids, %rows dim 0 : (!table, !ids, !rows) -> !table
  return %0 : !table
}
