// Folders of dist, and that no pattern drops or changes an encoding.
// RUN: acc-opt %s --canonicalize --cse | FileCheck %s

dist.mesh @m ["dp" = 2]
!whole = tensor<8x8xf32, #dist.sharding<@m, [{}, {}]>>
!rows = tensor<8x8xf32, #dist.sharding<@m, [{dp}, {}]>>
!columns = tensor<8x8xf32, #dist.sharding<@m, [{}, {dp}]>>
!partial = tensor<8x8xf32, #dist.sharding<@m, [{}, {}], partial = {dp}>>

// CHECK-LABEL: @reshard_to_itself(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: return %[[X]]
func.func @reshard_to_itself(%x: !rows) -> !rows {
  %0 = dist.reshard %x : !rows -> !rows
  return %0 : !rows
}

// CHECK-LABEL: @reshard_twice(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: %[[Y:.*]] = dist.reshard %[[X]] : tensor<8x8xf32, #dp-all> -> tensor<8x8xf32, #all-dp>
// CHECK-NEXT: return %[[Y]]
func.func @reshard_twice(%x: !rows) -> !columns {
  %0 = dist.reshard %x : !rows -> !whole
  %1 = dist.reshard %0 : !whole -> !columns
  return %1 : !columns
}

// CHECK-LABEL: @no_group(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: return %[[X]]
func.func @no_group(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dist.all_reduce sum %x over @m {} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Ops that fold on plain types stay where folding would lose a sharding.
// CHECK-LABEL: @encodings_stay(
// CHECK: nn.reshape %{{.*}} -> tensor<64xf32, #dp>
// CHECK: nn.reshape %{{.*}} -> tensor<8x8xf32, #dp-all>
// CHECK: nn.transpose
// CHECK: nn.transpose
func.func @encodings_stay(%x: !rows) -> !rows {
  %0 = nn.reshape %x : (!rows) -> tensor<64xf32, #dist.sharding<@m, [{dp}]>>
  %1 = nn.reshape %0 : (tensor<64xf32, #dist.sharding<@m, [{dp}]>>) -> !rows
  %2 = nn.transpose %1 [1, 0] : (!rows) -> !columns
  %3 = nn.transpose %2 [1, 0] : (!columns) -> !rows
  return %3 : !rows
}
