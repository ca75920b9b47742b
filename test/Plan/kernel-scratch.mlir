// RUN: acc-opt %s --plan-choose-forms="target=null" | FileCheck %s --check-prefix=NULL
// RUN: acc-opt %s --plan-choose-forms="target=cpu:x86-64-v3 threads=1" | FileCheck %s --check-prefix=ONE
// RUN: acc-opt %s --plan-choose-forms="target=cpu:x86-64-v3 threads=2" --plan-allocate-buffers="target=cpu" -o %t.mlir
// RUN: FileCheck %s --check-prefix=TWO < %t.mlir
// RUN: acc-opt %t.mlir --plan-verify="target=cpu" -o %t.same

// What a kernel's threads keep beside their stacks is the target's to say. It is no more there
// when the kernel has run, and what lives meanwhile is elsewhere.
// NULL-NOT: scratch
// NULL-NOT: form
// ONE: plan.buffer @scratch : scratch device 160000 bytes
// ONE: plan.kernel @long(@x[4x40000xf32]) -> @y[4x40000xf32] rows 4 scratch @scratch[160000xi8] form {thread_scratch = 160000}{{$}}
// ONE: plan.kernel @short(@a[4x100xf32]) -> @b[4x100xf32] rows 4{{$}}
// ONE: plan.kernel @long(@y[4x40000xf32]) -> @z[4x40000xf32] rows 4 scratch @scratch_0[160000xi8] form {thread_scratch = 160000}{{$}}
// TWO: plan.arena device 1603200 bytes
// TWO-DAG: plan.buffer @x : activation device at 0, 640000 bytes
// TWO-DAG: plan.buffer @scratch : scratch device at [[AT:[0-9]+]], 320000 bytes
// TWO-DAG: plan.buffer @scratch_0 : scratch device at [[AT]], 320000 bytes
// TWO: plan.kernel @long({{.*}}) -> {{.*}} rows 4 scratch @scratch[320000xi8] form {thread_scratch = 160000} releases @x[640000xi8], @scratch[320000xi8]{{$}}

// Where it lies over what is read later, the plan is refused.
// RUN: sed '/plan.buffer @scratch :/s/at [0-9]*/at 1283200/;s/, @scratch.320000xi8.$//' %t.mlir > %t.m.mlir && not cmp -s %t.mlir %t.m.mlir
// RUN: not acc-opt %t.m.mlir --plan-verify="target=cpu" 2>&1 | FileCheck %s --check-prefix=OVER
// OVER: error: 'plan.kernel' op reads byte 0 of @a, which @scratch has overwritten

func.func private @long(%x: tensor<4x40000xf32>) -> tensor<4x40000xf32> attributes {plan.kernel, plan.rows = 4 : i64} {
  %y = nn.softmax %x dim 1 : tensor<4x40000xf32>
  return %y : tensor<4x40000xf32>
}
func.func private @short(%x: tensor<4x100xf32>) -> tensor<4x100xf32> attributes {plan.kernel, plan.rows = 4 : i64} {
  %y = nn.softmax %x dim 1 : tensor<4x100xf32>
  return %y : tensor<4x100xf32>
}
plan.program @p stage 0 ranks 1 {
  plan.buffer @x : activation device 640000 bytes
  plan.buffer @y : activation device 640000 bytes
  plan.buffer @z : activation device 640000 bytes
  plan.buffer @a : activation device 1600 bytes
  plan.buffer @b : activation device 1600 bytes
  plan.body @forward engine cpu {
    plan.fill @x[4x40000xf32] with 1.0
    plan.fill @a[4x100xf32] with 1.0
    plan.kernel @long(@x[4x40000xf32]) -> @y[4x40000xf32] rows 4
    plan.kernel @short(@a[4x100xf32]) -> @b[4x100xf32] rows 4
    plan.kernel @long(@y[4x40000xf32]) -> @z[4x40000xf32] rows 4
    plan.copy @b[4x100xf32] -> @a[4x100xf32]
    plan.copy @z[4x40000xf32] -> @y[4x40000xf32]
  }
  plan.entry @forward { plan.segment cpu { plan.run @forward } }
}
