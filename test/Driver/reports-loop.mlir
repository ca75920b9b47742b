// Of a loop the report looks at the first turn, the last, and one in between. Here
// nothing waits in its turn for what `comm` makes of @u: @u lives on into the next
// one, beside @x, which the last turn is done with. Only turns in between hold both
// while @w is there.
// RUN: acc-opt %s --plan-verify --report=memory | FileCheck %s
// CHECK: at the peak
// CHECK-NEXT: activations 576 B
// CHECK: w 256 B activations
// CHECK-NEXT: u 128 B activations
// CHECK-NEXT: t 128 B activations
// CHECK-NEXT: x 64 B activations
module attributes {accel.phase = "plan"} {
dist.mesh @m ["mb" = 4]
plan.program @step stage 0 ranks 1 mesh @m {
  plan.arena device 640 bytes
  plan.buffer @x : activation device at 0, 64 bytes
  plan.buffer @v : activation device at 64, 64 bytes
  plan.buffer @w : activation device at 128, 256 bytes
  plan.buffer @u : activation device at 384, 128 bytes
  plan.buffer @t : activation device at 512, 128 bytes
  plan.body @first engine cpu {
    plan.fill @x[16xf32] with 1.0
  }
  plan.body @turn engine cpu {
    plan.record "e" on comm
    plan.copy @x[16xf32] -> @v[16xf32]
    plan.fill @w[64xf32] with 1.0
    plan.wait "e"
    plan.fill @u[32xf32] with 1.0 on comm
    plan.copy @u[32xf32] -> @t[32xf32] on comm
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @first }
    plan.loop 4 { plan.segment cpu { plan.run @turn micro_batch turn } }
  }
}
}
