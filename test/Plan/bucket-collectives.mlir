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
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @b[8xf32] rows 1
// OVERLAP-NEXT: plan.record "collective_0"
// OVERLAP-NEXT: plan.wait "collective_0" on comm
// CHECK-NEXT: plan.collective all_reduce sum over dp (@a[8xf32], @b[8xf32]) -> @a[8xf32], @b[8xf32]
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
// OVERLAP-NEXT: plan.record "collective_1"
// OVERLAP-NEXT: plan.wait "collective_1" on comm
// CHECK-NEXT: plan.collective all_reduce sum over dp (@c[8xf32]) -> @c[8xf32]
// OVERLAP-NEXT: plan.record "collective_1_done" on comm
// OVERLAP-NEXT: plan.wait "collective_1_done"
// CHECK-NEXT: }
// A bucket is reduced before its sums are read, and other ways of combining do
// not join it. Where there is nothing to go on beside, nothing moves.
// CHECK: plan.body @reads
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.collective all_reduce sum over dp (@a[8xf32]) -> @a[8xf32]
// CHECK-NEXT: plan.kernel @negate(@a[8xf32]) -> @b[8xf32] rows 1
// CHECK-NEXT: plan.collective all_reduce max over dp (@b[8xf32]) -> @b[8xf32]
// CHECK-NEXT: }
// What adds scattered sums to accumulators waits with them, until the next bucket.
// CHECK: plan.body @scatters
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @b[8xf32] rows 1
// OVERLAP-NEXT: plan.record
// OVERLAP-NEXT: plan.wait
// CHECK-NEXT: plan.collective reduce_scatter sum over dp (@a[8xf32], @b[8xf32]) -> @s[4xf32], @t[4xf32]
// OVERLAP-NEXT: plan.record "collective_0_done" on comm
// CHECK-NEXT: plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
// OVERLAP-NEXT: plan.wait "collective_0_done"
// CHECK-NEXT: plan.kernel @add(@p[4xf32], @s[4xf32]) -> @p[4xf32] rows 1
// CHECK-NEXT: plan.kernel @add(@q[4xf32], @t[4xf32]) -> @q[4xf32] rows 1
// OVERLAP-NEXT: plan.record
// OVERLAP-NEXT: plan.wait
// CHECK-NEXT: plan.collective reduce_scatter sum over dp (@c[8xf32]) -> @s[4xf32]
// New weights are gathered at once, at the end, where they belong to no unit.
// JOIN: plan.body @weights
// JOIN-NEXT: plan.kernel @negate
// JOIN-NEXT: plan.collective all_gather over dp (@p[4xf32], @q[4xf32]) -> @a[8xf32], @b[8xf32]
// JOIN-NEXT: }
// The weights of a unit are gathered at once, one unit ahead of the computation.
// JOIN: plan.body @gathers
// JOIN-NEXT: plan.collective all_gather over dp (@p[4xf32], @q[4xf32]) -> @a[8xf32], @b[8xf32] {plan.unit = "h.0"}
// JOIN-NEXT: plan.kernel @negate(@a[8xf32]) -> @x[8xf32] rows 1
// JOIN-NEXT: plan.kernel @negate(@b[8xf32]) -> @x[8xf32] rows 1
// JOIN-NEXT: plan.collective all_gather over dp (@s[4xf32]) -> @c[8xf32] {plan.unit = "h.1"}
// JOIN-NEXT: plan.kernel @negate(@c[8xf32]) -> @x[8xf32] rows 1
// JOIN-NEXT: plan.collective all_gather over dp (@t[4xf32]) -> @d[8xf32] {plan.unit = "h.2"}
// JOIN-NEXT: plan.kernel @negate(@d[8xf32]) -> @x[8xf32] rows 1
// OVERLAP: plan.body @gathers
// OVERLAP-NEXT: plan.record "collective_0"
// OVERLAP-NEXT: plan.wait "collective_0" on comm
// OVERLAP-NEXT: plan.collective all_gather over dp (@p[4xf32], @q[4xf32]) -> @a[8xf32], @b[8xf32] on comm {plan.unit = "h.0"}
// OVERLAP-NEXT: plan.record "collective_0_done" on comm
// OVERLAP-NEXT: plan.record "collective_1"
// OVERLAP-NEXT: plan.wait "collective_1" on comm
// OVERLAP-NEXT: plan.collective all_gather over dp (@s[4xf32]) -> @c[8xf32] on comm {plan.unit = "h.1"}
// OVERLAP-NEXT: plan.record "collective_1_done" on comm
// OVERLAP-NEXT: plan.wait "collective_0_done"
// OVERLAP-NEXT: plan.kernel @negate(@a
// OVERLAP-NEXT: plan.kernel @negate(@b
// The third comes when the second is needed: what the first took is free by then.
// OVERLAP-NEXT: plan.record "collective_2"
// OVERLAP-NEXT: plan.wait "collective_2" on comm
// OVERLAP-NEXT: plan.collective all_gather over dp (@t[4xf32]) -> @d[8xf32] on comm {plan.unit = "h.2"}
// OVERLAP-NEXT: plan.record "collective_2_done" on comm
// OVERLAP-NEXT: plan.wait "collective_1_done"
// OVERLAP-NEXT: plan.kernel @negate(@c
// OVERLAP-NEXT: plan.wait "collective_2_done"
// OVERLAP-NEXT: plan.kernel @negate(@d
// OVERLAP-NEXT: }

// What another stream copies when it has waited for a record is there by then, although what
// makes it could wait for others.
// CHECK-LABEL: plan.body @copied
// CHECK: plan.kernel @double(@s[4xf32]) -> @t[4xf32] rows 1
// CHECK-NEXT: plan.record "made"
// CHECK-NEXT: plan.wait "made" on aside
// CHECK-NEXT: plan.copy @t[4xf32] -> @h[4xf32] on aside
func.func private @double(%p: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.add %p, %p : tensor<4xf32>
  return %n : tensor<4xf32>
}
plan.program @p stage 0 ranks 2 mesh @m {
  plan.buffer @x : input device 32 bytes
  plan.buffer @a : activation shared 32 bytes
  plan.buffer @b : activation shared 32 bytes
  plan.buffer @c : activation shared 32 bytes
  plan.buffer @s : activation shared 16 bytes
  plan.buffer @t : activation shared 16 bytes
  plan.buffer @p : state shared 16 bytes
  plan.buffer @q : state shared 16 bytes
  plan.buffer @d : activation shared 32 bytes
  plan.buffer @h : activation host 16 bytes
  plan.body @backward engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
    plan.collective all_reduce sum over dp (@a[8xf32]) -> @a[8xf32]
    plan.kernel @negate(@x[8xf32]) -> @b[8xf32] rows 1
    plan.collective all_reduce sum over dp (@b[8xf32]) -> @b[8xf32]
    plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
    plan.collective all_reduce sum over dp (@c[8xf32]) -> @c[8xf32]
  }
  plan.body @reads engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
    plan.collective all_reduce sum over dp (@a[8xf32]) -> @a[8xf32]
    plan.kernel @negate(@a[8xf32]) -> @b[8xf32] rows 1
    plan.collective all_reduce max over dp (@b[8xf32]) -> @b[8xf32]
  }
  plan.body @scatters engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@a[8xf32]) -> @s[4xf32]
    plan.kernel @add(@p[4xf32], @s[4xf32]) -> @p[4xf32] rows 1
    plan.kernel @negate(@x[8xf32]) -> @b[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@b[8xf32]) -> @t[4xf32]
    plan.kernel @add(@q[4xf32], @t[4xf32]) -> @q[4xf32] rows 1
    plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@c[8xf32]) -> @s[4xf32]
  }
  plan.body @weights engine cpu {
    plan.collective all_gather over dp (@p[4xf32]) -> @a[8xf32]
    plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
    plan.collective all_gather over dp (@q[4xf32]) -> @b[8xf32]
  }
  plan.body @gathers engine cpu {
    plan.collective all_gather over dp (@p[4xf32]) -> @a[8xf32] {plan.unit = "h.0"}
    plan.collective all_gather over dp (@q[4xf32]) -> @b[8xf32] {plan.unit = "h.0"}
    plan.kernel @negate(@a[8xf32]) -> @x[8xf32] rows 1
    plan.kernel @negate(@b[8xf32]) -> @x[8xf32] rows 1
    plan.collective all_gather over dp (@s[4xf32]) -> @c[8xf32] {plan.unit = "h.1"}
    plan.kernel @negate(@c[8xf32]) -> @x[8xf32] rows 1
    plan.collective all_gather over dp (@t[4xf32]) -> @d[8xf32] {plan.unit = "h.2"}
    plan.kernel @negate(@d[8xf32]) -> @x[8xf32] rows 1
  }
  plan.body @copied engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
    plan.collective reduce_scatter sum over dp (@a[8xf32]) -> @s[4xf32]
    plan.kernel @double(@s[4xf32]) -> @t[4xf32] rows 1
    plan.record "made"
    plan.wait "made" on aside
    plan.copy @t[4xf32] -> @h[4xf32] on aside
    plan.kernel @negate(@x[8xf32]) -> @c[8xf32] rows 1
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @backward
      plan.run @reads
      plan.run @scatters
      plan.run @gathers
    }
  }
}
