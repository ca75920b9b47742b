// RUN: acc-opt %s --plan-bucket-collectives="bytes=64" | FileCheck %s --check-prefixes=CHECK,JOIN
// RUN: acc-opt %s --plan-bucket-collectives="bytes=64" --plan-overlap-collectives | FileCheck %s --check-prefixes=CHECK,OVERLAP

func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
func.func private @add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %c = nn.add %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}
dist.mesh @m ["dp" = 2]

// Two reductions of 32 bytes fill a bucket, the last one is one of its own; none
// is read here, so they go on beside the computation.
// CHECK-LABEL: plan.program @p
// CHECK: plan.body @backward
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@b
// OVERLAP-NEXT: plan.record "collective_0"
// OVERLAP-NEXT: plan.wait "collective_0" {stream = "comm"}
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@a {{.*}}@b {{.*}}] -> [{{.*}}@a {{.*}}@b {{.*}}] {combine = #plan<combine sum>
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@c
// OVERLAP-NEXT: plan.record "collective_1"
// OVERLAP-NEXT: plan.wait "collective_1" {stream = "comm"}
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@c {{.*}}] -> [{{.*}}@c {{.*}}] {combine = #plan<combine sum>{{.*}}
// OVERLAP-NEXT: plan.record "collective_1_done" {stream = "comm"}
// OVERLAP-NEXT: plan.wait "collective_1_done"
// CHECK-NEXT: }
// A bucket is reduced before its sums are read, and other ways of combining do
// not join it. Where there is nothing to go on beside, nothing moves.
// CHECK: plan.body @reads
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@a {{.*}}] -> [{{.*}}@a {{.*}}] {combine = #plan<combine sum>}
// CHECK-NEXT: plan.kernel @negate {{.*}}@a {{.*}} -> {{.*}}@b
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@b {{.*}}] -> [{{.*}}@b {{.*}}] {combine = #plan<combine max>}
// CHECK-NEXT: }
// What adds scattered sums to accumulators waits with them, until the next bucket.
// CHECK: plan.body @scatters
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@b
// OVERLAP-NEXT: plan.record
// OVERLAP-NEXT: plan.wait
// CHECK-NEXT: plan.collective reduce_scatter ["dp"] [{{.*}}@a {{.*}}@b {{.*}}] -> [{{.*}}@s {{.*}}@t
// OVERLAP-NEXT: plan.record "collective_0_done" {stream = "comm"}
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@c
// OVERLAP-NEXT: plan.wait "collective_0_done"
// CHECK-NEXT: plan.kernel @add {{.*}}@p {{.*}}@s {{.*}} -> {{.*}}@p
// CHECK-NEXT: plan.kernel @add {{.*}}@q {{.*}}@t {{.*}} -> {{.*}}@q
// OVERLAP-NEXT: plan.record
// OVERLAP-NEXT: plan.wait
// CHECK-NEXT: plan.collective reduce_scatter ["dp"] [{{.*}}@c {{.*}}] -> [{{.*}}@s
// New weights are gathered at once, at the end, where they belong to no unit.
// JOIN: plan.body @weights
// JOIN-NEXT: plan.kernel @negate
// JOIN-NEXT: plan.collective all_gather ["dp"] [{{.*}}@p {{.*}}@q {{.*}}] -> [{{.*}}@a {{.*}}@b {{.*}}]
// JOIN-NEXT: }
// The weights of a unit are gathered at once, one unit ahead of the computation.
// JOIN: plan.body @gathers
// JOIN-NEXT: plan.collective all_gather ["dp"] [{{.*}}@p {{.*}}@q {{.*}}] -> [{{.*}}@a {{.*}}@b {{.*}}] {plan.unit = "h.0"}
// JOIN-NEXT: plan.kernel @negate {{.*}}@a {{.*}} -> {{.*}}@x
// JOIN-NEXT: plan.kernel @negate {{.*}}@b {{.*}} -> {{.*}}@x
// JOIN-NEXT: plan.collective all_gather ["dp"] [{{.*}}@s {{.*}}] -> [{{.*}}@c {{.*}}] {plan.unit = "h.1"}
// JOIN-NEXT: plan.kernel @negate {{.*}}@c {{.*}} -> {{.*}}@x
// JOIN-NEXT: plan.collective all_gather ["dp"] [{{.*}}@t {{.*}}] -> [{{.*}}@d {{.*}}] {plan.unit = "h.2"}
// JOIN-NEXT: plan.kernel @negate {{.*}}@d {{.*}} -> {{.*}}@x
// OVERLAP: plan.body @gathers
// OVERLAP-NEXT: plan.record "collective_0"
// OVERLAP-NEXT: plan.wait "collective_0" {stream = "comm"}
// OVERLAP-NEXT: plan.collective {{.*}}"h.0", stream = "comm"
// OVERLAP-NEXT: plan.record "collective_0_done" {stream = "comm"}
// OVERLAP-NEXT: plan.record "collective_1"
// OVERLAP-NEXT: plan.wait "collective_1" {stream = "comm"}
// OVERLAP-NEXT: plan.collective {{.*}}"h.1", stream = "comm"
// OVERLAP-NEXT: plan.record "collective_1_done" {stream = "comm"}
// OVERLAP-NEXT: plan.wait "collective_0_done"
// OVERLAP-NEXT: plan.kernel @negate {{.*}}@a
// OVERLAP-NEXT: plan.kernel @negate {{.*}}@b
// The third comes when the second is needed: what the first took is free by then.
// OVERLAP-NEXT: plan.record "collective_2"
// OVERLAP-NEXT: plan.wait "collective_2" {stream = "comm"}
// OVERLAP-NEXT: plan.collective {{.*}}"h.2", stream = "comm"
// OVERLAP-NEXT: plan.record "collective_2_done" {stream = "comm"}
// OVERLAP-NEXT: plan.wait "collective_1_done"
// OVERLAP-NEXT: plan.kernel @negate {{.*}}@c
// OVERLAP-NEXT: plan.wait "collective_2_done"
// OVERLAP-NEXT: plan.kernel @negate {{.*}}@d
// OVERLAP-NEXT: }
plan.program @p stage 0 ranks 2 mesh @m {
  plan.buffer @x role input space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @a role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @b role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @c role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @s role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @t role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @p role state space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @q role state space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @d role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.body @backward engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
  }
  plan.body @reads engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] {combine = #plan<combine max>}
  }
  plan.body @scatters engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@s + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @add [#plan.view<@p + 0 : f32 [4] strides [1]>, #plan.view<@s + 0 : f32 [4] strides [1]>] -> [#plan.view<@p + 0 : f32 [4] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@t + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @add [#plan.view<@q + 0 : f32 [4] strides [1]>, #plan.view<@t + 0 : f32 [4] strides [1]>] -> [#plan.view<@q + 0 : f32 [4] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@s + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>}
  }
  plan.body @weights engine cpu {
    plan.collective all_gather ["dp"] [#plan.view<@p + 0 : f32 [4] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>]
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_gather ["dp"] [#plan.view<@q + 0 : f32 [4] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>]
  }
  plan.body @gathers engine cpu {
    plan.collective all_gather ["dp"] [#plan.view<@p + 0 : f32 [4] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] {plan.unit = "h.0"}
    plan.collective all_gather ["dp"] [#plan.view<@q + 0 : f32 [4] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] {plan.unit = "h.0"}
    plan.kernel @negate [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@x + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@x + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_gather ["dp"] [#plan.view<@s + 0 : f32 [4] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] {plan.unit = "h.1"}
    plan.kernel @negate [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@x + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_gather ["dp"] [#plan.view<@t + 0 : f32 [4] strides [1]>] -> [#plan.view<@d + 0 : f32 [8] strides [1]>] {plan.unit = "h.2"}
    plan.kernel @negate [#plan.view<@d + 0 : f32 [8] strides [1]>] -> [#plan.view<@x + 0 : f32 [8] strides [1]>] rows 1 grid 1
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @backward micro_batch 0
      plan.run @reads micro_batch 0
      plan.run @scatters micro_batch 0
      plan.run @gathers micro_batch 0
    }
  }
}
