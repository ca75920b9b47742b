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
  plan.arena device bytes 640 alignment 64 reserve 0
  plan.buffer @x role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @v role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.buffer @w role activation space device offset 128 bytes 256 slots 1 stride 256
  plan.buffer @u role activation space device offset 384 bytes 128 slots 1 stride 128
  plan.buffer @t role activation space device offset 512 bytes 128 slots 1 stride 128
  plan.body @first engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@x + 0 : f32[16] strides[1]>
  }
  plan.body @turn engine cpu {
    plan.record "e" {stream = "comm"}
    plan.copy #plan.view<@x + 0 : f32[16] strides[1]> -> #plan.view<@v + 0 : f32[16] strides[1]>
    plan.fill 1.0 : f32 -> #plan.view<@w + 0 : f32[64] strides[1]>
    plan.wait "e"
    plan.fill 1.0 : f32 -> #plan.view<@u + 0 : f32[32] strides[1]> {stream = "comm"}
    plan.copy #plan.view<@u + 0 : f32[32] strides[1]> -> #plan.view<@t + 0 : f32[32] strides[1]> {stream = "comm"}
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @first micro_batch 0 }
    plan.loop 4 { plan.segment cpu { plan.run @turn micro_batch turn + 0 } }
  }
}
}
