// RUN: acc-opt %s --plan-overlap-collectives | FileCheck %s

// A unit's weights are gathered in two steps, over groups and within them: both while the unit before is
// computed, and not earlier. What the first step brings nobody reads but the second.
// CHECK-LABEL: plan.body @forward
// CHECK: -> @u0[16xf32] on comm
// CHECK: (@w1[4xf32]) -> @k1[8xf32] on comm
// CHECK: (@k1[8xf32]) -> @u1[16xf32] on comm
// CHECK-NOT: @w2
// CHECK: plan.kernel @negate(@u0[16xf32])
// CHECK: (@w2[4xf32]) -> @k2[8xf32] on comm
// CHECK: (@k2[8xf32]) -> @u2[16xf32] on comm
// CHECK: plan.kernel @negate(@u1[16xf32])
// CHECK: plan.kernel @negate(@u2[16xf32])
func.func private @negate(%a: tensor<16xf32>) -> tensor<16xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<16xf32>
  return %b : tensor<16xf32>
}
dist.mesh @m ["dp_groups" = 2, "dp_shard" = 2]
plan.program @p stage 0 ranks 4 mesh @m {
  plan.buffer @w0 : state shared 16 bytes
  plan.buffer @w1 : state shared 16 bytes
  plan.buffer @w2 : state shared 16 bytes
  plan.buffer @k0 : activation shared 32 bytes
  plan.buffer @k1 : activation shared 32 bytes
  plan.buffer @k2 : activation shared 32 bytes
  plan.buffer @u0 : activation shared 64 bytes
  plan.buffer @u1 : activation shared 64 bytes
  plan.buffer @u2 : activation shared 64 bytes
  plan.buffer @x : activation device 64 bytes
  plan.body @forward engine cpu {
    plan.collective all_gather over dp_groups (@w0[4xf32]) -> @k0[8xf32] {plan.unit = "h.0"}
    plan.collective all_gather over dp_shard (@k0[8xf32]) -> @u0[16xf32] {plan.unit = "h.0"}
    plan.kernel @negate(@u0[16xf32]) -> @x[16xf32] rows 1
    plan.collective all_gather over dp_groups (@w1[4xf32]) -> @k1[8xf32] {plan.unit = "h.1"}
    plan.collective all_gather over dp_shard (@k1[8xf32]) -> @u1[16xf32] {plan.unit = "h.1"}
    plan.kernel @negate(@u1[16xf32]) -> @x[16xf32] rows 1
    plan.collective all_gather over dp_groups (@w2[4xf32]) -> @k2[8xf32] {plan.unit = "h.2"}
    plan.collective all_gather over dp_shard (@k2[8xf32]) -> @u2[16xf32] {plan.unit = "h.2"}
    plan.kernel @negate(@u2[16xf32]) -> @x[16xf32] rows 1
  }
}
