// RUN: acc-opt %s -split-input-file --plan-allocate-buffers -verify-diagnostics | FileCheck %s

// @a is dead when @c is written; @b is read between, so it has bytes of its own.
// States never share. The last reader releases.
// CHECK-LABEL: plan.program @sequence
// CHECK-NEXT: plan.arena device 456 bytes
// CHECK-NEXT: plan.buffer @w : state device at 0, 100 bytes
// CHECK-NEXT: plan.buffer @v : state device at 128, 8 bytes
// CHECK-NEXT: plan.buffer @a : activation device at 192, 256 bytes
// CHECK-NEXT: plan.buffer @b : activation device at 448, 8 bytes
// CHECK-NEXT: plan.buffer @c : activation device at 192, 8 bytes
// CHECK: plan.copy @a[2xf32] -> @b[2xf32] releases @a[256xi8]{{$}}
plan.program @sequence stage 0 ranks 1 {
  plan.buffer @w : state device 100 bytes
  plan.buffer @v : state device 8 bytes
  plan.buffer @a : activation device 256 bytes
  plan.buffer @b : activation device 8 bytes
  plan.buffer @c : activation device 8 bytes
  plan.body @f engine cpu {
    plan.fill @a[64xf32] with 0.0
    plan.copy @a[2xf32] -> @b[2xf32]
    plan.copy @b[2xf32] -> @c[2xf32]
    plan.copy @c[2xf32] -> @v[2xf32]
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----

// Without the wait, nothing says that @a is dead when the other stream writes @c.
// CHECK-LABEL: plan.program @unordered
// CHECK-NEXT: plan.arena device 192 bytes
// CHECK: plan.buffer @a {{.*}} at 0,
// CHECK: plan.buffer @b {{.*}} at 64,
// CHECK: plan.buffer @c {{.*}} at 128,
plan.program @unordered stage 0 ranks 1 {
  plan.buffer @a : activation device 64 bytes
  plan.buffer @b : activation device 64 bytes
  plan.buffer @c : activation device 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 0.0
    plan.copy @a[16xf32] -> @b[16xf32]
    plan.record "done"
    plan.fill @c[16xf32] with 0.0 on comm
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----

// With it, @c takes the bytes of @a. A segment's end orders no streams: @d may be
// written while @c is.
// CHECK-LABEL: plan.program @ordered
// CHECK-NEXT: plan.arena device 128 bytes
// CHECK: plan.buffer @a {{.*}} at 0,
// CHECK: plan.buffer @b {{.*}} at 64,
// CHECK: plan.buffer @c {{.*}} at 0,
// CHECK: plan.buffer @d {{.*}} at 64,
plan.program @ordered stage 0 ranks 1 {
  plan.buffer @a : activation device 64 bytes
  plan.buffer @b : activation device 64 bytes
  plan.buffer @c : activation device 64 bytes
  plan.buffer @d : activation device 64 bytes
  plan.body @f engine cpu {
    plan.wait "done" on comm
    plan.fill @a[16xf32] with 0.0
    plan.copy @a[16xf32] -> @b[16xf32]
    plan.record "done"
    plan.fill @c[16xf32] with 0.0 on comm
  }
  plan.body @g engine cpu {
    plan.fill @d[16xf32] with 0.0
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
    plan.segment cpu {
      plan.run @g
    }
  }
}

// -----

// What one entry leaves to another keeps its bytes, slots take theirs, and an
// alias lies where its owner does.
// CHECK-LABEL: plan.program @kept
// CHECK-NEXT: plan.arena device 240 bytes
// CHECK: plan.buffer @k {{.*}} at 0,
// CHECK: plan.buffer @s {{.*}} at 64,
// CHECK: plan.buffer @t {{.*}} at 64,
plan.program @kept stage 0 ranks 1 {
  plan.buffer @k : activation device 16 bytes
  plan.buffer @s : activation device 48 bytes slots 3 stride 64
  plan.buffer @t : activation device 16 bytes alias @s
  plan.body @f engine cpu {
    plan.fill @k[4xf32] with 0.0
  }
  plan.body @g engine cpu {
    plan.copy @k[4xf32] -> @s[4xf32]
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @g
      plan.run @g micro_batch 1
    }
  }
  plan.entry @load {
    plan.segment cpu {
      plan.run @f
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
      plan.run @f
    }
  }
}

// -----

// In a loop @a and @b share bytes, since each turn writes @a anew; @c is made before
// the loop and read in every turn, and @d is what the last turn leaves to what follows:
// neither shares with what the turns write.
// CHECK-LABEL: plan.program @turns
// CHECK-NEXT: plan.arena device 192 bytes
// CHECK: plan.buffer @a {{.*}} at 0,
// CHECK: plan.buffer @b {{.*}} at 0,
// CHECK: plan.buffer @c {{.*}} at 64,
// CHECK: plan.buffer @d {{.*}} at 128,
// What the last turn alone releases, the text of all turns does not.
// CHECK: plan.copy @c[16xf32] -> @a[16xf32]{{$}}
plan.program @turns stage 0 ranks 1 {
  plan.buffer @a : activation device 64 bytes
  plan.buffer @b : activation device 64 bytes
  plan.buffer @c : activation device 64 bytes
  plan.buffer @d : activation device 64 bytes
  plan.buffer @e : activation device 64 bytes
  plan.body @first engine cpu {
    plan.fill @c[16xf32] with 0.0
  }
  plan.body @turn engine cpu {
    plan.copy @c[16xf32] -> @a[16xf32]
    plan.copy @a[16xf32] -> @d[16xf32]
    plan.fill @b[16xf32] with 0.0
  }
  plan.body @last engine cpu {
    plan.copy @d[16xf32] -> @e[16xf32]
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @first }
    plan.loop 8 { plan.segment cpu { plan.run @turn micro_batch turn } }
    plan.segment cpu { plan.run @last }
  }
}
