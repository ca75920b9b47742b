// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=3" --dist-scatter-gradients --dist-place-gathers | FileCheck %s
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=TWO
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=TWO
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=3,zero.gather_once=true" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=ONCE
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=4 set=zero_stage=3,zero.hpz_partition_size=2" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=GROUPS

// A table that is looked up first and multiplied with last, three blocks between,
// whose weights are read rounded. What is not gathered is rounded by unit just
// the same, and what is gathered once a step is rounded before. The backward begins in the last unit, which is
// gathered once; it goes through the blocks from the last to the first, and needs
// neither their biases nor, to add to the table's gradient, the table.

module attributes {accel.phase = "train"} {
nn.state @embed.table : tensor<6x4xf32> = dense<0.0>
nn.state @h.0.mlp.w : tensor<4x4xf32> = dense<0.0>
nn.state @h.0.mlp.b : tensor<4xf32> = dense<0.0>
nn.state @h.1.mlp.w : tensor<4x4xf32> = dense<0.0>
nn.state @h.1.mlp.b : tensor<4xf32> = dense<0.0>
nn.state @h.2.mlp.w : tensor<4x4xf32> = dense<0.0>
nn.state @h.2.mlp.b : tensor<4xf32> = dense<0.0>
func.func @step(%ids: tensor<8xi64> {nn.input = "ids"}, %table: tensor<6x4xf32> {nn.state = @embed.table},
    %w0: tensor<4x4xf32> {nn.state = @h.0.mlp.w}, %b0: tensor<4xf32> {nn.state = @h.0.mlp.b},
    %w1: tensor<4x4xf32> {nn.state = @h.1.mlp.w}, %b1: tensor<4xf32> {nn.state = @h.1.mlp.b},
    %w2: tensor<4x4xf32> {nn.state = @h.2.mlp.w}, %b2: tensor<4xf32> {nn.state = @h.2.mlp.b})
    -> (tensor<f32> {nn.output = "loss"}, tensor<6x4xf32> {nn.state = @embed.table},
        tensor<4x4xf32> {nn.state = @h.0.mlp.w}, tensor<4xf32> {nn.state = @h.0.mlp.b},
        tensor<4x4xf32> {nn.state = @h.1.mlp.w}, tensor<4xf32> {nn.state = @h.1.mlp.b},
        tensor<4x4xf32> {nn.state = @h.2.mlp.w}, tensor<4xf32> {nn.state = @h.2.mlp.b}) attributes {nn.entry = #nn<entry step>} {
  %x0 = nn.gather %table, %ids dim 0 : (tensor<6x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  %x0h = nn.cast %x0 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %w0h = nn.cast %w0 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %y0h = nn.matmul %x0h, %w0h : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %y0 = nn.cast %y0h : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %c0 = nn.broadcast %b0 : (tensor<4xf32>) -> tensor<8x4xf32>
  %x1 = nn.add %y0, %c0 : tensor<8x4xf32>
  %x1h = nn.cast %x1 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %w1h = nn.cast %w1 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %y1h = nn.matmul %x1h, %w1h : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %y1 = nn.cast %y1h : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %c1 = nn.broadcast %b1 : (tensor<4xf32>) -> tensor<8x4xf32>
  %x2 = nn.add %y1, %c1 : tensor<8x4xf32>
  %x2h = nn.cast %x2 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %w2h = nn.cast %w2 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %y2h = nn.matmul %x2h, %w2h : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %y2 = nn.cast %y2h : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %c2 = nn.broadcast %b2 : (tensor<4xf32>) -> tensor<8x4xf32>
  %x3 = nn.add %y2, %c2 : tensor<8x4xf32>
  %tt = nn.transpose %table [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %logits = nn.matmul %x3, %tt : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %loss = nn.reduce sum %logits dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32>
  %d3 = nn.matmul %logits, %table : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %lt = nn.transpose %logits [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %dt = nn.matmul %lt, %x3 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %e3h = nn.cast %d3 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %w2t = nn.transpose %w2h [1, 0] : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %d2h = nn.matmul %e3h, %w2t : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %d2 = nn.cast %d2h : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %x2t = nn.transpose %x2 [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw2 = nn.matmul %x2t, %d3 : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %db2 = nn.reduce sum %d3 dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %e2h = nn.cast %d2 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %w1t = nn.transpose %w1h [1, 0] : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %d1h = nn.matmul %e2h, %w1t : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %d1 = nn.cast %d1h : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %x1t = nn.transpose %x1 [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw1 = nn.matmul %x1t, %d2 : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %db1 = nn.reduce sum %d2 dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %e1h = nn.cast %d1 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %w0t = nn.transpose %w0h [1, 0] : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %d0h = nn.matmul %e1h, %w0t : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %d0 = nn.cast %d0h : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %x0t = nn.transpose %x0 [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw0 = nn.matmul %x0t, %d1 : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %db0 = nn.reduce sum %d1 dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %zero = nn.constant dense<0.0> : tensor<6x4xf32>
  %de = nn.scatter_add %zero, %ids, %d0 dim 0 : (tensor<6x4xf32>, tensor<8xi64>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %dtable = nn.add %dt, %de : tensor<6x4xf32>
  %gt = nn.gradient %dtable of @embed.table : tensor<6x4xf32>
  %t1 = nn.sub %table, %gt : tensor<6x4xf32>
  %gw0 = nn.gradient %dw0 of @h.0.mlp.w : tensor<4x4xf32>
  %gb0 = nn.gradient %db0 of @h.0.mlp.b : tensor<4xf32>
  %nw0 = nn.sub %w0, %gw0 : tensor<4x4xf32>
  %nb0 = nn.sub %b0, %gb0 : tensor<4xf32>
  %gw1 = nn.gradient %dw1 of @h.1.mlp.w : tensor<4x4xf32>
  %gb1 = nn.gradient %db1 of @h.1.mlp.b : tensor<4xf32>
  %nw1 = nn.sub %w1, %gw1 : tensor<4x4xf32>
  %nb1 = nn.sub %b1, %gb1 : tensor<4xf32>
  %gw2 = nn.gradient %dw2 of @h.2.mlp.w : tensor<4x4xf32>
  %gb2 = nn.gradient %db2 of @h.2.mlp.b : tensor<4xf32>
  %nw2 = nn.sub %w2, %gw2 : tensor<4x4xf32>
  %nb2 = nn.sub %b2, %gb2 : tensor<4xf32>
  return %loss, %t1, %nw0, %nb0, %nw1, %nb1, %nw2, %nb2
      : tensor<f32>, tensor<6x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4xf32>
}
}

// CHECK: %[[T:.*]] = dist.reshard %arg1 {{.*}}dist.instance = 0 : i64, dist.unit = "embed"}
// CHECK-NEXT: nn.gather %[[T]]
// A weight is rounded with its unit, in each micro-batch.
// CHECK: %[[W0:.*]] = nn.cast %arg2 {dist.instance = 1 : i64} : (tensor<4x4xf32, #dp_shard-all>)
// CHECK-NEXT: dist.reshard %[[W0]] {{.*}}dist.instance = 1 : i64, dist.unit = "h.0.mlp"} : {{.*}} -> tensor<4x4xbf16, #all-all>
// CHECK-NEXT: dist.reshard %arg3 {{.*}}dist.instance = 1 : i64, dist.unit = "h.0.mlp"}
// CHECK: %[[W1:.*]] = nn.cast %arg4
// CHECK-NEXT: dist.reshard %[[W1]] {{.*}}dist.instance = 2 : i64, dist.unit = "h.1.mlp"}
// CHECK: %[[W2:.*]] = nn.cast %arg6
// CHECK-NEXT: dist.reshard %[[W2]] {{.*}}dist.instance = 3 : i64, dist.unit = "h.2.mlp"}
// CHECK: %[[HEAD:.*]] = dist.reshard %arg1 {{.*}}dist.instance = 4 : i64, dist.unit = "embed/1"}
// CHECK-NEXT: nn.transpose %[[HEAD]]
// CHECK: nn.matmul {{.*}}, %[[HEAD]]
// Each unit's gradients are scattered where they are made; the table's twice,
// since it is in two units.
// CHECK: %[[DT:.*]] = nn.matmul
// CHECK-NEXT: %[[TAIL:.*]] = dist.reshard %[[DT]] {dist.inserted_by = "dist-materialize", dist.unit = "embed/1"}
// CHECK: nn.cast %arg6 {dist.instance = 5 : i64}
// CHECK: dist.reshard {{.*}}dist.instance = 5 : i64, dist.unit = "h.2.mlp"}
// CHECK: %[[DW2:.*]] = nn.matmul {{.*}}sum_over_dp_shard
// CHECK-NEXT: dist.reshard %[[DW2]] {dist.inserted_by = "dist-materialize", dist.unit = "h.2.mlp"}
// CHECK: dist.reshard {{.*}}dist.instance = 6 : i64, dist.unit = "h.1.mlp"}
// CHECK: dist.reshard {{.*}}dist.instance = 7 : i64, dist.unit = "h.0.mlp"}
// CHECK-NOT: dist.instance
// CHECK: %[[DE:.*]] = nn.scatter_add
// CHECK-NEXT: %[[LOOKED:.*]] = dist.reshard %[[DE]] {dist.inserted_by = "dist-materialize", dist.unit = "embed"}
// CHECK-NEXT: nn.add %[[TAIL]], %[[LOOKED]] : tensor<6x4xf32, #dp_shard-all>

// The update works on pieces.
// CHECK: nn.sub %arg1, {{.*}}tensor<6x4xf32, #dp_shard-all>

// TWO-COUNT-2: nn.cast %arg2 {dist.instance
// TWO-NOT: dist-place-gathers

// ONCE: %[[ROUND:.*]] = nn.cast %arg2 : (tensor<4x4xf32, #dp_shard-all>)
// ONCE: dist.reshard %[[ROUND]] {{.*}} -> tensor<4x4xbf16, #all-all>
// ONCE-NOT: nn.cast %arg2

// Groups of two keep a copy (hpZ): the forward gathers over the groups, all of a unit first, and what that
// makes in each; the backward goes on with what the forward has kept, of the table's second use it does
// already. What is read rounded is kept rounded.
// GROUPS: dist.mesh @mesh ["dp_groups" = 2, "dp_shard" = 2]
// GROUPS: %[[T:.*]] = dist.reshard %arg1 {{.*}}dist.instance = 0 : i64, dist.unit = "embed"} : {{.*}}dp_shard_dp_groups> -> tensor<6x4xf32, #all-dp_shard>
// GROUPS-NEXT: dist.reshard %[[T]] {{.*}}dist.instance = 0 : i64, dist.unit = "embed"} : {{.*}} -> tensor<6x4xf32, #all-all>
// GROUPS: %[[W0:.*]] = nn.cast %arg2 {dist.instance = 1 : i64} : (tensor<4x4xf32, #dp_shard_dp_groups-all>)
// GROUPS-NEXT: %[[K0:.*]] = dist.reshard %[[W0]] {{.*}} -> tensor<4x4xbf16, #dp_shard-all>
// GROUPS-NEXT: %[[B0:.*]] = dist.reshard %arg3 {{.*}} -> tensor<4xf32, #dp_shard>
// GROUPS-NEXT: dist.reshard %[[K0]] {{.*}}dist.instance = 1 : i64, dist.unit = "h.0.mlp"} : {{.*}} -> tensor<4x4xbf16, #all-all>
// GROUPS-NEXT: dist.reshard %[[B0]] {{.*}} -> tensor<4xf32, #all>
// GROUPS: %[[K2:.*]] = dist.reshard {{.*}}dist.instance = 3 : i64{{.*}} -> tensor<4x4xbf16, #dp_shard-all>
// GROUPS: dist.reshard %[[T]] {{.*}}dist.instance = 4 : i64, dist.unit = "embed/1"} : {{.*}}#all-dp_shard> -> tensor<6x4xf32, #all-all>
// GROUPS-NOT: nn.cast %arg
// GROUPS: dist.reshard %[[K2]] {{.*}}dist.instance = 5 : i64, dist.unit = "h.2.mlp"} : {{.*}}#dp_shard-all> -> tensor<4x4xbf16, #all-all>
// GROUPS: dist.instance = 6 : i64
// GROUPS: dist.reshard %[[K0]] {{.*}}dist.instance = 7 : i64, dist.unit = "h.0.mlp"} : {{.*}}#dp_shard-all> -> tensor<4x4xbf16, #all-all>
// GROUPS-NOT: dist.instance
// GROUPS: nn.sub %arg1, {{.*}}dp_shard_dp_groups
