// RUN: acc-opt %s --plan-mark-offloaded=optimizer | FileCheck %s --check-prefixes=MOMENTS
// RUN: acc-opt %s --plan-mark-offloaded=parameters | FileCheck %s --check-prefixes=WEIGHTS
// RUN: acc-opt %s -o %t.before && acc-opt %s --plan-mark-offloaded -o %t.after && diff %t.before %t.after

// MOMENTS: plan.buffer @w : state device 262144 bytes source @w{{$}}
// MOMENTS: plan.buffer @m : state device 32 bytes source @m {plan.offloaded}
// MOMENTS: plan.buffer @r : state device 32 bytes source @r{{$}}
// MOMENTS: plan.buffer @x : input device 262144 bytes{{$}}
// WEIGHTS: plan.buffer @w : state device 262144 bytes source @w {plan.offloaded}
// WEIGHTS: plan.buffer @m : state device 32 bytes source @m{{$}}
// WEIGHTS: plan.buffer @r : state device 32 bytes source @r{{$}}
nn.state @w : tensor<256x256xf32> = dense<0.0> {frozen}
nn.state moment @m : tensor<8xf32> = dense<0.0>
nn.state buffer @r : tensor<8xf32> = dense<0.0>
plan.program @p stage 0 ranks 1 {
  plan.buffer @w : state device 262144 bytes source @w
  plan.buffer @m : state device 32 bytes source @m
  plan.buffer @r : state device 32 bytes source @r
  plan.buffer @x : input device 262144 bytes
}
