// RUN: acc-opt %s --dist-exchange-rows -split-input-file | FileCheck %s
// RUN: acc-opt %s --dist-exchange-rows --dist-verify -split-input-file -o /dev/null

!table = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {mb, dp_shard}>>
!pieces = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {dp_shard}], partial = {mb}>>
!gradient = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {dp_shard}]>>
!ids = tensor<8xi64, #dist.sharding<@mesh, [{mb, dp_shard}]>>
!rows = tensor<8x8xf32, #dist.sharding<@mesh, [{mb, dp_shard}, {}]>>

// A tied table. The product's term is scattered as before; of the embedding's,
// each rank gets its columns of all rows of the micro-batch.
module {
dist.mesh @mesh ["mb" = 2, "dp_shard" = 2]
nn.state @table : !gradient = dense<0.0>
// CHECK-LABEL: func.func @tied(
// CHECK: %[[D1:.*]] = nn.matmul
// CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<50000x8xf32, #all-dp_shard>
// CHECK-NEXT: %[[IDS:.*]] = dist.reshard %arg0 {dist.inserted_by = "dist-exchange-rows"} : tensor<8xi64, #mb_dp_shard> -> tensor<8xi64, #mb>
// CHECK-NEXT: %[[ROWS:.*]] = dist.reshard %arg1 {dist.inserted_by = "dist-exchange-rows"} : {{.*}} -> tensor<8x8xf32, #mb-dp_shard>
// CHECK-NEXT: %[[P0:.*]] = nn.scatter_add %[[ZERO]], %[[IDS]], %[[ROWS]] dim 0 : {{.*}} -> tensor<50000x8xf32, #all-dp_shard-sum_over_mb>
// CHECK-NEXT: %[[P1:.*]] = dist.reshard %[[D1]] {dist.inserted_by = "dist-materialize"} : {{.*}} -> tensor<50000x8xf32, #all-dp_shard-sum_over_mb>
// CHECK-NEXT: %[[P:.*]] = nn.add %[[P1]], %[[P0]]
// CHECK-NEXT: %[[G:.*]] = dist.reshard %[[P]] {dist.inserted_by = "dist-materialize"}
// CHECK-NEXT: nn.gradient %[[G]] of @table
func.func @tied(%ids: !ids {nn.input = "ids"}, %dx: !rows {nn.input = "dx"}, %dy: tensor<8x50000xf32, #dist.sharding<@mesh, [{mb, dp_shard}, {}]>> {nn.input = "dy"}) -> !gradient attributes {nn.entry = #nn<entry step>} {
  %d1 = nn.matmul %dy, %dx {transpose_lhs} : (tensor<8x50000xf32, #dist.sharding<@mesh, [{mb, dp_shard}, {}]>>, !rows) -> !terms
  %zero = nn.constant dense<0.0> : !table
  %d0 = nn.scatter_add %zero, %ids, %dx dim 0 : (!table, !ids, !rows) -> !terms
  %d = nn.add %d1, %d0 : (!terms, !terms) -> !terms
  %s = dist.reshard %d {dist.inserted_by = "dist-materialize"} : !terms -> !pieces
  %t = dist.reshard %s {dist.inserted_by = "dist-materialize"} : !pieces -> !gradient
  %g = nn.gradient %t of @table : (!gradient) -> !gradient
  return %g : !gradient
}
}

// -----
!table = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!gradient = tensor<50000x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!whole_rows = tensor<4x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>

// Indices point along the dimension that pieces are of: columns are made, and
// exchanged for rows. Rows that are terms of a sum themselves are summed.
module {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @positions : !gradient = dense<0.0>
// CHECK-LABEL: func.func @untied(
// CHECK: %[[ROWS:.*]] = dist.reshard %{{.*}} : tensor<4x8xf32, #all-all-sum_over_dp_shard> -> tensor<4x8xf32, #all-dp_shard>
// CHECK-NEXT: %[[P:.*]] = nn.scatter_add %{{.*}}, %arg0, %[[ROWS]] dim 0 : {{.*}} -> tensor<50000x8xf32, #all-dp_shard>
// CHECK-NEXT: %[[G:.*]] = dist.reshard %[[P]] {{.*}} -> tensor<50000x8xf32, #dp_shard-all>
// CHECK-NEXT: nn.gradient %[[G]] of @positions
func.func @untied(%ids: tensor<4xi64, #dist.sharding<@mesh, [{}]>> {nn.input = "ids"}, %x: tensor<2x4x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>> {nn.input = "x"}) -> !gradient attributes {nn.entry = #nn<entry step>} {
  %dx = nn.reduce sum %x dims [0] : (tensor<2x4x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>) -> !whole_rows
  %zero = nn.constant dense<0.0> : !table
  %d = nn.scatter_add %zero, %ids, %dx dim 0 : (!table, tensor<4xi64, #dist.sharding<@mesh, [{}]>>, !whole_rows) -> !terms
  %s = dist.reshard %d : !terms -> !gradient
  %g = nn.gradient %s of @positions : (!gradient) -> !gradient
  return %g : !gradient
}
}

// -----
!table = tensor<4x8xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<4x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!gradient = tensor<4x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!odd = tensor<50000x7xf32, #dist.sharding<@mesh, [{}, {}]>>
!odd_terms = tensor<50000x7xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!odd_gradient = tensor<50000x7xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!ids = tensor<512xi64, #dist.sharding<@mesh, [{dp_shard}]>>
!few = tensor<8xi64, #dist.sharding<@mesh, [{dp_shard}]>>
!big_table = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {}]>>
!big_terms = tensor<50000x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!big_gradient = tensor<50000x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// Left as they are: more rows than the table has; columns that the ranks do not
// divide; a term that something else reads whole; rows added onto other terms.
module {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @small : !gradient = dense<0.0>
nn.state @odd : !odd_gradient = dense<0.0>
nn.state @read : !big_gradient = dense<0.0>
nn.state @onto : !big_gradient = dense<0.0>
// CHECK-LABEL: func.func @unchanged(
// CHECK-NOT: dist-exchange-rows
// CHECK: return
func.func @unchanged(%ids: !ids {nn.input = "ids"}, %dx: tensor<512x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>> {nn.input = "dx"}, %few: !few {nn.input = "few"},
    %dy: tensor<8x7xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>> {nn.input = "dy"}, %dz: tensor<8x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>> {nn.input = "dz"},
    %y: tensor<8x50000xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>> {nn.input = "y"},
    %same: tensor<8xi64, #dist.sharding<@mesh, [{}]>> {nn.input = "same"}, %z: tensor<2x8x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>> {nn.input = "z"}) -> (!gradient, !odd_gradient, !big_gradient, !big_table, !big_gradient) attributes {nn.entry = #nn<entry step>} {
  %zero = nn.constant dense<0.0> : !table
  %none = nn.constant dense<0.0> : !odd
  %d0 = nn.scatter_add %zero, %ids, %dx dim 0 : (!table, !ids, tensor<512x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>) -> !terms
  %d1 = nn.scatter_add %none, %few, %dy dim 0 : (!odd, !few, tensor<8x7xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>) -> !odd_terms
  %big_zero = nn.constant dense<0.0> : !big_table
  %d2 = nn.scatter_add %big_zero, %few, %dz dim 0 : (!big_table, !few, tensor<8x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>) -> !big_terms
  %w = nn.matmul %y, %dz {transpose_lhs} : (tensor<8x50000xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>) -> !big_terms
  %rows = nn.reduce sum %z dims [0] : (tensor<2x8x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
  %d3 = nn.scatter_add %w, %same, %rows dim 0 : (!big_terms, tensor<8xi64, #dist.sharding<@mesh, [{}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>) -> !big_terms
  %s0 = dist.reshard %d0 : !terms -> !gradient
  %s1 = dist.reshard %d1 : !odd_terms -> !odd_gradient
  %s2 = dist.reshard %d2 : !big_terms -> !big_gradient
  %read = dist.reshard %d2 : !big_terms -> !big_table
  %s3 = dist.reshard %d3 : !big_terms -> !big_gradient
  %g0 = nn.gradient %s0 of @small : (!gradient) -> !gradient
  %g1 = nn.gradient %s1 of @odd : (!odd_gradient) -> !odd_gradient
  %g2 = nn.gradient %s2 of @read : (!big_gradient) -> !big_gradient
  %g3 = nn.gradient %s3 of @onto : (!big_gradient) -> !big_gradient
  return %g0, %g1, %g2, %read, %g3 : !gradient, !odd_gradient, !big_gradient, !big_table, !big_gradient
}
}
