// RUN: acc-opt %s --plan-offload-activations=space=host | FileCheck %s
// RUN: acc-opt %s --plan-offload-activations -o %t.none && acc-opt %s -o %t.same && diff %t.same %t.none

// @a is away from the moment at which a copy, which is allowed twice its time, has ended: the
// computation makes sure of that in front of the command that comes then. It is back in front of
// its first reader, and is fetched no earlier than it has to be.
// CHECK-DAG: plan.buffer @a : activation device 4194304 bytes{{$}}
// CHECK-DAG: plan.buffer @a.host : activation host 4194304 bytes{{$}}
// CHECK-DAG: plan.buffer @a.fetched : activation device 4194304 bytes{{$}}
// The backward's parts fetch it each for itself.
// CHECK-DAG: plan.buffer @a.fetched_0 : activation device 4194304 bytes{{$}}
// What a message has brought is copied behind its first reader, if there are fewer copies of it
// on the device then: two, of which the next is on its way, and not three.
// CHECK-DAG: plan.buffer @r.host : activation host 4194304 bytes{{$}}
// What the backward needs at once stays (@c), and so does what is small (@s), what is made of
// weights alone (@w.rounded), what another forward reads (@b), and what the update does (@d).
// CHECK-NOT: plan.buffer @{{[bcds]|w.rounded}}.host

// CHECK-LABEL: plan.body @forward engine cpu
// CHECK-NEXT: plan.record "activations_begin"
// CHECK-NEXT: plan.wait "activations_begin" on activations
// CHECK-NEXT: plan.wait "received" of @receive
// CHECK-NEXT: plan.kernel @k(@r[1048576xf32], @w[1048576xf32]) -> @a[1048576xf32] rows 1
// CHECK-NEXT: plan.record "activations_done_0"
// CHECK-NEXT: plan.wait "activations_done_0" on activations
// CHECK-NEXT: plan.copy @r[1048576xf32] -> @r.host[1048576xf32] on activations {plan.inserted_by = "plan-offload-activations"}
// CHECK-NEXT: plan.copy @a[1048576xf32] -> @a.host[1048576xf32] on activations {plan.inserted_by = "plan-offload-activations"}
// CHECK-NEXT: plan.record "activations_there_1" on activations
// CHECK-NEXT: plan.kernel @k(@w[1048576xf32], @w[1048576xf32]) -> @w.rounded[1048576xf32] rows 1
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.wait "activations_there_1"
// CHECK-NEXT: plan.kernel @first
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.record "activations_end" on activations
// CHECK-NEXT: plan.wait "activations_end"
// CHECK-NEXT: }
// CHECK-LABEL: plan.body @backward_input engine cpu
// CHECK-NEXT: plan.record "activations_begin"
// CHECK-NEXT: plan.wait "activations_begin" on activations
// CHECK-NEXT: plan.kernel @k(@c[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.record "activations_done_0"
// CHECK-NEXT: plan.wait "activations_done_0" on activations
// CHECK-NEXT: plan.copy @a.host[1048576xf32] -> @a.fetched[1048576xf32] on activations {plan.inserted_by = "plan-offload-activations"}
// CHECK-NEXT: plan.record "activations_there_0" on activations
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.record "activations_done_1"
// CHECK-NEXT: plan.wait "activations_done_1" on activations
// CHECK-NEXT: plan.copy @r.host[1048576xf32] -> @r.fetched[1048576xf32] on activations {plan.inserted_by = "plan-offload-activations"}
// CHECK-NEXT: plan.record "activations_there_1" on activations
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: plan.wait "activations_there_0"
// CHECK-NEXT: plan.kernel @k(@a.fetched[1048576xf32], @e[1048576xf32]) -> @f[1048576xf32] rows 1
// CHECK-NEXT: plan.wait "activations_there_1"
// CHECK-NEXT: plan.kernel @k(@r.fetched[1048576xf32], @f[1048576xf32]) -> @f[1048576xf32] rows 1
// CHECK-NEXT: plan.kernel @k(@b[1048576xf32], @d[1048576xf32]) -> @e[1048576xf32] rows 1
// CHECK-NEXT: plan.kernel @k(@w.rounded[1048576xf32], @a.fetched[1048576xf32]) -> @e[1048576xf32] rows 1
// CHECK-NEXT: plan.kernel @first(@a.fetched[1048576xf32]) -> @t[8xf32] rows 1
// CHECK-LABEL: plan.body @backward_weight engine cpu
// CHECK: plan.copy @a.host[1048576xf32] -> @a.fetched_0[1048576xf32] on activations
// CHECK: plan.wait "activations_there_0"
// CHECK-NEXT: plan.kernel @k(@a.fetched_0[1048576xf32], @e[1048576xf32])
// CHECK-LABEL: plan.body @update engine cpu
// CHECK-NEXT: plan.kernel
// CHECK-NEXT: }

// A message has brought as many when the backward comes to it.
// RUN: sed -e '/@receive micro_batch 2/d' -e 's/@receive micro_batch 1/@receive micro_batch 1\n plan.run @receive micro_batch 2/' %s | acc-opt --plan-offload-activations=space=host | FileCheck %s --check-prefix=EARLY
// EARLY: plan.buffer @a.host
// EARLY-NOT: plan.buffer @r.host

// Where a copy would take longer than what is computed beside it, nothing is copied.
// CHECK-LABEL: plan.program @short
// CHECK-NOT: activations
// CHECK: plan.body @backward
func.func private @k(%p: tensor<1048576xf32>, %m: tensor<1048576xf32>) -> tensor<1048576xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.add %p, %m : tensor<1048576xf32>
  return %n : tensor<1048576xf32>
}
func.func private @first(%p: tensor<1048576xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.slice %p starts [0] sizes [8] steps [1] : (tensor<1048576xf32>) -> tensor<8xf32>
  return %n : tensor<8xf32>
}
nn.state @w : tensor<1048576xf32> = dense<0.0>
plan.program @p stage 0 ranks 1 {
  plan.buffer @w : state device 4194304 bytes source @w
  plan.buffer @r : activation device 4194304 bytes
  plan.buffer @a : activation device 4194304 bytes
  plan.buffer @w.rounded : activation device 4194304 bytes
  plan.buffer @b : activation device 4194304 bytes
  plan.buffer @c : activation device 4194304 bytes
  plan.buffer @d : activation device 4194304 bytes
  plan.buffer @s : activation device 32 bytes
  plan.buffer @e : activation device 4194304 bytes
  plan.buffer @f : activation device 4194304 bytes
  plan.buffer @t : activation device 32 bytes
  plan.body @receive engine cpu {
    plan.recv @r[1048576xf32] from pp - 1 tag 0 on edge
    plan.record "received" on edge
  }
  plan.body @forward engine cpu {
    plan.wait "received" of @receive
    plan.kernel @k(@r[1048576xf32], @w[1048576xf32]) -> @a[1048576xf32] rows 1
    plan.kernel @k(@w[1048576xf32], @w[1048576xf32]) -> @w.rounded[1048576xf32] rows 1
    plan.kernel @k(@a[1048576xf32], @w.rounded[1048576xf32]) -> @b[1048576xf32] rows 1
    plan.kernel @k(@b[1048576xf32], @w[1048576xf32]) -> @d[1048576xf32] rows 1
    plan.kernel @first(@a[1048576xf32]) -> @s[8xf32] rows 1
    plan.kernel @k(@b[1048576xf32], @b[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @k(@d[1048576xf32], @e[1048576xf32]) -> @c[1048576xf32] rows 1
  }
  plan.body @forward_1 engine cpu {
    plan.kernel @k(@b[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
  }
  plan.body @backward_input engine cpu {
    plan.kernel @k(@c[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @first(@e[1048576xf32]) -> @t[8xf32] rows 1
    plan.kernel @k(@e[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @k(@e[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @k(@a[1048576xf32], @e[1048576xf32]) -> @f[1048576xf32] rows 1
    plan.kernel @k(@r[1048576xf32], @f[1048576xf32]) -> @f[1048576xf32] rows 1
    plan.kernel @k(@b[1048576xf32], @d[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @k(@w.rounded[1048576xf32], @a[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @first(@a[1048576xf32]) -> @t[8xf32] rows 1
  }
  plan.body @backward_weight engine cpu {
    plan.kernel @k(@s[8xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @k(@e[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
    plan.kernel @k(@a[1048576xf32], @e[1048576xf32]) -> @f[1048576xf32] rows 1
  }
  plan.body @update engine cpu {
    plan.kernel @k(@d[1048576xf32], @w[1048576xf32]) -> @e[1048576xf32] rows 1
  }
  plan.entry @step {
    plan.segment cpu capturable {
      plan.run @receive
      plan.run @forward
      plan.run @receive micro_batch 1
      plan.run @forward micro_batch 1
      plan.run @receive micro_batch 2
      plan.run @backward_input
      plan.run @backward_weight
      plan.run @forward micro_batch 2
      plan.run @backward_input micro_batch 1
      plan.run @backward_weight micro_batch 1
      plan.run @backward_input micro_batch 2
      plan.run @backward_weight micro_batch 2
    }
  }
}
plan.program @short stage 0 ranks 1 {
  plan.buffer @w : state device 4194304 bytes source @w
  plan.buffer @x : input device 4194304 bytes
  plan.buffer @a : activation device 4194304 bytes
  plan.buffer @c : activation device 4194304 bytes
  plan.body @forward engine cpu {
    plan.kernel @k(@x[1048576xf32], @w[1048576xf32]) -> @a[1048576xf32] rows 1
    plan.kernel @k(@a[1048576xf32], @w[1048576xf32]) -> @c[1048576xf32] rows 1
  }
  plan.body @backward engine cpu {
    plan.kernel @k(@c[1048576xf32], @w[1048576xf32]) -> @c[1048576xf32] rows 1
    plan.kernel @k(@a[1048576xf32], @c[1048576xf32]) -> @c[1048576xf32] rows 1
  }
}
