// RUN: acc-opt %s --dist-order-reductions=stage=0 | FileCheck %s --check-prefix=NONE
// RUN: acc-opt %s --dist-order-reductions=stage=1 | FileCheck %s --check-prefix=ONE
// RUN: acc-opt %s --dist-order-reductions=stage=2 | FileCheck %s --check-prefix=TWO

#whole = #dist.sharding<@mesh, [{}, {}]>
#term = #dist.sharding<@mesh, [{}, {}], partial = {mb, dp_shard}>
#piece = #dist.sharding<@mesh, [{dp_shard}, {}]>
dist.mesh @mesh ["mb" = 2, "dp_shard" = 2]
nn.state @w : tensor<4x4xf32, #piece> = dense<0.0>

// One reshard sums up and splits. In stage 1 it is a sum over the micro-batches of a rank,
// then one over ranks; from stage 2 on the ranks come first, so that pieces are summed.
// NONE: dist.reshard %arg0 {{.*}}sum_over_mb_dp_shard> -> tensor<4x4xf32, #dp_shard-all>
// ONE: %[[SUM:.*]] = dist.reshard %arg0 {{.*}}sum_over_mb_dp_shard> -> tensor<4x4xf32, #all-all-sum_over_dp_shard>
// ONE-NEXT: dist.reshard %[[SUM]] {{.*}} -> tensor<4x4xf32, #dp_shard-all>
// TWO: %[[PIECE:.*]] = dist.reshard %arg0 {{.*}}sum_over_mb_dp_shard> -> tensor<4x4xf32, #dp_shard-all-sum_over_mb>
// TWO-NEXT: dist.reshard %[[PIECE]] {{.*}} -> tensor<4x4xf32, #dp_shard-all>
func.func @gradient(%dw: tensor<4x4xf32, #term>) -> tensor<4x4xf32, #piece> {
  %0 = dist.reshard %dw {dist.inserted_by = "dist-materialize"} : tensor<4x4xf32, #term> -> tensor<4x4xf32, #piece>
  %g = nn.gradient %0 of @w : tensor<4x4xf32, #piece>
  return %g : tensor<4x4xf32, #piece>
}

// What is partial over ranks alone has one order.
// ONE: func.func @ranks
// ONE: dist.reshard
// ONE-NOT: dist.reshard
func.func @ranks(%x: tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>) -> tensor<4x4xf32, #whole> {
  %0 = dist.reshard %x {dist.inserted_by = "dist-materialize"} : tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>> -> tensor<4x4xf32, #whole>
  return %0 : tensor<4x4xf32, #whole>
}
