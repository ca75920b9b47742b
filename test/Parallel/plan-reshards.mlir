// RUN: acc-opt %s --dist-plan-reshards | FileCheck %s

dist.mesh @m ["a" = 2, "b" = 4]

// Reduced, then scattered with the other axis in place: each step is one
// collective.
// CHECK-LABEL: @two_steps(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: %[[Y:.*]] = dist.reshard %[[X]] {dist.inserted_by = "somebody"} : tensor<8x8xf32, #a-all-sum_over_b> -> tensor<8x8xf32, #a-b>
// CHECK-NEXT: %[[Z:.*]] = dist.reshard %[[Y]] {dist.inserted_by = "somebody"} : tensor<8x8xf32, #a-b> -> tensor<8x8xf32, #all-b>
// CHECK-NEXT: return %[[Z]]
func.func @two_steps(%x: tensor<8x8xf32, #dist.sharding<@m, [{a}, {}], partial = {b}>>) -> tensor<8x8xf32, #dist.sharding<@m, [{}, {b}]>> {
  %0 = dist.reshard %x {dist.inserted_by = "somebody"} : tensor<8x8xf32, #dist.sharding<@m, [{a}, {}], partial = {b}>> -> tensor<8x8xf32, #dist.sharding<@m, [{}, {b}]>>
  return %0 : tensor<8x8xf32, #dist.sharding<@m, [{}, {b}]>>
}

// CHECK-LABEL: @one_step(
// CHECK-COUNT-1: dist.reshard
// CHECK-NOT: dist.reshard
func.func @one_step(%x: tensor<8x8xf32, #dist.sharding<@m, [{a}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@m, [{}, {a}]>> {
  %0 = dist.reshard %x : tensor<8x8xf32, #dist.sharding<@m, [{a}, {}]>> -> tensor<8x8xf32, #dist.sharding<@m, [{}, {a}]>>
  return %0 : tensor<8x8xf32, #dist.sharding<@m, [{}, {a}]>>
}

// Axes that end beside each other move at once.
// CHECK-LABEL: @two_axes(
// CHECK-COUNT-1: dist.reshard
// CHECK-NOT: dist.reshard
func.func @two_axes(%x: tensor<512x512xf32, #dist.sharding<@m, [{a, b}, {}]>>) -> tensor<512x512xf32, #dist.sharding<@m, [{}, {a, b}]>> {
  %0 = dist.reshard %x : tensor<512x512xf32, #dist.sharding<@m, [{a, b}, {}]>> -> tensor<512x512xf32, #dist.sharding<@m, [{}, {a, b}]>>
  return %0 : tensor<512x512xf32, #dist.sharding<@m, [{}, {a, b}]>>
}

// Pieces change hands first, where one gather can follow: not all are gathered.
// CHECK-LABEL: @permuted_first(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: %[[Y:.*]] = dist.reshard %[[X]] : {{.*}} -> tensor<512x512xf32, #b_a-all>
// CHECK-NEXT: %[[Z:.*]] = dist.reshard %[[Y]] : {{.*}} -> tensor<512x512xf32, #b-all>
// CHECK-NEXT: return %[[Z]]
func.func @permuted_first(%x: tensor<512x512xf32, #dist.sharding<@m, [{a, b}, {}]>>) -> tensor<512x512xf32, #dist.sharding<@m, [{b}, {}]>> {
  %0 = dist.reshard %x : tensor<512x512xf32, #dist.sharding<@m, [{a, b}, {}]>> -> tensor<512x512xf32, #dist.sharding<@m, [{b}, {}]>>
  return %0 : tensor<512x512xf32, #dist.sharding<@m, [{b}, {}]>>
}
