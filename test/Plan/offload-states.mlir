// RUN: acc-opt %s --split-input-file --plan-mark-offloaded=optimizer=host --plan-offload-states=buffer-count=2 | FileCheck %s
// RUN: acc-opt %s --split-input-file --plan-offload-states -o %t.none && acc-opt %s --split-input-file -o %t.same && diff %t.same %t.none
// RUN: not acc-opt %s --split-input-file --plan-offload-states=buffer-count=-1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROOM
// ROOM: error: expected room for at least one offloaded state, or 0, found -1

// Parameters, too, with room for the states of two commands: @w stays where every one
// needs it.
// RUN: acc-opt %s --plan-mark-offloaded="optimizer=host parameters=host" --plan-offload-states | FileCheck %s --check-prefix=BOTH
// RUN: acc-opt %s --plan-mark-offloaded=parameters=host --plan-offload-states | FileCheck %s --check-prefix=WEIGHTS
// Each in its own place: some on the host, others in a file.
// RUN: acc-opt %s --plan-mark-offloaded="optimizer=nvme parameters=host" --plan-offload-states | FileCheck %s --check-prefix=FILE
// FILE-DAG: plan.buffer @w : state host 32 bytes source @w
// FILE-DAG: plan.buffer @a : state nvme 32 bytes source @a
// FILE: plan.copy @a[8xf32] -> @a.staged[8xf32] on offload
// BOTH-DAG: plan.buffer @w : state host 32 bytes source @w
// BOTH-DAG: plan.buffer @a : state host 32 bytes source @a
// BOTH-DAG: plan.buffer @w.staged : activation device 32 bytes
// BOTH-LABEL: plan.body @update
// BOTH: plan.copy @w[8xf32] -> @w.staged[8xf32] on offload
// BOTH-NEXT: plan.copy @a[8xf32] -> @a.staged[8xf32] on offload
// BOTH-NEXT: plan.record "offload_there_1" on offload
// BOTH-NEXT: plan.copy @b[8xf32] -> @b.staged[8xf32] on offload
// BOTH-NEXT: plan.record "offload_there_2" on offload
// BOTH-NEXT: plan.wait "offload_there_1"
// BOTH-NEXT: plan.kernel @move(@w.staged[8xf32], @a.staged[8xf32]) -> @a.staged[8xf32] rows 1
// BOTH-NEXT: plan.record "offload_done_0"
// BOTH-NEXT: plan.wait "offload_done_0" on offload
// BOTH-NEXT: plan.copy @a.staged[8xf32] -> @a[8xf32] on offload
// BOTH-NEXT: plan.copy @c[8xf32] -> @c.staged[8xf32] on offload
// BOTH-LABEL: plan.body @forward
// BOTH-NEXT: plan.record "offload_begin"
// BOTH-NEXT: plan.wait "offload_begin" on offload
// BOTH-NEXT: plan.copy @w[8xf32] -> @w.staged_{{.*}}[8xf32] on offload
// BOTH-NOT: -> @w[
// WEIGHTS-DAG: plan.buffer @w : state host 32 bytes source @w
// WEIGHTS-DAG: plan.buffer @a : state device 32 bytes source @a
// A message goes when its value is there: what it sends is staged on its own stream.
// WEIGHTS: plan.body @send
// WEIGHTS-NEXT: plan.wait "there" of @forward on edge
// WEIGHTS-NEXT: plan.copy @w[8xf32] -> @[[STAGED:w.staged.*]][8xf32] on edge
// WEIGHTS-NEXT: plan.group {
// WEIGHTS-NEXT: plan.send @x[8xf32]
// WEIGHTS-NEXT: plan.send @[[STAGED]][8xf32] to pp + 1 tag 1 on edge
// WEIGHTS-NEXT: }
// WEIGHTS-NEXT: }

// There is room for two: @c is fetched when @a has been put back, which does not wait for
// the update of @b. What is read alone is not put back (@d), what is written whole not
// fetched (@e). The parameter stays where it is, and so does what the model itself keeps.
// CHECK-DAG: plan.buffer @w : state device 32 bytes source @w
// CHECK-DAG: plan.buffer @r : state device 32 bytes source @r
// CHECK-DAG: plan.buffer @a : state host 32 bytes source @a
// CHECK-DAG: plan.buffer @e : state host 32 bytes source @e
// CHECK-DAG: plan.buffer @a.staged : activation device 32 bytes{{$}}
// CHECK-LABEL: plan.body @load_states
// CHECK-NEXT: plan.read state "a" -> @a[8xf32]
// CHECK-LABEL: plan.body @update
// CHECK-NEXT: plan.record "offload_begin"
// CHECK-NEXT: plan.wait "offload_begin" on offload
// CHECK-NEXT: plan.copy @a[8xf32] -> @a.staged[8xf32] on offload {plan.inserted_by = "plan-offload-states"}
// CHECK-NEXT: plan.record "offload_there_0" on offload
// CHECK-NEXT: plan.copy @b[8xf32] -> @b.staged[8xf32] on offload
// CHECK-NEXT: plan.record "offload_there_1" on offload
// CHECK-NEXT: plan.wait "offload_there_0"
// CHECK-NEXT: plan.kernel @move(@w[8xf32], @a.staged[8xf32]) -> @a.staged[8xf32] rows 1
// CHECK-NEXT: plan.record "offload_done_0"
// CHECK-NEXT: plan.wait "offload_done_0" on offload
// CHECK-NEXT: plan.copy @a.staged[8xf32] -> @a[8xf32] on offload
// CHECK-NEXT: plan.copy @c[8xf32] -> @c.staged[8xf32] on offload
// CHECK-NEXT: plan.record "offload_there_3" on offload
// CHECK-NEXT: plan.wait "offload_there_1"
// CHECK-NEXT: plan.kernel @move(@w[8xf32], @b.staged[8xf32]) -> @b.staged[8xf32] rows 1
// CHECK-NEXT: plan.record "offload_done_1"
// CHECK-NEXT: plan.wait "offload_done_1" on offload
// CHECK-NEXT: plan.copy @b.staged[8xf32] -> @b[8xf32] on offload
// CHECK-NEXT: plan.copy @d[8xf32] -> @d.staged[8xf32] on offload
// CHECK-NEXT: plan.wait "offload_there_3"
// CHECK-NEXT: plan.kernel @move(@w[8xf32], @c.staged[8xf32]) -> @c.staged[8xf32] rows 1
// CHECK-NEXT: plan.record "offload_done_2"
// CHECK-NEXT: plan.wait "offload_done_2" on offload
// CHECK-NEXT: plan.copy @c.staged[8xf32] -> @c[8xf32] on offload
// CHECK-NEXT: plan.record "offload_there_6" on offload
// CHECK-NEXT: plan.wait "offload_there_6"
// CHECK-NEXT: plan.kernel @move(@w[8xf32], @d.staged[8xf32]) -> @e.staged[8xf32] rows 1
// CHECK-NEXT: plan.record "offload_done_3"
// CHECK-NEXT: plan.wait "offload_done_3" on offload
// CHECK-NEXT: plan.copy @e.staged[8xf32] -> @e[8xf32] on offload
// CHECK-NEXT: plan.kernel @move(@w[8xf32], @r[8xf32]) -> @x[8xf32] rows 1

// What replaces all of a state goes straight to the host, when it has been made, and
// whoever writes the source anew waits for it.
// CHECK-NEXT: plan.record "offload_done_4"
// CHECK-NEXT: plan.wait "offload_done_4" on offload
// CHECK-NEXT: plan.copy @x[8xf32] -> @a[8xf32] on offload
// CHECK-NEXT: plan.record "offload_there_[[MOVED:[0-9]+]]" on offload
// CHECK-NEXT: plan.wait "offload_there_[[MOVED]]"
// CHECK-NEXT: plan.kernel @move(@w[8xf32], @r[8xf32]) -> @x[8xf32] rows 1
// CHECK-NEXT: plan.record "offload_end" on offload
// CHECK-NEXT: plan.wait "offload_end"
// CHECK-NEXT: }

// Nothing of the host's is touched here.
// CHECK-LABEL: plan.body @forward
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: }
func.func private @move(%p: tensor<8xf32>, %m: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.add %p, %m : tensor<8xf32>
  return %n : tensor<8xf32>
}
nn.state @w : tensor<8xf32> = dense<0.0>
nn.state buffer @r : tensor<8xf32> = dense<0.0>
nn.state moment @a : tensor<8xf32> = dense<0.0>
nn.state moment @b : tensor<8xf32> = dense<0.0>
nn.state moment @c : tensor<8xf32> = dense<0.0>
nn.state moment @d : tensor<8xf32> = dense<0.0>
nn.state moment @e : tensor<8xf32> = dense<0.0>
plan.program @p stage 0 ranks 1 {
  plan.buffer @w : state device 32 bytes source @w
  plan.buffer @r : state device 32 bytes source @r
  plan.buffer @a : state device 32 bytes source @a
  plan.buffer @b : state device 32 bytes source @b
  plan.buffer @c : state device 32 bytes source @c
  plan.buffer @d : state device 32 bytes source @d
  plan.buffer @e : state device 32 bytes source @e
  plan.buffer @x : activation device 32 bytes
  plan.body @load_states engine cpu {
    plan.read state "a" -> @a[8xf32]
  }
  plan.body @update engine cpu {
    plan.kernel @move(@w[8xf32], @a[8xf32]) -> @a[8xf32] rows 1
    plan.kernel @move(@w[8xf32], @b[8xf32]) -> @b[8xf32] rows 1
    plan.kernel @move(@w[8xf32], @c[8xf32]) -> @c[8xf32] rows 1
    plan.kernel @move(@w[8xf32], @d[8xf32]) -> @e[8xf32] rows 1
    plan.kernel @move(@w[8xf32], @r[8xf32]) -> @x[8xf32] rows 1
    plan.copy @x[8xf32] -> @a[8xf32]
    plan.kernel @move(@w[8xf32], @r[8xf32]) -> @x[8xf32] rows 1
  }
  plan.body @forward engine cpu {
    plan.kernel @move(@w[8xf32], @r[8xf32]) -> @x[8xf32] rows 1
  }
  plan.body @send engine cpu {
    plan.wait "there" of @forward on edge
    plan.group {
      plan.send @x[8xf32] to pp + 1 tag 0 on edge
      plan.send @w[8xf32] to pp + 1 tag 1 on edge
    }
  }
}
