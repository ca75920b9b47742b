// RUN: acc-opt %s -split-input-file --plan-allocate-buffers -verify-diagnostics | FileCheck %s

// @a is dead when @c is written; @b is read between, so it has bytes of its own.
// States never share. The last reader releases.
// CHECK-LABEL: plan.program @sequence
// CHECK-NEXT: plan.arena device bytes 456 alignment 64 reserve 0
// CHECK-NEXT: plan.buffer @w role state space device offset 0 bytes 100
// CHECK-NEXT: plan.buffer @v role state space device offset 128 bytes 8
// CHECK-NEXT: plan.buffer @a role activation space device offset 192 bytes 256
// CHECK-NEXT: plan.buffer @b role activation space device offset 448 bytes 8
// CHECK-NEXT: plan.buffer @c role activation space device offset 192 bytes 8
// CHECK: plan.copy <@a {{.*}} -> <@b {{.*}} {plan.releases = [#plan.view<@a + 0 : i8[256] strides[1]>]}
plan.program @sequence stage 0 ranks 1 {
  plan.buffer @w role state space device offset -1 bytes 100 slots 1 stride 100
  plan.buffer @v role state space device offset -1 bytes 8 slots 1 stride 8
  plan.buffer @a role activation space device offset -1 bytes 256 slots 1 stride 256
  plan.buffer @b role activation space device offset -1 bytes 8 slots 1 stride 8
  plan.buffer @c role activation space device offset -1 bytes 8 slots 1 stride 8
  plan.body @f engine cpu {
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [64] strides [1]>
    plan.copy <@a + 0 : f32 [2] strides [1]> -> <@b + 0 : f32 [2] strides [1]>
    plan.copy <@b + 0 : f32 [2] strides [1]> -> <@c + 0 : f32 [2] strides [1]>
    plan.copy <@c + 0 : f32 [2] strides [1]> -> <@v + 0 : f32 [2] strides [1]>
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----

// Without the wait, nothing says that @a is dead when the other stream writes @c.
// CHECK-LABEL: plan.program @unordered
// CHECK-NEXT: plan.arena device bytes 192
// CHECK: plan.buffer @a {{.*}}offset 0
// CHECK: plan.buffer @b {{.*}}offset 64
// CHECK: plan.buffer @c {{.*}}offset 128
plan.program @unordered stage 0 ranks 1 {
  plan.buffer @a role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @c role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [16] strides [1]>
    plan.copy <@a + 0 : f32 [16] strides [1]> -> <@b + 0 : f32 [16] strides [1]>
    plan.record "done"
    plan.fill 0.0 : f32 -> <@c + 0 : f32 [16] strides [1]> {stream = "comm"}
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----

// With it, @c takes the bytes of @a. A segment's end orders no streams: @d may be
// written while @c is.
// CHECK-LABEL: plan.program @ordered
// CHECK-NEXT: plan.arena device bytes 128
// CHECK: plan.buffer @a {{.*}}offset 0
// CHECK: plan.buffer @b {{.*}}offset 64
// CHECK: plan.buffer @c {{.*}}offset 0
// CHECK: plan.buffer @d {{.*}}offset 64
plan.program @ordered stage 0 ranks 1 {
  plan.buffer @a role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @c role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @d role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.wait "done" {stream = "comm"}
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [16] strides [1]>
    plan.copy <@a + 0 : f32 [16] strides [1]> -> <@b + 0 : f32 [16] strides [1]>
    plan.record "done"
    plan.fill 0.0 : f32 -> <@c + 0 : f32 [16] strides [1]> {stream = "comm"}
  }
  plan.body @g engine cpu {
    plan.fill 0.0 : f32 -> <@d + 0 : f32 [16] strides [1]>
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
    plan.segment cpu {
      plan.run @g micro_batch 0
    }
  }
}

// -----

// What one entry leaves to another keeps its bytes, slots take theirs, and an
// alias lies where its owner does.
// CHECK-LABEL: plan.program @kept
// CHECK-NEXT: plan.arena device bytes 240
// CHECK: plan.buffer @k {{.*}}offset 0
// CHECK: plan.buffer @s {{.*}}offset 64
// CHECK: plan.buffer @t {{.*}}offset 64
plan.program @kept stage 0 ranks 1 {
  plan.buffer @k role activation space device offset -1 bytes 16 slots 1 stride 16
  plan.buffer @s role activation space device offset -1 bytes 48 slots 3 stride 64
  plan.buffer @t role activation space device offset -1 bytes 16 slots 1 stride 16 {alias_of = @s}
  plan.body @f engine cpu {
    plan.fill 0.0 : f32 -> <@k + 0 : f32 [4] strides [1]>
  }
  plan.body @g engine cpu {
    plan.copy <@k + 0 : f32 [4] strides [1]> -> <@s + 0 : f32 [4] strides [1]>
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @g micro_batch 0
      plan.run @g micro_batch 1
    }
  }
  plan.entry @load {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----

plan.program @stuck stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{waits for an event that no run before it records}}
    plan.wait "done"
    plan.record "done"
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----

// In a loop @a and @b share bytes, since each turn writes @a anew; @c is made before
// the loop and read in every turn, and @d is what the last turn leaves to what follows:
// neither shares with what the turns write.
// CHECK-LABEL: plan.program @turns
// CHECK-NEXT: plan.arena device bytes 192
// CHECK: plan.buffer @a {{.*}}offset 0
// CHECK: plan.buffer @b {{.*}}offset 0
// CHECK: plan.buffer @c {{.*}}offset 64
// CHECK: plan.buffer @d {{.*}}offset 128
// What the last turn alone releases, the text of all turns does not.
// CHECK: plan.copy <@c {{.*}} -> <@a {{[^{]*$}}
plan.program @turns stage 0 ranks 1 {
  plan.buffer @a role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @c role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @d role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.buffer @e role activation space device offset -1 bytes 64 slots 1 stride 64
  plan.body @first engine cpu {
    plan.fill 0.0 : f32 -> <@c + 0 : f32 [16] strides [1]>
  }
  plan.body @turn engine cpu {
    plan.copy <@c + 0 : f32 [16] strides [1]> -> <@a + 0 : f32 [16] strides [1]>
    plan.copy <@a + 0 : f32 [16] strides [1]> -> <@d + 0 : f32 [16] strides [1]>
    plan.fill 0.0 : f32 -> <@b + 0 : f32 [16] strides [1]>
  }
  plan.body @last engine cpu {
    plan.copy <@d + 0 : f32 [16] strides [1]> -> <@e + 0 : f32 [16] strides [1]>
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @first micro_batch 0 }
    plan.loop 8 { plan.segment cpu { plan.run @turn micro_batch turn + 0 } }
    plan.segment cpu { plan.run @last micro_batch 0 }
  }
}
