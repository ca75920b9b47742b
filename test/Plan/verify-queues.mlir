// Where the target has one queue for what ranks exchange, its order counts.
// RUN: split-file %s %t
// RUN: grep -v expected- %t/crossed.mlir > %t/crossed-plain.mlir
// RUN: acc-opt %t/crossed-plain.mlir --plan-verify -o /dev/null
// RUN: acc-opt %t/crossed-plain.mlir --plan-verify=target=null:queues=2 -o /dev/null
// RUN: acc-opt %t/crossed.mlir --plan-verify=target=null:queues=1 --verify-diagnostics -o /dev/null
// RUN: grep -v expected- %t/behind-collective.mlir > %t/behind-plain.mlir
// RUN: acc-opt %t/behind-plain.mlir --plan-verify -o /dev/null
// RUN: acc-opt %t/behind-collective.mlir --plan-verify=target=null:queues=1 --verify-diagnostics -o /dev/null
// RUN: acc-opt %t/same-order.mlir --plan-verify=target=null:queues=1 -o /dev/null
// RUN: not acc-opt %t/same-order.mlir --plan-verify=target=null:queues=0 2>&1 | FileCheck %s
// CHECK: error: expected target 'null', or 'null:' with queues=N, staged or both, found 'null:queues=0'

//--- crossed.mlir
// Each stage sends on one stream and receives on another. In one queue each
// send stands before the receive that the other one's waits for.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine null {
    plan.fill @a[16xf32] with 1.0 on out
    // expected-note @below {{stream 'out' of stage 0 waits here for stream 'in' of stage 1}}
    plan.send @a[16xf32] to pp + 1 tag 0 on out
    // expected-note @below {{stream 'in' of stage 0 waits here for stream 'out' of stage 0, which is before it in their queue}}
    plan.recv @b[16xf32] from pp + 1 tag 1 on in
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine null {
    plan.fill @a[16xf32] with 1.0 on out
    // expected-note @below {{stream 'out' of stage 1 waits here for stream 'in' of stage 0}}
    plan.send @a[16xf32] to pp - 1 tag 1 on out
    // expected-error @below {{waits for ever: the stages wait for each other}}
    // expected-note @below {{stream 'in' of stage 1 waits here for stream 'out' of stage 1, which is before it in their queue}}
    plan.recv @b[16xf32] from pp - 1 tag 0 on in
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
  }
}

//--- behind-collective.mlir
// A collective stands in the queue, too: here before the message that the other
// stage must have before it comes to its own.
dist.mesh @m ["dp" = 2, "pp" = 2]
plan.program @s0 stage 0 ranks 4 mesh @m {
  plan.arena device 192 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.buffer @c : activation device at 128, 64 bytes
  plan.body @f engine null {
    plan.fill @a[16xf32] with 1.0 on out
    // expected-note @below {{stream 'in' of stage 0 waits here for stream 'out' of stage 1}}
    plan.recv @b[16xf32] from pp + 1 tag 1 on in
    plan.record "there" on in
    // expected-note @below {{stream 'out' of stage 0 waits here for stream 'in' of stage 0, which is before it in their queue}}
    plan.collective broadcast over dp permutation [0] (@a[16xf32]) -> @c[16xf32] on out
    plan.send @c[16xf32] to pp + 1 tag 0 on out
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 4 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine null {
    // expected-error @below {{waits for ever: the stages wait for each other}}
    // expected-note @below {{stream 'out' of stage 1 waits here for stream 'out' of stage 0}}
    plan.recv @a[16xf32] from pp - 1 tag 0 on out
    plan.send @a[16xf32] to pp - 1 tag 1 on out
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
  }
}

//--- same-order.mlir
// The same in an order that both ends have.
dist.mesh @m ["dp" = 2, "pp" = 2]
plan.program @s0 stage 0 ranks 4 mesh @m {
  plan.arena device 192 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.buffer @c : activation device at 128, 64 bytes
  plan.body @f engine null {
    plan.fill @a[16xf32] with 1.0 on out
    plan.collective broadcast over dp permutation [0] (@a[16xf32]) -> @c[16xf32] on out
    plan.send @c[16xf32] to pp + 1 tag 0 on out
    plan.recv @b[16xf32] from pp + 1 tag 1 on in
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 4 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine null {
    plan.recv @a[16xf32] from pp - 1 tag 0 on out
    plan.send @a[16xf32] to pp - 1 tag 1 on out
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
  }
}
