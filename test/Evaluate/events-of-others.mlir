// What one body fetches a micro-batch ahead, beside the computation, another waits for
// where it is needed: an event of another run. Two copies keep the micro-batches apart.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/plan.mlir --plan-verify -o %t/verified.mlir
// RUN: acc-eval %t/nn.mlir --compare %t/plan.mlir --tolerance 0 --interleavings 8
// One copy is too few.
// RUN: sed -e 's/ slots 2 stride 64//' %t/plan.mlir > %t/one.mlir
// RUN: not acc-opt %t/one.mlir --plan-verify 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: {{.*}}races
// Without the wait.
// RUN: sed -e '/of @fetch/d' %t/plan.mlir > %t/early.mlir
// RUN: not acc-opt %t/early.mlir --plan-verify 2>&1 | FileCheck %s --check-prefix=RACE
// RUN: not acc-eval %t/nn.mlir --compare %t/early.mlir --interleavings 8
// What is waited for must stand before.
// RUN: sed -e 's/@fetch micro_batch turn + 1/@swap micro_batch turn/;s/@use micro_batch turn/@fetch micro_batch turn + 1/;s/@swap/@use/' %t/plan.mlir > %t/late.mlir
// RUN: acc-opt %t/late.mlir --plan-verify -o %t/verified.mlir
// RUN: sed -e 's/plan.run @fetch$/plan.run @use micro_batch 3/;t;s/plan.run @use micro_batch 3/plan.run @fetch/' %t/plan.mlir > %t/never.mlir
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
    plan.arena device 144 bytes
    plan.buffer @x : input device at 0, 16 bytes slots 2 stride 64
    plan.buffer @y : output device at 128, 16 bytes
    plan.body @fetch engine cpu {
      plan.record "begun"
      plan.wait "begun" on comm
      plan.read input "x" -> @x[2xf64] of [8/mb] on comm
      plan.record "there" on comm
    }
    plan.body @use engine cpu {
      plan.wait "there" of @fetch
      plan.kernel @double(@x[2xf64]) -> @y[2xf64] rows 2 by 1
      plan.write @y[2xf64] of [8/mb] -> output "y"
    }
    plan.entry @forward {
      plan.segment cpu {
        plan.run @fetch
      }
      plan.loop 3 {
        plan.segment cpu {
          plan.run @fetch micro_batch turn + 1
          plan.run @use micro_batch turn
        }
      }
      plan.segment cpu {
        plan.run @use micro_batch 3
      }
    }
  }
}
