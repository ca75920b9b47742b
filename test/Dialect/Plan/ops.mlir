// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// Every op of the dialect, in the place it may stand in.
dist.mesh @m ["dp" = 2]
// CHECK-LABEL: plan.program @main stage 1 ranks 2 mesh @m
plan.program @main stage 1 ranks 2 mesh @m {
  // CHECK: plan.arena device bytes 4096 alignment 64 reserve 128
  plan.arena device bytes 4096 alignment 64 reserve 128
  plan.arena shared bytes 256 alignment 64 reserve 0
  // CHECK: plan.buffer @w role state space device offset 0 bytes 256 slots 1 stride 256 {part = #plan.part<[16, 8] by {{\[\[}}"dp"], []]>, source = @weight}
  plan.buffer @w role state space device offset 0 bytes 256 slots 1 stride 256 {part = #plan.part<[16, 8] by [["dp"], []]>, source = @weight}
  plan.buffer @p role packed space device offset 256 bytes 512 slots 1 stride 512
  // CHECK: plan.buffer @k role constant {{.*}} {value = dense<1.000000e+00> : tensor<8xf32>}
  plan.buffer @k role constant space device offset 768 bytes 32 slots 1 stride 32 {value = dense<1.0> : tensor<8xf32>}
  plan.buffer @x role input space device offset 832 bytes 256 slots 2 stride 256
  // CHECK: plan.buffer @y {{.*}} {alias_of = @x}
  plan.buffer @y role output space device offset 832 bytes 256 slots 1 stride 256 {alias_of = @x}
  plan.buffer @s role communication space shared offset 0 bytes 256 slots 1 stride 256
  plan.buffer @t role scratch space device offset 1600 bytes 64 slots 1 stride 64
  plan.buffer @i role activation space device offset 1664 bytes 8 slots 1 stride 8
  // CHECK: plan.body @load engine cpu
  plan.body @load engine cpu {
    // CHECK: plan.read state "weight" <[16, 8] by {{.*}}> -> <@w + 0 : f32[8, 8] strides[8, 1]>
    plan.read state "weight" <[16, 8] by [["dp"], []]> -> <@w + 0 : f32 [8, 8] strides [8, 1]>
    // CHECK: plan.pack {{.*}} {form = {packed}}
    plan.pack <@w + 0 : f32 [8, 8] strides [8, 1]> -> <@p + 0 : i8 [512] strides [1]> {form = {packed}}
    // CHECK: plan.coordinate ["dp"] -> <@i + 0 : i64[] strides[]>
    plan.coordinate ["dp"] -> <@i + 0 : i64 [] strides []>
  }
  plan.body @step engine cuda {
    // CHECK: plan.gemm {{.*}} {accumulate, bias = {{.*}}, form = {chunk_rows = 4 : i64}, packed = {{.*}}, scratch = {{.*}}}
    plan.gemm <@x + 0 : f32 [8, 8] strides [8, 1]>, <@w + 0 : f32 [8, 8] strides [1, 8]> -> <@y + 0 : f32 [8, 8] strides [8, 1]> {accumulate, bias = #plan.view<@k + 0 : f32 [8] strides [1]>, packed = #plan.view<@p + 0 : i8 [512] strides [1]>, scratch = #plan.view<@t + 0 : i8 [64] strides [1]>, form = {chunk_rows = 4 : i64}}
    // CHECK: plan.attention {{.*}} mask {{.*}} scale 5.000000e-01 {causal, zero_masked_rows}
    plan.attention <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]> mask <@k + 0 : f32 [1, 1, 1, 4] strides [4, 4, 4, 1]> -> <@y + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]> scale 0.5 {causal, zero_masked_rows}
    // CHECK: plan.attention_grad {{.*}} output {{.*}} gradient {{.*}} mask {{.*}} -> {{.*}}, {{.*}}, {{.*}} scale 5.000000e-01 {causal, form = {block_queries = 64 : i64}, row_offset = 2 : i64, scratch = {{.*}}, zero_masked_rows}
    plan.attention_grad <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]> output <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@x + 0 : f32 [1, 2, 4] strides [8, 4, 1]> gradient <@x + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@x + 0 : f32 [1, 2, 4] strides [8, 4, 1]> mask <@k + 0 : f32 [1, 1, 1, 4] strides [4, 4, 4, 1]> -> <@y + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@y + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]>, <@y + 0 : f32 [1, 2, 4, 8] strides [64, 32, 8, 1]> scale 0.5 {causal, zero_masked_rows, row_offset = 2, form = {block_queries = 64 : i64}, scratch = #plan.view<@t + 0 : i8 [64] strides [1]>}
    // CHECK: plan.kernel @double [{{.*}}] -> [{{.*}}] rows 8 grid 2
    plan.kernel @double [#plan.view<@x + 0 axes [<"dp" * 128>] : f32 [32] strides [1]>] -> [#plan.view<@s + 0 : f32 [32] strides [1]>] rows 8 grid 2
    // CHECK: plan.record "ready"
    plan.record "ready"
    // CHECK: plan.wait "ready" {stream = "comm"}
    plan.wait "ready" {stream = "comm"}
    // CHECK: plan.collective all_to_all ["dp"] {{.*}} {dim = 1 : i64, stream = "comm", wire = bf16}
    plan.collective all_to_all ["dp"] [#plan.view<@s + 0 : f32 [8, 4] strides [4, 1]>] -> [#plan.view<@y + 0 : f32 [4, 8] strides [8, 1]>] {dim = 1 : i64, split_dim = 0 : i64, wire = bf16, stream = "comm"}
    // CHECK: plan.group
    plan.group {
      // CHECK-NEXT: plan.send <@s {{.*}}> to "dp" 1 tag 7
      plan.send <@s + 0 : f32 [4] strides [1]> to "dp" 1 tag 7
      // CHECK-NEXT: plan.recv <@y {{.*}}> from "dp" -1 tag 7
      plan.recv <@y + 0 : f32 [4] strides [1]> from "dp" -1 tag 7
    }
    // CHECK: plan.copy
    plan.copy <@y + 0 : f32 [4] strides [1]> -> <@s + 16 : f32 [4] strides [1]>
    // CHECK: plan.fill 0.000000e+00 : f32 ->
    plan.fill 0.0 : f32 -> <@y + 0 : f32 [4] strides [1]>
    // CHECK: plan.write {{.*}} -> output "y" <[8] by {{\[\[}}"dp"]]>
    plan.write <@y + 0 : f32 [4] strides [1]> -> output "y" <[8] by [["dp"]]>
  }
  // CHECK: plan.entry @main
  plan.entry @main {
    // CHECK-NEXT: plan.segment cuda capturable
    plan.segment cuda capturable {
      // CHECK-NEXT: plan.run @step micro_batch 1
      plan.run @step micro_batch 1
    }
    // CHECK: plan.loop 3 {
    // CHECK-NEXT: plan.segment cpu {
    // CHECK-NEXT: plan.run @step micro_batch turn + 2
    plan.loop 3 {
      plan.segment cpu {
        plan.run @step micro_batch turn + 2
      }
    }
  }
}
