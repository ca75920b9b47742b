// RUN: acc-opt %s --plan-print-summary -o /dev/null 2>&1 | FileCheck %s
// RUN: acc-opt %s --plan-print-summary=json -o /dev/null 2>&1 | FileCheck %s --check-prefix=JSON

// Product: 4 · 8 sums of 3 multiply-adds. Attention: 2 · 2 heads of 1 + 2 visible
// scores, 2 · (4 + 4) + 5 each. Kernel: one per element.
// A body counts as often as it runs, in turns of a loop too; an alias has no bytes
// of its own.
// CHECK: program @p: stage 0, ranks 2
// CHECK-NEXT:   device: 640 bytes, 7 reserved
// CHECK-NEXT:     state: 128 bytes
// CHECK-NEXT:     activation: 448 bytes
// CHECK-NEXT:   largest buffers:
// CHECK-NEXT:     @s: 192 bytes, activation
// CHECK-NEXT:     @w: 128 bytes, state
// CHECK-NEXT:     @q: 128 bytes, activation
// CHECK-NEXT:     @o: 128 bytes, activation
// CHECK-NEXT:   entry @load:
// CHECK-NEXT:     fill: 1, 0 flops
// CHECK-NEXT:   entry @forward:
// CHECK-NEXT:     attention: 1, 252 flops
// CHECK-NEXT:     gemm: 1, 192 flops
// CHECK-NEXT:     kernel: 4, 128 flops
// CHECK-NOT: {{.}}

// JSON: {"program":"p","stage":0,"ranks":2,"arenas":[{"space":"device","bytes":640,"reserve":7,"roles":{"state":128,"activation":448}}],"largest":[{"buffer":"s","bytes":192,"role":"activation"},
// JSON-SAME: "entries":{"load":{"fill":{"count":1,"flops":0}},"forward":{"attention":{"count":1,"flops":252},"gemm":{"count":1,"flops":192},"kernel":{"count":4,"flops":128}}}}
// JSON-NOT: {{.}}
func.func private @negate(%a: tensor<32xf32>) -> tensor<32xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<32xf32>
  return %b : tensor<32xf32>
}
plan.program @p stage 0 ranks 2 {
  plan.arena device 640 bytes reserve 7
  plan.buffer @w : state device at 0, 128 bytes
  plan.buffer @q : activation device at 128, 128 bytes
  plan.buffer @o : activation device at 256, 128 bytes
  plan.buffer @s : activation device at 448, 64 bytes slots 3
  plan.buffer @t : activation device at 448, 64 bytes alias @s
  plan.body @f engine cpu {
    plan.gemm @w[4x3xf32], @q[3x8xf32] -> @o[4x8xf32]
    plan.attention @q[2x2x2x4xf32], @q[2x2x2x4xf32], @q[2x2x2x4xf32] -> @o[2x2x2x4xf32] scale 0.5 causal
  }
  plan.body @g engine cpu {
    plan.kernel @negate(@q[32xf32]) -> @q[32xf32] rows 1
  }
  plan.body @l engine cpu {
    plan.fill @w[32xf32] with 0.0
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
      plan.run @g
    }
    plan.loop 3 {
      plan.segment cpu {
        plan.run @g micro_batch turn + 1
      }
    }
  }
  plan.entry @load {
    plan.segment cpu {
      plan.run @l
    }
  }
}
