// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 micro-batches=2 set=zero_stage=1" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=ONE
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 micro-batches=2 set=zero_stage=2" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=TWO
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 micro-batches=2 set=zero_stage=3" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=THREE
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2 micro-batches=2 set=zero_stage=3,zero.gather_once=true" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=ONCE
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp_replicate=2,dp_shard=2 micro-batches=2 set=zero_stage=3" --dist-scatter-gradients --dist-place-gathers | FileCheck %s --check-prefix=HYBRID

// Where the sum over micro-batches stands, before or after the sum over ranks,
// is what the stages differ in; where weights are gathered is the third.

module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf32> = dense<0.0>
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}, tensor<4x4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %a = nn.relu %y : tensor<8x4xf32>
  %xt = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw = nn.matmul %xt, %a : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %g = nn.gradient %dw of @w : tensor<4x4xf32>
  %w1 = nn.sub %w, %g : tensor<4x4xf32>
  return %loss, %w1 : tensor<f32>, tensor<4x4xf32>
}
}

// ONE: nn.state @w : tensor<4x4xf32, #all-all>
// ONE: nn.state accumulator @"accumulator/w" : tensor<4x4xf32, #all-all-sum_over_dp_shard> = dense<0.0
// ONE: %[[DW:.*]] = nn.matmul {{.*}}sum_over_mb_dp_shard
// ONE: dist.accumulate sum %[[DW]] in @"accumulator/w" : {{.*}} -> tensor<4x4xf32, #all-all-sum_over_dp_shard
// ONE: dist.reshard {{.*}}sum_over_dp_shard> -> tensor<4x4xf32, #dp_shard-all>
// ONE: nn.gradient
// The new value is whole again.
// ONE: nn.sub {{.*}}tensor<4x4xf32, #dp_shard-all>
// ONE: dist.reshard {{.*}}#dp_shard-all> -> tensor<4x4xf32, #all-all>

// TWO: nn.state @w : tensor<4x4xf32, #all-all>
// TWO: dist.reshard {{.*}}sum_over_mb_dp_shard> -> tensor<4x4xf32, #dp_shard-all-sum_over_mb
// TWO: dist.accumulate sum {{.*}} in @"accumulator/w" : {{.*}}sum_over_mb> -> tensor<4x4xf32, #dp_shard-all>
// TWO: nn.gradient

// THREE: nn.state @w : tensor<4x4xf32, #dp_shard-all>
// THREE: %[[W:.*]] = dist.reshard %arg1 {dist.inserted_by = "dist-place-gathers", dist.instance = 0 : i64, dist.unit = "model"}
// THREE-NEXT: nn.matmul %arg0, %[[W]]
// The backward does not need it.
// THREE-NOT: dist.instance
// THREE: nn.sub %arg1, {{.*}}tensor<4x4xf32, #dp_shard-all>
// THREE-NEXT: dist.accumulate sum {{.*}} in @"accumulator/loss"
// THREE-NEXT: dist.reshard
// THREE-NEXT: return

// ONCE-NOT: dist.instance

// HYBRID: nn.state @w : tensor<4x4xf32, #dp_shard-all>
// HYBRID: dist.reshard {{.*}}sum_over_mb_dp_replicate_dp_shard> -> tensor<4x4xf32, #dp_shard-all-sum_over_mb_dp_replicate
