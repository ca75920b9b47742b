// RUN: acc-opt %s --dist-declare-accumulators | FileCheck %s

#whole = #dist.sharding<@mesh, [{}, {}]>
#term = #dist.sharding<@mesh, [{}, {}], partial = {mb, dp_shard}>
#ranks = #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>
#piece = #dist.sharding<@mesh, [{dp_shard}, {}]>
dist.mesh @mesh ["mb" = 2, "dp_shard" = 2]
nn.state @w : tensor<4x4xf32, #piece> = dense<0.0>

// A state holds what the micro-batches come to so far, named after the gradient that it
// becomes. It stays partial over ranks: what sums these up, and splits, stands behind it.
// CHECK: nn.state accumulator @"accumulator/w" : tensor<4x4xf32, #all-all-sum_over_dp_shard> = dense<0.0
// CHECK: func.func @gradient(%[[DW:.*]]: tensor
// CHECK-NEXT: %[[SUM:.*]] = dist.accumulate sum %[[DW]] in @"accumulator/w" : tensor<4x4xf32, #all-all-sum_over_mb_dp_shard> -> tensor<4x4xf32, #all-all-sum_over_dp_shard>
// CHECK-NEXT: %[[PIECE:.*]] = dist.reshard %[[SUM]] {{.*}} -> tensor<4x4xf32, #dp_shard-all>
// CHECK-NEXT: nn.gradient %[[PIECE]] of @w
func.func @gradient(%dw: tensor<4x4xf32, #term>) -> tensor<4x4xf32, #piece> attributes {nn.entry = #nn<entry step>} {
  %0 = dist.reshard %dw : tensor<4x4xf32, #term> -> tensor<4x4xf32, #ranks>
  %1 = dist.reshard %0 : tensor<4x4xf32, #ranks> -> tensor<4x4xf32, #piece>
  %g = nn.gradient %1 of @w : tensor<4x4xf32, #piece>
  return %g : tensor<4x4xf32, #piece>
}

// Nothing is summed over micro-batches here.
// CHECK: func.func @ranks
// CHECK-NOT: dist.accumulate
// CHECK: return
func.func @ranks(%x: tensor<4x4xf32, #ranks>) -> tensor<4x4xf32, #whole> attributes {nn.entry = #nn<entry eval>} {
  %0 = dist.reshard %x : tensor<4x4xf32, #ranks> -> tensor<4x4xf32, #whole>
  return %0 : tensor<4x4xf32, #whole>
}
