// What one body fetches a micro-batch ahead, beside the computation, another waits for
// where it is needed: an event of another run. Two copies keep the micro-batches apart.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/plan.mlir --plan-verify -o %t/verified.mlir
// RUN: acc-eval %t/nn.mlir --compare %t/plan.mlir --tolerance 0 --interleavings 8
// One copy is too few.
// RUN: sed -e 's/bytes 16 slots 2/bytes 16 slots 1/' %t/plan.mlir > %t/one.mlir
// RUN: not acc-opt %t/one.mlir --plan-verify 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: {{.*}}races
// Without the wait.
// RUN: sed -e '/of @fetch/d' %t/plan.mlir > %t/early.mlir
// RUN: not acc-opt %t/early.mlir --plan-verify 2>&1 | FileCheck %s --check-prefix=RACE
// RUN: not acc-eval %t/nn.mlir --compare %t/early.mlir --interleavings 8
// What is waited for must stand before.
// RUN: sed -e 's/@fetch micro_batch turn + 1/@swap micro_batch turn + 0/;s/@use micro_batch turn + 0/@fetch micro_batch turn + 1/;s/@swap/@use/' %t/plan.mlir > %t/late.mlir
// RUN: acc-opt %t/late.mlir --plan-verify -o %t/verified.mlir
// RUN: sed -e 's/plan.run @fetch micro_batch 0/plan.run @use micro_batch 3/;t;s/plan.run @use micro_batch 3/plan.run @fetch micro_batch 0/' %t/plan.mlir > %t/never.mlir
// RUN: not acc-opt %t/never.mlir --plan-verify 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: not acc-eval %t/never.mlir 2>&1 | FileCheck %s --check-prefix=BLOCKED
// NEVER: error: {{.*}}waits for event 'there', which no command can record before it
// BLOCKED: error: 'plan.wait' op expected to run some time

//--- nn.mlir
module attributes {accel.phase = "nn"} {
  func.func @main(%x: tensor<8xf64> {nn.input = "x"}) -> (tensor<8xf64> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.add %x, %x : tensor<8xf64>
    return %y : tensor<8xf64>
  }
}

//--- plan.mlir
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["mb" = 4]
  func.func private @double(%x: tensor<2xf64>) -> tensor<2xf64> attributes {plan.kernel} {
    %0 = nn.add %x, %x : tensor<2xf64>
    return %0 : tensor<2xf64>
  }
  plan.program @main stage 0 ranks 1 mesh @m {
    plan.arena device bytes 144 alignment 64 reserve 0
    plan.buffer @x role input space device offset 0 bytes 16 slots 2 stride 64
    plan.buffer @y role output space device offset 128 bytes 16 slots 1 stride 16
    plan.body @fetch engine cpu {
      plan.record "begun"
      plan.wait "begun" {stream = "comm"}
      plan.read input "x" <[8] by [["mb"]]> -> <@x + 0 : f64[2] strides[1]> {stream = "comm"}
      plan.record "there" {stream = "comm"}
    }
    plan.body @use engine cpu {
      plan.wait "there" of @fetch
      plan.kernel @double [#plan.view<@x + 0 : f64[2] strides[1]>] -> [#plan.view<@y + 0 : f64[2] strides[1]>] rows 2 grid 1
      plan.write <@y + 0 : f64[2] strides[1]> -> output "y" <[8] by [["mb"]]>
    }
    plan.entry @main {
      plan.segment cpu {
        plan.run @fetch micro_batch 0
      }
      plan.loop 3 {
        plan.segment cpu {
          plan.run @fetch micro_batch turn + 1
          plan.run @use micro_batch turn + 0
        }
      }
      plan.segment cpu {
        plan.run @use micro_batch 3
      }
    }
  }
}
