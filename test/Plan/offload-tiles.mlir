// An update in tiles is staged in tiles, of two commands or of as many as fit: the device has
// 4 x 1024 bytes of two states instead of 2 x 4096, or 2 x 1024 with room for two, beside 4096 each of @p and @g.
// RUN: acc-opt %s --plan-mark-offloaded=optimizer=host --plan-tile-updates="tile=0 target=cpu:x86-64-v3" --plan-offload-states --plan-allocate-buffers | FileCheck %s --check-prefix=WHOLE
// RUN: acc-opt %s --plan-mark-offloaded=optimizer=host --plan-tile-updates="tile=256 target=cpu:x86-64-v3" --plan-offload-states --plan-allocate-buffers | FileCheck %s
// RUN: acc-opt %s --plan-mark-offloaded=optimizer=host --plan-tile-updates="tile=256 target=cpu:x86-64-v3" --plan-offload-states=buffer-count=2 --plan-allocate-buffers | FileCheck %s --check-prefix=FEW
// WHOLE: plan.arena device 16384 bytes
// WHOLE-NEXT: plan.arena host 8192 bytes
// FEW: plan.arena device 10240 bytes
// FEW-NEXT: plan.arena host 8192 bytes
// CHECK: plan.arena device 12288 bytes
// CHECK-NEXT: plan.arena host 8192 bytes
// CHECK-DAG: plan.buffer @m.staged : activation device at {{[0-9]+}}, 1024 bytes

// While one tile is computed the next one is fetched, behind the one before, which is put back.
// CHECK-LABEL: plan.body @update
// CHECK-NEXT: plan.record "offload_begin"
// CHECK-NEXT: plan.wait "offload_begin" on offload
// CHECK-NEXT: plan.copy @m[16x16xf32] -> @m.staged[16x16xf32] on offload
// CHECK-NEXT: plan.copy @v[16x16xf32] -> @v.staged[16x16xf32] on offload
// CHECK-NEXT: plan.record "offload_there_1" on offload
// CHECK-NEXT: plan.copy @m[16x16xf32 at 1024] -> @m.staged_0[16x16xf32] on offload
// CHECK-NEXT: plan.copy @v[16x16xf32 at 1024] -> @v.staged_1[16x16xf32] on offload
// CHECK-NEXT: plan.record "offload_there_3" on offload
// CHECK-NEXT: plan.wait "offload_there_1"
// CHECK-NEXT: plan.kernel @move_tile(@g[16x16xf32], @p[16x16xf32], @m.staged[16x16xf32], @v.staged[16x16xf32]) -> @p[16x16xf32], @m.staged[16x16xf32], @v.staged[16x16xf32] rows 16 {plan.tile = [@m, @v]}
// CHECK-NEXT: plan.record "offload_done_0"
// CHECK-NEXT: plan.wait "offload_done_0" on offload
// CHECK-NEXT: plan.copy @m.staged[16x16xf32] -> @m[16x16xf32] on offload
// CHECK: plan.copy @v.staged[16x16xf32] -> @v[16x16xf32] on offload
// CHECK: plan.copy @m[16x16xf32 at 2048] -> @m.staged_2[16x16xf32] on offload
// CHECK: plan.wait "offload_there_3"
// CHECK-NEXT: plan.kernel @move_tile(@g[16x16xf32 at 1024], @p[16x16xf32 at 1024], @m.staged_0[16x16xf32], @v.staged_1[16x16xf32]) -> @p[16x16xf32 at 1024], @m.staged_0[16x16xf32], @v.staged_1[16x16xf32] rows 16 {plan.tile = [@m, @v]}

// Tiles do not know of all of a state, nor of other tiles: what of it is staged is put back before all of it is
// fetched, and all of it before a tile.
// CHECK-LABEL: plan.body @mixed
// CHECK: plan.copy @m.staged{{.*}}[16x16xf32] -> @m[16x16xf32 at 3072] on offload
// CHECK: plan.copy @m[64x16xf32] -> @m.[[ALL:staged_[0-9]+]][64x16xf32] on offload
// CHECK: plan.kernel @norm(@m.[[ALL]][64x16xf32]) -> @n[64xf32]
// CHECK: plan.copy @m[16x16xf32] -> @m.[[AGAIN:staged_[0-9]+]][16x16xf32] on offload
// CHECK: plan.kernel @few(@m.[[AGAIN]][16x16xf32]) -> @m.[[AGAIN]][16x16xf32]
nn.state @p : tensor<64x16xf32> = dense<0.0>
nn.state moment @m : tensor<64x16xf32> = dense<0.0>
nn.state moment @v : tensor<64x16xf32> = dense<0.0>
func.func private @move(%g: tensor<64x16xf32>, %p: tensor<64x16xf32>, %m: tensor<64x16xf32>, %v: tensor<64x16xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>) attributes {plan.kernel, plan.rows = 64 : i64} {
  %a = nn.add %m, %g : tensor<64x16xf32>
  %b = nn.add %v, %g : tensor<64x16xf32>
  %c = nn.add %p, %a : tensor<64x16xf32>
  return %c, %a, %b : tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>
}
func.func private @few(%m: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {plan.kernel, plan.rows = 16 : i64} {
  %n = nn.neg %m : tensor<16x16xf32>
  return %n : tensor<16x16xf32>
}
func.func private @norm(%m: tensor<64x16xf32>) -> tensor<64xf32> attributes {plan.kernel, plan.rows = 64 : i64} {
  %s = nn.reduce sum %m dims [1] : (tensor<64x16xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
plan.program @one stage 0 ranks 1 {
  plan.buffer @p : state device 4096 bytes source @p
  plan.buffer @m : state device 4096 bytes source @m
  plan.buffer @v : state device 4096 bytes source @v
  plan.buffer @g : activation device 4096 bytes
  plan.buffer @n : activation device 256 bytes
  plan.body @make engine cpu {
    plan.fill @g[64x16xf32] with 1.0
  }
  plan.body @update engine cpu {
    plan.kernel @move(@g[64x16xf32], @p[64x16xf32], @m[64x16xf32], @v[64x16xf32]) -> @p[64x16xf32], @m[64x16xf32], @v[64x16xf32] rows 64
  }
  plan.body @mixed engine cpu {
    plan.kernel @few(@m[16x16xf32 at 3072]) -> @m[16x16xf32 at 3072] rows 16 {plan.tile = [@m]}
    plan.kernel @norm(@m[64x16xf32]) -> @n[64xf32] rows 64
    plan.kernel @few(@m[16x16xf32]) -> @m[16x16xf32] rows 16 {plan.tile = [@m]}
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @make
      plan.run @update
    }
  }
}
