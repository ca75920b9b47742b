// RUN: acc-opt %s --plan-bucket-collectives | FileCheck %s --check-prefix=JOIN
// RUN: acc-opt %s --plan-bucket-collectives --plan-overlap-collectives | FileCheck %s --check-prefix=OVERLAP

func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
dist.mesh @m ["dp" = 2]

// The gradients of a unit are scattered at once, when its last is made, however
// few bytes they are: nothing joins them that comes later.
// JOIN: plan.kernel @negate {{.*}} -> {{.*}}@a
// JOIN-NEXT: plan.kernel @negate {{.*}} -> {{.*}}@b
// JOIN-NEXT: plan.collective reduce_scatter ["dp"] [{{.*}}@a {{.*}}@b {{.*}} {combine = #plan<combine sum>, plan.unit = "h.2"}
// JOIN-NEXT: plan.kernel @negate {{.*}} -> {{.*}}@c
// JOIN-NEXT: plan.collective reduce_scatter {{.*}}@c {{.*}}"h.1"
// JOIN-NEXT: plan.kernel @negate {{.*}} -> {{.*}}@d
// JOIN-NEXT: plan.collective reduce_scatter {{.*}}@d {{.*}}"h.0"

// Nobody reads the pieces here. Before the first gradient of the unit after the
// next is made, a unit's are gone: two are whole at most.
// OVERLAP: plan.collective reduce_scatter {{.*}}"h.2", stream = "comm"
// OVERLAP-NEXT: plan.record "collective_0_done" {stream = "comm"}
// OVERLAP-NEXT: plan.kernel @negate {{.*}} -> {{.*}}@c
// OVERLAP: plan.collective reduce_scatter {{.*}}"h.1", stream = "comm"
// OVERLAP-NOT: plan.record "collective_1_done"
// OVERLAP: plan.wait "collective_0_done"
// OVERLAP-NEXT: plan.kernel @negate {{.*}} -> {{.*}}@d
// OVERLAP: plan.collective reduce_scatter {{.*}}"h.0", stream = "comm"
// OVERLAP-NEXT: plan.record "collective_2_done" {stream = "comm"}
// OVERLAP-NEXT: plan.wait "collective_2_done"

// What rounds a weight for its gather goes ahead with it.
// OVERLAP: plan.body @gathers
// OVERLAP: plan.collective all_gather {{.*}}"h.0", stream = "comm"
// OVERLAP: plan.kernel @negate {{.*}}@q {{.*}} -> {{.*}}@b
// OVERLAP: plan.collective all_gather {{.*}}@b {{.*}}"h.1", stream = "comm"
// OVERLAP: plan.kernel @negate {{.*}}@c {{.*}} -> {{.*}}@x
plan.program @p stage 0 ranks 2 mesh @m {
  plan.buffer @x role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @a role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @b role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @c role activation space shared offset -1 bytes 64 slots 1 stride 64
  plan.buffer @d role activation space shared offset -1 bytes 64 slots 1 stride 64
  plan.buffer @r role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @s role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @t role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @u role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @q role state space shared offset -1 bytes 32 slots 1 stride 32
  plan.body @backward engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@r + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>, plan.unit = "h.2"}
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@s + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>, plan.unit = "h.2"}
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@t + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>, plan.unit = "h.1"}
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@d + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective reduce_scatter ["dp"] [#plan.view<@d + 0 : f32 [8] strides [1]>] -> [#plan.view<@u + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>, plan.unit = "h.0"}
  }
  plan.body @gathers engine cpu {
    plan.kernel @negate [#plan.view<@q + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_gather ["dp"] [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [16] strides [1]>] {plan.instance = 0, plan.unit = "h.0"}
    plan.kernel @negate [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@x + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@q + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_gather ["dp"] [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@d + 0 : f32 [16] strides [1]>] {plan.instance = 1, plan.unit = "h.1"}
    plan.kernel @negate [#plan.view<@d + 0 : f32 [8] strides [1]>] -> [#plan.view<@x + 0 : f32 [8] strides [1]>] rows 1 grid 1
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @backward micro_batch 0
      plan.run @gathers micro_batch 0
    }
  }
}
