// RUN: acc-opt %s --plan-bucket-collectives | FileCheck %s --check-prefix=JOIN
// RUN: acc-opt %s --plan-bucket-collectives --plan-overlap-collectives | FileCheck %s --check-prefix=OVERLAP

func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
dist.mesh @m ["dp" = 2]

// The gradients of a unit are scattered at once, when its last is made, however
// few bytes they are: nothing joins them that comes later.
// JOIN: plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
// JOIN-NEXT: plan.kernel @negate(@x[8xf32]) -> @b[8xf32] rows 1
// JOIN-NEXT: plan.collective reduce_scatter sum over dp (@a[8xf32], @b[8xf32]) -> @r[4xf32], @s[4xf32] {plan.unit = "h.2"}
// JOIN-NEXT: plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
// JOIN-NEXT: plan.collective reduce_scatter sum over dp (@c[8xf32]) -> @t[4xf32] {plan.unit = "h.1"}
// JOIN-NEXT: plan.kernel @negate(@x[8xf32]) -> @d[8xf32] rows 1
// JOIN-NEXT: plan.collective reduce_scatter sum over dp (@d[8xf32]) -> @u[4xf32] {plan.unit = "h.0"}

// Nobody reads the pieces here. Before the first gradient of the unit after the
// next is made, a unit's are gone: two are whole at most.
// OVERLAP: plan.collective reduce_scatter sum over dp (@a[8xf32], @b[8xf32]) -> @r[4xf32], @s[4xf32] on comm {plan.unit = "h.2"}
// OVERLAP-NEXT: plan.record "collective_0_done" on comm
// OVERLAP-NEXT: plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
// OVERLAP: plan.collective reduce_scatter sum over dp (@c[8xf32]) -> @t[4xf32] on comm {plan.unit = "h.1"}
// OVERLAP-NOT: plan.record "collective_1_done"
// OVERLAP: plan.wait "collective_0_done"
// OVERLAP-NEXT: plan.kernel @negate(@x[8xf32]) -> @d[8xf32] rows 1
// OVERLAP: plan.collective reduce_scatter sum over dp (@d[8xf32]) -> @u[4xf32] on comm {plan.unit = "h.0"}
// OVERLAP-NEXT: plan.record "collective_2_done" on comm
// OVERLAP-NEXT: plan.wait "collective_2_done"

// What rounds a weight for its gather goes ahead with it.
// OVERLAP: plan.body @gathers
// OVERLAP: plan.collective all_gather {{.*}} on comm {{.*}}plan.unit = "h.0"
// OVERLAP: plan.kernel @negate(@q[8xf32]) -> @b[8xf32] rows 1
// OVERLAP: plan.collective all_gather {{.*}}(@b[{{.*}} on comm {{.*}}plan.unit = "h.1"
// OVERLAP: plan.kernel @negate(@c[8xf32]) -> @x[8xf32] rows 1
plan.program @p stage 0 ranks 2 mesh @m {
  plan.buffer @x : activation device 32 bytes
  plan.buffer @a : activation shared 32 bytes
  plan.buffer @b : activation shared 32 bytes
  plan.buffer @c : activation shared 64 bytes
  plan.buffer @d : activation shared 64 bytes
  plan.buffer @r : activation shared 16 bytes
  plan.buffer @s : activation shared 16 bytes
  plan.buffer @t : activation shared 16 bytes
  plan.buffer @u : activation shared 16 bytes
  plan.buffer @q : state shared 32 bytes
  plan.body @backward engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@a[8xf32]) -> @r[4xf32] {plan.unit = "h.2"}
    plan.kernel @negate(@x[8xf32]) -> @b[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@b[8xf32]) -> @s[4xf32] {plan.unit = "h.2"}
    plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@c[8xf32]) -> @t[4xf32] {plan.unit = "h.1"}
    plan.kernel @negate(@x[8xf32]) -> @d[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@d[8xf32]) -> @u[4xf32] {plan.unit = "h.0"}
  }
  plan.body @gathers engine cpu {
    plan.kernel @negate(@q[8xf32]) -> @a[8xf32] rows 1
    plan.collective all_gather over dp (@a[8xf32]) -> @c[16xf32] {plan.instance = 0, plan.unit = "h.0"}
    plan.kernel @negate(@c[8xf32]) -> @x[8xf32] rows 1
    plan.kernel @negate(@q[8xf32]) -> @b[8xf32] rows 1
    plan.collective all_gather over dp (@b[8xf32]) -> @d[16xf32] {plan.instance = 1, plan.unit = "h.1"}
    plan.kernel @negate(@d[8xf32]) -> @x[8xf32] rows 1
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @backward
      plan.run @gathers
    }
  }
}
