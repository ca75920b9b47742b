// RUN: acc-opt %s --plan-mark-offloaded=optimizer=host | FileCheck %s --check-prefixes=MOMENTS
// RUN: acc-opt %s --plan-mark-offloaded=parameters=nvme | FileCheck %s --check-prefixes=WEIGHTS
// Of the optimizer's states no fewer bytes than the ratio says, and no more than one state more.
// RUN: acc-opt %s --plan-mark-offloaded="optimizer=host ratio=0.25" | FileCheck %s --check-prefix=FIRST
// RUN: acc-opt %s --plan-mark-offloaded="optimizer=host ratio=0.26" | FileCheck %s --check-prefix=MOMENTS
// RUN: acc-opt %s --plan-mark-offloaded="optimizer=host ratio=0" | FileCheck %s --check-prefix=ZERO
// RUN: not acc-opt %s --plan-mark-offloaded="optimizer=host ratio=1.5" -o /dev/null 2>&1 | FileCheck %s --check-prefix=RATIO
// RATIO: error: expected a ratio of offloaded states from 0 to 1, found 1.5
// As a budget has decided it: of what it says nothing of, nowhere.
// RUN: sed '1s/^/module attributes {accel.decisions = {offload_optimizer = "host"}} {\n/; $s/$/\n}/' %s > %t.mlir
// RUN: acc-opt %t.mlir --plan-mark-offloaded="optimizer=auto parameters=auto" | FileCheck %s --check-prefixes=MOMENTS
// RUN: acc-opt %s --plan-mark-offloaded="optimizer=auto parameters=auto" | FileCheck %s --check-prefix=ZERO
// RUN: not acc-opt %s --plan-mark-offloaded=parameters=disk -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHERE
// WHERE: error: expected 'parameters' to be none, host, nvme or auto, found 'disk'
// RUN: acc-opt %s --plan-mark-offloaded="parameters=nvme most-on-host=65536" | FileCheck %s --check-prefix=FITS
// FITS: plan.buffer @w : state device 262144 bytes source @w {plan.offloaded = #plan<space host>}
// RUN: acc-opt %s --plan-mark-offloaded="parameters=nvme most-on-host=65535" | FileCheck %s --check-prefixes=WEIGHTS
// RUN: not acc-opt %s --plan-mark-offloaded="parameters=nvme most-on-host=-1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MOST
// MOST: error: expected at least 0 numbers of parameters on the host, found -1
// FIRST: plan.buffer @m : state device 32 bytes source @m {plan.offloaded = #plan<space host>}
// FIRST: plan.buffer @v : state device 96 bytes source @v{{$}}
// ZERO-NOT: plan.offloaded
// RUN: acc-opt %s -o %t.before && acc-opt %s --plan-mark-offloaded -o %t.after && diff %t.before %t.after

// MOMENTS: plan.buffer @w : state device 262144 bytes source @w{{$}}
// MOMENTS: plan.buffer @m : state device 32 bytes source @m {plan.offloaded = #plan<space host>}
// MOMENTS: plan.buffer @v : state device 96 bytes source @v {plan.offloaded = #plan<space host>}
// MOMENTS: plan.buffer @r : state device 32 bytes source @r{{$}}
// MOMENTS: plan.buffer @x : input device 262144 bytes{{$}}
// WEIGHTS: plan.buffer @w : state device 262144 bytes source @w {plan.offloaded = #plan<space nvme>}
// WEIGHTS: plan.buffer @m : state device 32 bytes source @m{{$}}
// WEIGHTS: plan.buffer @r : state device 32 bytes source @r{{$}}
nn.state @w : tensor<256x256xf32> = dense<0.0> {frozen}
nn.state moment @m : tensor<8xf32> = dense<0.0>
nn.state moment @v : tensor<24xf32> = dense<0.0>
nn.state buffer @r : tensor<8xf32> = dense<0.0>
plan.program @p stage 0 ranks 1 {
  plan.buffer @w : state device 262144 bytes source @w
  plan.buffer @m : state device 32 bytes source @m
  plan.buffer @v : state device 96 bytes source @v
  plan.buffer @r : state device 32 bytes source @r
  plan.buffer @x : input device 262144 bytes
}
