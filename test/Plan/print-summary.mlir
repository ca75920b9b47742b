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
// CHECK-NEXT:   entry @main:
// CHECK-NEXT:     gemm: 1, 192 flops
// CHECK-NEXT:     attention: 1, 252 flops
// CHECK-NEXT:     kernel: 4, 128 flops
// CHECK-NOT: {{.}}

// JSON: {"program":"p","stage":0,"ranks":2,"arenas":[{"space":"device","bytes":640,"reserve":7,"roles":{"state":128,"activation":448}}],"largest":[{"buffer":"s","bytes":192,"role":"activation"},
// JSON-SAME: "entries":{"load":{"fill":{"count":1,"flops":0}},"main":{"gemm":{"count":1,"flops":192},"attention":{"count":1,"flops":252},"kernel":{"count":4,"flops":128}}}}
// JSON-NOT: {{.}}
func.func private @negate(%a: tensor<32xf32>) -> tensor<32xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<32xf32>
  return %b : tensor<32xf32>
}
plan.program @p stage 0 ranks 2 {
  plan.arena device bytes 640 alignment 64 reserve 7
  plan.buffer @w role state space device offset 0 bytes 128 slots 1 stride 128
  plan.buffer @q role activation space device offset 128 bytes 128 slots 1 stride 128
  plan.buffer @o role activation space device offset 256 bytes 128 slots 1 stride 128
  plan.buffer @s role activation space device offset 448 bytes 64 slots 3 stride 64
  plan.buffer @t role activation space device offset 448 bytes 64 slots 1 stride 64 {alias_of = @s}
  plan.body @f engine cpu {
    plan.gemm <@w + 0 : f32 [4, 3] strides [3, 1]>, <@q + 0 : f32 [3, 8] strides [8, 1]> -> <@o + 0 : f32 [4, 8] strides [8, 1]>
    plan.attention <@q + 0 : f32 [2, 2, 2, 4] strides [16, 8, 4, 1]>, <@q + 0 : f32 [2, 2, 2, 4] strides [16, 8, 4, 1]>, <@q + 0 : f32 [2, 2, 2, 4] strides [16, 8, 4, 1]> -> <@o + 0 : f32 [2, 2, 2, 4] strides [16, 8, 4, 1]> scale 0.5 {causal}
  }
  plan.body @g engine cpu {
    plan.kernel @negate [#plan.view<@q + 0 : f32 [32] strides [1]>] -> [#plan.view<@q + 0 : f32 [32] strides [1]>] rows 1 grid 1
  }
  plan.body @l engine cpu {
    plan.fill 0.0 : f32 -> <@w + 0 : f32 [32] strides [1]>
  }
  plan.entry @main {
    plan.segment cpu {
      plan.run @f micro_batch 0
      plan.run @g micro_batch 0
    }
    plan.loop 3 {
      plan.segment cpu {
        plan.run @g micro_batch turn + 1
      }
    }
  }
  plan.entry @load {
    plan.segment cpu {
      plan.run @l micro_batch 0
    }
  }
}
