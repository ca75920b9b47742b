// RUN: acc-opt %s --plan-choose-forms="target=null" | FileCheck %s --check-prefix=NULL
// RUN: acc-opt %s --plan-choose-forms="target=cpu:x86-64-v3 threads=1" | FileCheck %s --check-prefixes=CPU,ONE
// RUN: acc-opt %s --plan-choose-forms="target=cpu:x86-64-v3 threads=2" | FileCheck %s --check-prefixes=CPU,TWO
// RUN: not acc-opt %s --plan-choose-forms="target=gpu" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// How a command is computed is the target's to say: one that only counts says nothing,
// another gives it a buffer of scratch, and where threads share it a part for each.
// NULL-NOT: scratch
// NULL: plan.gemm @x[256x256xf32], @w[256x256xf32] -> @y[256x256xf32]{{$}}
// CPU: plan.buffer @scratch : scratch device {{[0-9]+}} bytes
// ONE: plan.gemm @x[256x256xf32], @w[256x256xf32] -> @y[256x256xf32] scratch @scratch[{{[0-9]+}}xi8]{{$}}
// TWO: plan.gemm @x[256x256xf32], @w[256x256xf32] -> @y[256x256xf32] scratch @scratch[{{[0-9]+}}xi8] form {chunk_rows = 128}
// UNKNOWN: error: expected a target ({{.*}}), found 'gpu'
plan.program @p stage 0 ranks 1 {
  plan.buffer @x : activation device 262144 bytes
  plan.buffer @w : state device 262144 bytes
  plan.buffer @y : activation device 262144 bytes
  plan.body @forward engine cpu {
    plan.gemm @x[256x256xf32], @w[256x256xf32] -> @y[256x256xf32]
  }
}
