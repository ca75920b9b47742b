// RUN: acc-opt %s --plan-reserve-for-libraries="threads=1" | FileCheck %s --check-prefix=ONE
// RUN: acc-opt %s --plan-reserve-for-libraries="threads=4" | FileCheck %s --check-prefix=FOUR

// 9 MiB for the process; 128 KiB for a thread; 8 KiB for a command, and as much
// for a product and thread; 128 KiB for the code of each distinct product.
// ONE-LABEL: plan.program @product
// ONE: plan.arena device bytes 4096 alignment 64 reserve 9715712
// FOUR-LABEL: plan.program @product
// FOUR: plan.arena device bytes 4096 alignment 64 reserve 10133504
plan.program @product stage 0 ranks 1 {
  plan.arena device bytes 4096 alignment 64 reserve 0
  plan.buffer @x role input space device offset 0 bytes 128 slots 1 stride 128
  plan.buffer @w role input space device offset 128 bytes 512 slots 1 stride 512
  plan.buffer @y0 role activation space device offset 640 bytes 256 slots 1 stride 256
  plan.buffer @y1 role activation space device offset 896 bytes 256 slots 1 stride 256
  plan.body @forward engine cpu {
    plan.gemm <@x + 0 : f32 [4, 8] strides [8, 1]>, <@w + 0 : f32 [8, 8] strides [8, 1]> -> <@y0 + 0 : f32 [4, 8] strides [8, 1]>
  }
}

// Equal products share their code.
// ONE-LABEL: plan.program @equal
// ONE: reserve 9732096
plan.program @equal stage 0 ranks 1 {
  plan.arena device bytes 4096 alignment 64 reserve 0
  plan.buffer @x role input space device offset 0 bytes 128 slots 1 stride 128
  plan.buffer @w role input space device offset 128 bytes 512 slots 1 stride 512
  plan.buffer @y0 role activation space device offset 640 bytes 256 slots 1 stride 256
  plan.buffer @y1 role activation space device offset 896 bytes 256 slots 1 stride 256
  plan.body @forward engine cpu {
    plan.gemm <@x + 0 : f32 [4, 8] strides [8, 1]>, <@w + 0 : f32 [8, 8] strides [8, 1]> -> <@y0 + 0 : f32 [4, 8] strides [8, 1]>
    plan.gemm <@x + 0 : f32 [4, 8] strides [8, 1]>, <@w + 0 : f32 [8, 8] strides [8, 1]> -> <@y1 + 0 : f32 [4, 8] strides [8, 1]>
  }
}

// ONE-LABEL: plan.program @different
// ONE: reserve 9863168
plan.program @different stage 0 ranks 1 {
  plan.arena device bytes 4096 alignment 64 reserve 0
  plan.buffer @x role input space device offset 0 bytes 128 slots 1 stride 128
  plan.buffer @w role input space device offset 128 bytes 512 slots 1 stride 512
  plan.buffer @y0 role activation space device offset 640 bytes 256 slots 1 stride 256
  plan.buffer @y1 role activation space device offset 896 bytes 256 slots 1 stride 256
  plan.body @forward engine cpu {
    plan.gemm <@x + 0 : f32 [4, 8] strides [8, 1]>, <@w + 0 : f32 [8, 8] strides [8, 1]> -> <@y0 + 0 : f32 [4, 8] strides [8, 1]>
    plan.gemm <@x + 0 : f32 [4, 8] strides [8, 1]>, <@w + 0 : f32 [8, 16] strides [16, 1]> -> <@y1 + 0 : f32 [4, 16] strides [16, 1]>
  }
}

// An attention has two products for each block of queries.
// ONE-LABEL: plan.program @blocks
// ONE: reserve 10133504
plan.program @blocks stage 0 ranks 1 {
  plan.arena device bytes 4096 alignment 64 reserve 0
  plan.buffer @x role input space device offset 0 bytes 128 slots 1 stride 128
  plan.buffer @w role input space device offset 128 bytes 512 slots 1 stride 512
  plan.buffer @y0 role activation space device offset 640 bytes 256 slots 1 stride 256
  plan.buffer @y1 role activation space device offset 896 bytes 256 slots 1 stride 256
  plan.body @forward engine cpu {
    plan.attention <@x + 0 : f32 [1, 1, 4, 4] strides [16, 16, 4, 1]>, <@w + 0 : f32 [1, 1, 4, 4] strides [16, 16, 4, 1]>, <@w + 0 : f32 [1, 1, 4, 4] strides [16, 16, 4, 1]> -> <@y0 + 0 : f32 [1, 1, 4, 4] strides [16, 16, 4, 1]> scale 1.0 {form = {block_queries = 2}}
  }
}
