// RUN: acc-opt %s --plan-overlap-collectives | FileCheck %s

func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
dist.mesh @m ["dp" = 2]

// A unit's weights are gathered while the unit before is computed, and not earlier: the
// third gather stands behind the first unit's kernel. The computation waits for each in
// front of what reads it.
// CHECK-LABEL: plan.body @forward
// CHECK: plan.wait "collective_0" on comm
// CHECK-NEXT: plan.collective all_gather over dp (@w0[4xf32]) -> @u0[8xf32] on comm {plan.unit = "h.0"}
// CHECK-NEXT: plan.record "collective_0_done" on comm
// CHECK: plan.collective all_gather over dp (@w1[4xf32]) -> @u1[8xf32] on comm {plan.unit = "h.1"}
// CHECK-NEXT: plan.record "collective_1_done" on comm
// CHECK-NEXT: plan.wait "collective_0_done"
// CHECK-NEXT: plan.kernel @negate(@u0[8xf32])
// CHECK: plan.collective all_gather over dp (@w2[4xf32]) -> @u2[8xf32] on comm {plan.unit = "h.2"}
// CHECK: plan.wait "collective_1_done"
// CHECK-NEXT: plan.kernel @negate(@u1[8xf32])
// CHECK: plan.wait "collective_2_done"
// CHECK-NEXT: plan.kernel @negate(@u2[8xf32])

// Nothing could go on beside this one, so that it stays where it is.
// CHECK-LABEL: plan.body @alone
// CHECK-NEXT: plan.collective all_gather over dp (@w0[4xf32]) -> @u0[8xf32]{{$}}
// CHECK-NEXT: }
plan.program @p stage 0 ranks 2 mesh @m {
  plan.buffer @w0 : state shared 16 bytes
  plan.buffer @w1 : state shared 16 bytes
  plan.buffer @w2 : state shared 16 bytes
  plan.buffer @u0 : activation shared 32 bytes
  plan.buffer @u1 : activation shared 32 bytes
  plan.buffer @u2 : activation shared 32 bytes
  plan.buffer @x : activation device 32 bytes
  plan.body @forward engine cpu {
    plan.collective all_gather over dp (@w0[4xf32]) -> @u0[8xf32] {plan.unit = "h.0"}
    plan.kernel @negate(@u0[8xf32]) -> @x[8xf32] rows 1
    plan.collective all_gather over dp (@w1[4xf32]) -> @u1[8xf32] {plan.unit = "h.1"}
    plan.kernel @negate(@u1[8xf32]) -> @x[8xf32] rows 1
    plan.collective all_gather over dp (@w2[4xf32]) -> @u2[8xf32] {plan.unit = "h.2"}
    plan.kernel @negate(@u2[8xf32]) -> @x[8xf32] rows 1
  }
  plan.body @alone engine cpu {
    plan.collective all_gather over dp (@w0[4xf32]) -> @u0[8xf32]
  }
}
