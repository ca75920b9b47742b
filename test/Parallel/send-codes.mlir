// Codes of 8 bits are sent, and not the numbers that are made of them: to ranks that have pieces of
// the sum; of four ranks to all; of eight, whose codes would be more bytes than their sum, in pieces.
// RUN: acc-opt %s --dist-send-codes --split-input-file | FileCheck %s
// RUN: acc-opt %s --dist-verify --split-input-file -o /dev/null
// RUN: acc-opt %s --dist-send-codes --dist-verify --split-input-file -o /dev/null

!codes = tensor<4x16x8xf8E4M3FN, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>
!wide = tensor<4x16x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>
!terms = tensor<16x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!pieces = tensor<16x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!whole = tensor<16x8xf32, #dist.sharding<@mesh, [{}, {}]>>

module attributes {accel.decisions = {}, accel.phase = "decided"} {
dist.mesh @mesh ["dp_shard" = 4]
// CHECK-LABEL: func.func @pieces(
// CHECK: %[[C:.*]] = dist.reshard %arg0 {dist.inserted_by = "dist-materialize"} : {{.*}} -> tensor<4x16x8xf8E4M3FN, #all-dp_shard-all>
// CHECK-NEXT: %[[W:.*]] = nn.cast %[[C]] : {{.*}} -> tensor<4x16x8xf32, #all-dp_shard-all>
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[W]] dims [0] : {{.*}} -> tensor<16x8xf32, #dp_shard-all>
// CHECK-NEXT: nn.complete %[[S]]
func.func @pieces(%codes: !codes {nn.input = "codes"}) -> (!pieces {nn.output = "y"}) attributes {nn.entry = #nn<entry step>} {
  %wide = nn.cast %codes : (!codes) -> !wide
  %terms = nn.reduce sum %wide dims [0] : (!wide) -> !terms
  %sum = dist.reshard %terms {dist.inserted_by = "dist-materialize"} : !terms -> !pieces
  %y = nn.complete %sum : !pieces
  return %y : !pieces
}
}

// -----

!codes = tensor<4x16x8xf8E4M3FN, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>
!wide = tensor<4x16x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>
!terms = tensor<16x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!whole = tensor<16x8xf32, #dist.sharding<@mesh, [{}, {}]>>

module attributes {accel.decisions = {}, accel.phase = "decided"} {
dist.mesh @mesh ["dp_shard" = 4]
// CHECK-LABEL: func.func @whole(
// CHECK: %[[C:.*]] = dist.reshard %arg0 {{.*}} -> tensor<4x16x8xf8E4M3FN, #all-all-all>
// CHECK: nn.reduce sum %{{.*}} dims [0] : {{.*}} -> tensor<16x8xf32, #all-all>
// CHECK-NOT: dist.reshard
// What several read, and what is no code, stays as it is.
// CHECK-LABEL: func.func @others(
// CHECK: dist.reshard %{{.*}} : tensor<16x8xf32, #{{.*}}sum_over{{.*}}> -> tensor<16x8xf32, #all-all>
func.func @whole(%codes: !codes {nn.input = "codes"}) -> (!whole {nn.output = "y"}) attributes {nn.entry = #nn<entry step>} {
  %wide = nn.cast %codes : (!codes) -> !wide
  %terms = nn.reduce sum %wide dims [0] : (!wide) -> !terms
  %sum = dist.reshard %terms : !terms -> !whole
  return %sum : !whole
}
func.func @others(%wide: !wide {nn.input = "wide"}) -> (!whole {nn.output = "y"}) attributes {nn.entry = #nn<entry eval>} {
  %terms = nn.reduce sum %wide dims [0] : (!wide) -> !terms
  %sum = dist.reshard %terms : !terms -> !whole
  return %sum : !whole
}
}

// -----

!codes = tensor<8x16x8xf8E4M3FN, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>
!wide = tensor<8x16x8xf32, #dist.sharding<@mesh, [{dp_shard}, {}, {}]>>
!terms = tensor<16x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!whole = tensor<16x8xf32, #dist.sharding<@mesh, [{}, {}]>>

module attributes {accel.decisions = {}, accel.phase = "decided"} {
dist.mesh @mesh ["dp_shard" = 8]
// CHECK-LABEL: func.func @eight(
// CHECK: dist.reshard %arg0 {{.*}} -> tensor<8x16x8xf8E4M3FN, #all-dp_shard-all>
// CHECK: %[[S:.*]] = nn.reduce sum %{{.*}} dims [0]
// CHECK: dist.reshard %[[S]] : tensor<16x8xf32, #dp_shard-all> -> tensor<16x8xf32, #all-all>
func.func @eight(%codes: !codes {nn.input = "codes"}) -> (!whole {nn.output = "y"}) attributes {nn.entry = #nn<entry step>} {
  %wide = nn.cast %codes : (!codes) -> !wide
  %terms = nn.reduce sum %wide dims [0] : (!wide) -> !terms
  %sum = dist.reshard %terms : !terms -> !whole
  return %sum : !whole
}
}
