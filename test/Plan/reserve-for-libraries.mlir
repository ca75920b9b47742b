// RUN: acc-opt %s --plan-reserve-for-libraries="threads=1" | FileCheck %s --check-prefix=ONE
// RUN: acc-opt %s --plan-reserve-for-libraries="threads=4" | FileCheck %s --check-prefix=FOUR

// 9 MiB for the process; 128 KiB for a thread; 8 KiB for a command, and as much
// for a product and thread; 128 KiB for the code of each distinct product.
// ONE-LABEL: plan.program @product
// ONE: plan.arena device 4096 bytes reserve 9715712
// FOUR-LABEL: plan.program @product
// FOUR: plan.arena device 4096 bytes reserve 10133504
plan.program @product stage 0 ranks 1 {
  plan.arena device 4096 bytes
  plan.buffer @x : input device at 0, 128 bytes
  plan.buffer @w : input device at 128, 512 bytes
  plan.buffer @y0 : activation device at 640, 256 bytes
  plan.buffer @y1 : activation device at 896, 256 bytes
  plan.body @forward engine cpu {
    plan.gemm @x[4x8xf32], @w[8x8xf32] -> @y0[4x8xf32]
  }
}

// Equal products share their code.
// ONE-LABEL: plan.program @equal
// ONE: reserve 9732096
plan.program @equal stage 0 ranks 1 {
  plan.arena device 4096 bytes
  plan.buffer @x : input device at 0, 128 bytes
  plan.buffer @w : input device at 128, 512 bytes
  plan.buffer @y0 : activation device at 640, 256 bytes
  plan.buffer @y1 : activation device at 896, 256 bytes
  plan.body @forward engine cpu {
    plan.gemm @x[4x8xf32], @w[8x8xf32] -> @y0[4x8xf32]
    plan.gemm @x[4x8xf32], @w[8x8xf32] -> @y1[4x8xf32]
  }
}

// ONE-LABEL: plan.program @different
// ONE: reserve 9863168
plan.program @different stage 0 ranks 1 {
  plan.arena device 4096 bytes
  plan.buffer @x : input device at 0, 128 bytes
  plan.buffer @w : input device at 128, 512 bytes
  plan.buffer @y0 : activation device at 640, 256 bytes
  plan.buffer @y1 : activation device at 896, 256 bytes
  plan.body @forward engine cpu {
    plan.gemm @x[4x8xf32], @w[8x8xf32] -> @y0[4x8xf32]
    plan.gemm @x[4x8xf32], @w[8x16xf32] -> @y1[4x16xf32]
  }
}

// An attention has two products for each block of queries.
// ONE-LABEL: plan.program @blocks
// ONE: reserve 10133504
plan.program @blocks stage 0 ranks 1 {
  plan.arena device 4096 bytes
  plan.buffer @x : input device at 0, 128 bytes
  plan.buffer @w : input device at 128, 512 bytes
  plan.buffer @y0 : activation device at 640, 256 bytes
  plan.buffer @y1 : activation device at 896, 256 bytes
  plan.body @forward engine cpu {
    plan.attention @x[1x1x4x4xf32], @w[1x1x4x4xf32], @w[1x1x4x4xf32] -> @y0[1x1x4x4xf32] scale 1.0 form {block_queries = 2}
  }
}
