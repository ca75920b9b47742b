// A weight that another stage sends with each micro-batch, and that a body reads once behind
// them all: messages of two micro-batches are under way at once, so that each has a copy,
// and the update reads the first. What a body writes that runs once has one copy.
// RUN: acc-opt %s --plan-keep-in-flight | FileCheck %s
// CHECK-DAG: plan.buffer @weight : activation device 8 bytes slots 2{{$}}
// CHECK-DAG: plan.buffer @once : activation device 8 bytes{{$}}
plan.program @p stage 1 ranks 2 mesh @m {
  plan.buffer @weight : activation device 8 bytes
  plan.buffer @once : activation device 8 bytes
  plan.buffer @y : activation device 8 bytes
  plan.body @prepare engine cpu {
    plan.fill @once[2xf32] with 1.0
  }
  plan.body @receive engine cpu {
    plan.recv @weight[2xf32] from pp - 1 tag 0 on edge
    plan.record "received" on edge
  }
  plan.body @forward engine cpu {
    plan.wait "received" of @receive
    plan.copy @weight[2xf32] -> @y[2xf32]
    plan.copy @once[2xf32] -> @y[2xf32]
  }
  plan.body @update engine cpu {
    plan.copy @weight[2xf32] -> @y[2xf32]
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @prepare
      plan.run @receive
      plan.run @receive micro_batch 1
      plan.run @forward
      plan.run @forward micro_batch 1
      plan.run @update
    }
  }
}
dist.mesh @m ["pp" = 2, "mb" = 2]
