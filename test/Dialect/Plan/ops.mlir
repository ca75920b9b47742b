// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// Every op of the dialect, in the place it may stand in.
dist.mesh @m ["dp" = 2]
// CHECK-LABEL: plan.program @main stage 1 ranks 2 mesh @m
plan.program @main stage 1 ranks 2 mesh @m {
  // CHECK: plan.arena device 4096 bytes reserve 128{{$}}
  plan.arena device 4096 bytes reserve 128
  // CHECK: plan.arena shared 256 bytes{{$}}
  plan.arena shared 256 bytes alignment 64 reserve 0
  // CHECK: plan.arena host 0 bytes alignment 256{{$}}
  plan.arena host 0 bytes alignment 256
  // CHECK: plan.buffer @w : state device at 0, 256 bytes source @weight part [16/dp, 8]{{$}}
  plan.buffer @w : state device at 0, 256 bytes source @weight part [16/dp, 8]
  // What says a default is not written.
  // CHECK: plan.buffer @p : packed device at 256, 512 bytes{{$}}
  plan.buffer @p : packed device at 256, 512 bytes slots 1 stride 512
  // CHECK: plan.buffer @late : activation device 8 bytes slots 2 stride 64{{$}}
  plan.buffer @late : activation device at -1, 8 bytes slots 2 stride 64
  // CHECK: plan.buffer @k : constant device at 768, 32 bytes value dense<1.000000e+00> : tensor<8xf32>{{$}}
  plan.buffer @k : constant device at 768, 32 bytes value dense<1.0> : tensor<8xf32>
  plan.buffer @x : input device at 832, 256 bytes slots 2
  // CHECK: plan.buffer @y : output device at 832, 256 bytes alias @x{{$}}
  plan.buffer @y : output device at 832, 256 bytes alias @x
  plan.buffer @s : communication shared at 0, 256 bytes
  plan.buffer @t : scratch device at 1600, 64 bytes
  plan.buffer @i : activation device at 1664, 8 bytes
  plan.buffer @g : activation device at 1728, 32 bytes
  // CHECK: plan.body @load engine cpu
  plan.body @load engine cpu {
    // CHECK: plan.read state "weight" -> @w[8x8xf32] of [16/dp, 8]{{$}}
    plan.read state "weight" -> @w[8x8xf32] of [16/dp, 8]
    // CHECK: plan.pack @w[8x8xf32] -> @p[512xi8] form {packed}{{$}}
    plan.pack @w[8x8xf32] -> @p[512xi8] form {packed}
    // CHECK: plan.coordinate dp -> @i[i64]{{$}}
    plan.coordinate dp -> @i[i64]
  }
  plan.body @step engine cuda {
    // CHECK: plan.gemm @x[8x8xf32], @w[8x8xf32 strides [1, 8]] packed @p[512xi8] + @k[8xf32] -> accumulate @y[8x8xf32] scratch @t[64xi8] form {chunk_rows = 4}{{$}}
    plan.gemm @x[8x8xf32], @w[8x8xf32 strides [1, 8]] packed @p[512xi8] + @k[8xf32] -> accumulate @y[8x8xf32] scratch @t[64xi8] form {chunk_rows = 4}
    // CHECK-NEXT: plan.gemm @x[8x8xf32], @w[8x8xf32] -> @y[8x8xf32]{{$}}
    plan.gemm @x[8x8xf32 at 0 strides [8, 1]], @w[8x8xf32] -> @y[8x8xf32] on compute
    // CHECK-NEXT: plan.grouped_gemm @x[4x8xf32], @w[8x8x1xf32 strides [8, 1, 8]] of @g[4xi64] -> @y[4x1xf32] order @t[64xi8] scratch @t[64xi8] form {chunk_columns = 64}{{$}}
    plan.grouped_gemm @x[4x8xf32], @w[8x8x1xf32 strides [8, 1, 8]] of @g[4xi64] -> @y[4x1xf32] order @t[64xi8] scratch @t[64xi8] form {chunk_columns = 64}
    // CHECK-NEXT: plan.grouped_gemm @x[8x8xf32], @w[1x8x8xf32] of @g[8xi32] -> @y[8x8xf32]{{$}}
    plan.grouped_gemm @x[8x8xf32], @w[1x8x8xf32] of @g[8xi32] -> @y[8x8xf32]
    // CHECK-NEXT: plan.grouped_gemm_grad @x[4x8xf32], @y[4x2xf32] of @g[4xi64] -> accumulate @w[4x8x2xf32] order @t[64xi8] scratch @t[64xi8] form {chunk_columns = 64}{{$}}
    plan.grouped_gemm_grad @x[4x8xf32], @y[4x2xf32] of @g[4xi64] -> accumulate @w[4x8x2xf32] order @t[64xi8] scratch @t[64xi8] form {chunk_columns = 64}
    // CHECK-NEXT: plan.grouped_gemm_grad @x[4x8xf32], @y[4x2xf32] of @g[4xi64] -> @w[4x8x2xf32]{{$}}
    plan.grouped_gemm_grad @x[4x8xf32], @y[4x2xf32] of @g[4xi64] -> @w[4x8x2xf32]
    // CHECK-NEXT: plan.conv forward @x[2x1x2x4xf32], @w[1x3x2x3xf32] -> @y[2x1x3x4xf32] strides [1] dilations [2] low [2] scratch @t[64xi8] form {channels = 2, columns = 4, out_channels = 3}{{$}}
    plan.conv forward @x[2x1x2x4xf32], @w[1x3x2x3xf32] -> @y[2x1x3x4xf32] strides [1] dilations [2] low [2] scratch @t[64xi8] form {channels = 2, columns = 4, out_channels = 3}
    // CHECK-NEXT: plan.conv input_grad @y[2x1x3x4xf32], @w[1x3x2x3xf32] -> @x[2x1x2x4xf32] strides [1] dilations [2] low [2]{{$}}
    plan.conv input_grad @y[2x1x3x4xf32], @w[1x3x2x3xf32] -> @x[2x1x2x4xf32] strides [1] dilations [2] low [2]
    // CHECK-NEXT: plan.conv weight_grad @x[2x1x2x4xf32 strides [16, 8, 4, 1]], @y[2x1x3x4xf32] -> @w[1x3x2x3xf32] strides [1] dilations [2] low [2]{{$}}
    plan.conv weight_grad @x[2x1x2x4xf32 strides [16, 8, 4, 1]], @y[2x1x3x4xf32] -> @w[1x3x2x3xf32] strides [1] dilations [2] low [2]
    // CHECK-NEXT: plan.deal_rows @g[4xi64], @i[i64] -> @x[3xi64], @y[3xi64], @s[2xi64] num_groups 4 ranks 2{{$}}
    plan.deal_rows @g[4xi64], @i[i64] -> @x[3xi64], @y[3xi64], @s[2xi64] num_groups 4 ranks 2
    // CHECK-NEXT: plan.collective fetch_rows over dp (@s[4x4xf32]) at @g[3xi64] -> @y[3x4xf32]{{$}}
    plan.collective fetch_rows over dp (@s[4x4xf32]) at @g[3xi64] -> @y[3x4xf32]
    // CHECK: plan.attention @x[1x2x4x8xf32], @x[1x2x4x8xf32], @x[1x2x4x8xf32] mask @k[1x1x1x4xf32] -> @y[1x2x4x8xf32] scale 5.000000e-01 causal zero_masked_rows{{$}}
    plan.attention @x[1x2x4x8xf32], @x[1x2x4x8xf32], @x[1x2x4x8xf32] mask @k[1x1x1x4xf32] -> @y[1x2x4x8xf32] scale 0.5 causal zero_masked_rows
    // CHECK-NEXT: plan.attention {{.*}} -> @y[1x2x4x8xf32], @x[1x2x4xf32] scale 5.000000e-01 causal column_offset 1 scratch @t[64xi8] form {block_queries = 64}{{$}}
    plan.attention @x[1x2x4x8xf32], @x[1x2x4x8xf32], @x[1x2x4x8xf32] -> @y[1x2x4x8xf32], @x[1x2x4xf32] scale 0.5 causal column_offset 1 scratch @t[64xi8] form {block_queries = 64}
    // CHECK: plan.attention_grad @x[1x2x4x8xf32], @x[1x2x4x8xf32], @x[1x2x4x8xf32] output @x[1x2x4x8xf32], @x[1x2x4xf32] gradient @x[1x2x4x8xf32], @x[1x2x4xf32] mask @k[1x1x1x4xf32] -> @y[1x2x4x8xf32], @y[1x2x4x8xf32], @y[1x2x4x8xf32] scale 5.000000e-01 causal zero_masked_rows row_offset 2 scratch @t[64xi8] form {block_queries = 64}{{$}}
    plan.attention_grad @x[1x2x4x8xf32], @x[1x2x4x8xf32], @x[1x2x4x8xf32] output @x[1x2x4x8xf32], @x[1x2x4xf32] gradient @x[1x2x4x8xf32], @x[1x2x4xf32] mask @k[1x1x1x4xf32] -> @y[1x2x4x8xf32], @y[1x2x4x8xf32], @y[1x2x4x8xf32] scale 0.5 causal zero_masked_rows row_offset 2 scratch @t[64xi8] form {block_queries = 64}
    // CHECK: plan.kernel @double(@x[32xf32 at dp*128]) -> @s[32xf32] rows 8 by 2{{$}}
    plan.kernel @double(@x[32xf32 at dp*128]) -> @s[32xf32] rows 8 by 2
    // CHECK-NEXT: plan.kernel @double(@x[32xf32]) -> @s[32xf32] rows 8 by 2 scratch @t[64xi8] form {blocks = 4, shared_bytes = 4096, stages = 2}{{$}}
    plan.kernel @double(@x[32xf32]) -> @s[32xf32] rows 8 by 2 scratch @t[64xi8] form {blocks = 4, shared_bytes = 4096, stages = 2}
    // CHECK: plan.record "ready"{{$}}
    plan.record "ready"
    // CHECK: plan.wait "ready" on comm{{$}}
    plan.wait "ready" on comm
    // CHECK: plan.collective all_to_all over dp dim 1 wire bf16 (@s[8x4xf32]) -> @y[4x8xf32] on comm{{$}}
    plan.collective all_to_all over dp dim 1 wire bf16 (@s[8x4xf32]) -> @y[4x8xf32] on comm
    // CHECK: plan.group
    plan.group {
      // CHECK-NEXT: plan.recv @y[4xf32] from dp - 1 tag 7{{$}}
      plan.recv @y[4xf32] from dp - 1 tag 7
      // CHECK-NEXT: plan.send @s[4xf32] to dp + 1 tag 7{{$}}
      plan.send @s[4xf32] to dp + 1 tag 7
    }
    // A piece of what lies between others, on a stream, and what is left for dialects.
    // CHECK: plan.copy @y[2x2x2xf32 at 16 + dp*64 + "a b"*-4 strides [1, 2, 4]] -> @s[2x2x2xf32 at mb*32] on "side stream" releases @y[64xi8], @s[4xi8 at 4] {plan.unit = "h.0"}{{$}}
    plan.copy @y[2x2x2xf32 at 16 + dp*64 + "a b"*-4 strides [1, 2, 4]] -> @s[2x2x2xf32 at mb*32] on "side stream" releases @y[64xi8], @s[4xi8 at 4] {plan.unit = "h.0"}
    // CHECK: plan.collective all_reduce max over dp, "t p" dim 1 split_dim 2 permutation [1, 0] (@s[4xf32], @x[4xf32]) -> @s[4xf32], @x[4xf32]{{$}}
    plan.collective all_reduce max over dp, "t p" dim 1 split_dim 2 permutation [1, 0] (@s[4xf32], @x[4xf32]) -> @s[4xf32], @x[4xf32]
    // CHECK: plan.kernel @constant() -> @s[f32] rows 1{{$}}
    plan.kernel @constant() -> @s[f32] rows 1 by 1
    // CHECK: plan.fill @i[i64] with -3{{$}}
    plan.fill @i[i64] with -3
    // CHECK: plan.pack {{.*}} form {alpha = 5.000000e-01, count = 3 : i32, layout = array<i64: 3, 4>, "of rows" = "onednn", rows = 8}{{$}}
    plan.pack @w[8x8xf32] -> @p[512xi8] form {rows = 8, alpha = 0.5, count = 3 : i32, layout = array<i64: 3, 4>, "of rows" = "onednn"}
    // CHECK: plan.wait "ready" of @load{{$}}
    plan.wait "ready" of @load
    // CHECK: plan.copy @y[4xf32] -> @s[4xf32 at 16]{{$}}
    plan.copy @y[4xf32] -> @s[4xf32 at 16]
    // CHECK: plan.fill @y[4xf32] with 0.000000e+00{{$}}
    plan.fill @y[4xf32] with 0.0
    // CHECK: plan.write @y[4xf32] of [8/dp] -> output "y"{{$}}
    plan.write @y[4xf32] of [8/dp] -> output "y"
    // CHECK-NEXT: plan.read input "x" each_micro_batch -> @x[3x4xf32] of [24/mb/dp]{{$}}
    plan.read input "x" each_micro_batch -> @x[3x4xf32] of [24/mb/dp]
    // CHECK-NEXT: plan.write @y[3x4xf32] of [24/mb/dp] -> output "y" each_micro_batch{{$}}
    plan.write @y[3x4xf32] of [24/mb/dp] -> output "y" each_micro_batch
  }
  // CHECK: plan.entry @forward
  plan.entry @forward {
    // CHECK-NEXT: plan.segment cuda capturable
    plan.segment cuda capturable {
      // CHECK-NEXT: plan.run @step micro_batch 1{{$}}
      plan.run @step micro_batch 1
      // CHECK-NEXT: plan.run @load{{$}}
      plan.run @load micro_batch 0
    }
    // CHECK: plan.loop 3 {
    // CHECK-NEXT: plan.segment cpu {
    // CHECK-NEXT: plan.run @step micro_batch turn + 2
    plan.loop 3 {
      plan.segment cpu {
        plan.run @step micro_batch turn + 2
        // CHECK-NEXT: plan.run @step micro_batch turn{{$}}
        plan.run @step micro_batch turn + 0
      }
    }
  }
}
