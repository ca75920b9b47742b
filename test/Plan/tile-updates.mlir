// RUN: acc-opt %s --split-input-file --plan-mark-offloaded=optimizer=host --plan-tile-updates="tile=100 target=cpu:x86-64-v3" | FileCheck %s
// RUN: acc-opt %s --split-input-file --plan-mark-offloaded=optimizer=nvme --plan-tile-updates="tile=7680 target=cpu:x86-64-v3" | FileCheck %s --check-prefix=FILE
// RUN: acc-opt %s --split-input-file --plan-mark-offloaded=optimizer=host --plan-tile-updates="tile=0 target=cpu:x86-64-v3" -o %t.whole
// RUN: acc-opt %s --split-input-file --plan-mark-offloaded=optimizer=host -o %t.marked && diff %t.whole %t.marked
// RUN: acc-opt %s --split-input-file --plan-tile-updates="tile=1 target=cpu:x86-64-v3" -o %t.none && acc-opt %s --split-input-file -o %t.same && diff %t.none %t.same
// RUN: not acc-opt %s --split-input-file --plan-tile-updates=tile=-1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: expected tiles of at least one element, or 0 (whole states), found -1

// Three tiles of as many rows as can be, of a state of 20 x 12 where 100 elements have 8
// rows: 7, 7 and 6. Numbers are repeated in each tile, a shape that only names rows is gone.
// What no state is behind stays, and so does what a tile holds.
// CHECK-LABEL: func.func private @update_tile_0(
// CHECK-SAME: tensor<6x12xf32>
// CHECK-LABEL: func.func private @update_tile(
// CHECK-SAME: %{{.*}}: tensor<7x12xf32>, %[[M:.*]]: tensor<7x12xf32>, %[[RATE:.*]]: tensor<1xf32>) -> (tensor<7x12xf32>, tensor<7x12xf32>) attributes {plan.kernel, plan.rows = 7 : i64}
// CHECK: nn.constant dense<1.000000e-01> : tensor<7x12xf32>
// CHECK: nn.broadcast %[[RATE]] : (tensor<1xf32>) -> tensor<7x12xf32>
// CHECK-NOT: nn.reshape
// CHECK: return
// CHECK-NOT: func.func private @update(
// CHECK: func.func private @norm(
// CHECK-LABEL: plan.body @update
// CHECK-NEXT: plan.kernel @update_tile(@g[7x12xf32], @m[7x12xf32], @rate[1xf32]) -> @m[7x12xf32], @p[7x12xf32 at dp*960] rows 7 {plan.tile = [@m]}
// CHECK-NEXT: plan.kernel @update_tile(@g[7x12xf32 at 336], @m[7x12xf32 at 336], @rate[1xf32]) -> @m[7x12xf32 at 336], @p[7x12xf32 at 336 + dp*960] rows 7 {plan.tile = [@m]}
// CHECK-NEXT: plan.kernel @update_tile_0(@g[6x12xf32 at 672], @m[6x12xf32 at 672], @rate[1xf32]) -> @m[6x12xf32 at 672], @p[6x12xf32 at 672 + dp*960] rows 6 {plan.tile = [@m]}
// CHECK-NEXT: plan.kernel @same(@g[20x12xf32]) -> @g[20x12xf32] rows 20{{$}}
// CHECK-NEXT: plan.kernel @small(@few[9xf32]) -> @few[9xf32] rows 1{{$}}

// Of one dimension rows are made: as long as they can be, of at most a tile.
// CHECK-NEXT: plan.kernel @lines_tile(@line[1x75xf32]) -> @line[1x75xf32] rows 1 {plan.tile = [@line]}
// CHECK-NEXT: plan.kernel @lines_tile(@line[1x75xf32 at 300]) -> @line[1x75xf32 at 300] rows 1 {plan.tile = [@line]}
// CHECK-NEXT: plan.kernel @lines_tile(@line[1x75xf32 at 600]) -> @line[1x75xf32 at 600] rows 1 {plan.tile = [@line]}

// Kernels behind each other on the same tiles: each tile has all of them.
// CHECK-LABEL: plan.body @twice
// CHECK-NEXT: plan.kernel @same_tile(@m[7x12xf32]) -> @g[7x12xf32]
// CHECK-NEXT: plan.kernel @same_tile(@m[7x12xf32]) -> @m[7x12xf32]
// CHECK-NEXT: plan.kernel @same_tile(@m[7x12xf32 at 336]) -> @g[7x12xf32 at 336]
// CHECK-NEXT: plan.kernel @same_tile(@m[7x12xf32 at 336]) -> @m[7x12xf32 at 336]
// CHECK-COUNT-2: plan.kernel @same_tile_{{[0-9]}}(@m[6x12xf32 at 672])
// But not where one reads what a tile of another has written elsewhere.
// CHECK-NEXT: plan.fill
// CHECK-NEXT: plan.kernel @same_tile(@m[7x12xf32]) -> @p[7x12xf32 at 48]
// CHECK-NEXT: plan.kernel @same_tile(@m[7x12xf32 at 336]) -> @p[7x12xf32 at 384]
// CHECK-NEXT: plan.kernel @same_tile_{{[0-9]}}(@m[6x12xf32 at 672]) -> @p[6x12xf32 at 720]
// CHECK-NEXT: plan.kernel @shift_tile(@m[7x12xf32], @p[7x12xf32]) -> @m[7x12xf32]

// What has anything else to do with a state stays one, and says why.
// CHECK-LABEL: plan.body @whole
// CHECK-NEXT: plan.kernel @norm(@m[20x12xf32]) -> @n[20xf32] rows 20
// CHECK-SAME: {plan.staged_whole = {states = ["m"], why = "'nn.reduce' does not compute element by element"}}
// CHECK-NEXT: plan.kernel @columns(@row[12xf32], @m[20x12xf32]) -> @m[20x12xf32] rows 20
// CHECK-SAME: why = "'nn.broadcast' has a tensor of another size than the state"
// CHECK-NEXT: plan.kernel @same(@m[20x12xf32 strides [1, 20]]) -> @g[20x12xf32] rows 20
// CHECK-SAME: why = "elements of it lie apart"
// CHECK-NEXT: plan.kernel @shift(@m[20x12xf32], @p[20x12xf32]) -> @p[20x12xf32 at 48] rows 20
// CHECK-SAME: why = "it writes elsewhere in what it reads"
// CHECK-NEXT: plan.kernel @primes(@prime[211xf32]) -> @prime[211xf32] rows 1
// CHECK-SAME: why = "it has no rows of one length that are a tile at most"

// What one command needs all of is there, so that no other takes it in tiles; what else it touches is cut.
// CHECK-LABEL: plan.body @beside
// CHECK-NEXT: plan.kernel @shift_tile(@m[7x12xf32], @o[7x12xf32]) -> @o[7x12xf32] rows 7 {plan.tile = [@o]}
// CHECK-COUNT-2: {plan.tile = [@o]}
// CHECK-NEXT: plan.kernel @same(@m[20x12xf32]) -> @m[20x12xf32] rows 20{{$}}
// CHECK-NEXT: plan.gemm @m[20x12xf32], @w[12x4xf32] -> @y[20x4xf32]
// CHECK-SAME: {plan.staged_whole = {states = ["m"], why = "'plan.gemm' beside its update needs it so"}}
// CHECK-NEXT: plan.copy @g[20x12xf32] -> @o[20x12xf32]

// Sectors of a file that two tiles would share are one tile's: rows of 768 bytes in multiples
// of 16, where 36 of 72 would be even and 40 a tile.
// FILE-LABEL: plan.body @large
// FILE-NEXT: plan.kernel @large_tile(@t[32x192xf32]) -> @t[32x192xf32] rows 32
// FILE-NEXT: plan.kernel @large_tile(@t[32x192xf32 at 24576]) -> @t[32x192xf32 at 24576] rows 32
// FILE-NEXT: plan.kernel @large_tile_0(@t[8x192xf32 at 49152]) -> @t[8x192xf32 at 49152] rows 8
dist.mesh @mesh ["dp" = 2]
nn.state moment @m : tensor<20x12xf32> = dense<0.0>
nn.state moment @o : tensor<20x12xf32> = dense<0.0>
nn.state moment @few : tensor<9xf32> = dense<0.0>
nn.state moment @prime : tensor<211xf32> = dense<0.0>
nn.state moment @line : tensor<225xf32> = dense<0.0>
func.func private @update(%g: tensor<20x12xf32>, %m: tensor<20x12xf32>, %rate: tensor<1xf32>) -> (tensor<20x12xf32>, tensor<20x12xf32>) attributes {plan.kernel, plan.rows = 20 : i64} {
  %c = nn.constant dense<0.1> : tensor<20x12xf32>
  %a = nn.mul %m, %c : tensor<20x12xf32>
  %b = nn.add %a, %g : tensor<20x12xf32>
  %r = nn.broadcast %rate : (tensor<1xf32>) -> tensor<20x12xf32>
  %flat = nn.reshape %b : (tensor<20x12xf32>) -> tensor<240xf32>
  %back = nn.reshape %flat : (tensor<240xf32>) -> tensor<20x12xf32>
  %d = nn.mul %back, %r : tensor<20x12xf32>
  return %b, %d : tensor<20x12xf32>, tensor<20x12xf32>
}
func.func private @norm(%m: tensor<20x12xf32>) -> tensor<20xf32> attributes {plan.kernel, plan.rows = 20 : i64} {
  %s = nn.reduce sum %m dims [1] : (tensor<20x12xf32>) -> tensor<20xf32>
  return %s : tensor<20xf32>
}
func.func private @columns(%row: tensor<12xf32>, %m: tensor<20x12xf32>) -> tensor<20x12xf32> attributes {plan.kernel, plan.rows = 20 : i64} {
  %r = nn.broadcast %row : (tensor<12xf32>) -> tensor<20x12xf32>
  %n = nn.add %r, %m : tensor<20x12xf32>
  return %n : tensor<20x12xf32>
}
func.func private @same(%m: tensor<20x12xf32>) -> tensor<20x12xf32> attributes {plan.kernel, plan.rows = 20 : i64} {
  %n = nn.neg %m : tensor<20x12xf32>
  return %n : tensor<20x12xf32>
}
func.func private @shift(%m: tensor<20x12xf32>, %p: tensor<20x12xf32>) -> tensor<20x12xf32> attributes {plan.kernel, plan.rows = 20 : i64} {
  %n = nn.add %m, %p : tensor<20x12xf32>
  return %n : tensor<20x12xf32>
}
func.func private @small(%m: tensor<9xf32>) -> tensor<9xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.neg %m : tensor<9xf32>
  return %n : tensor<9xf32>
}
func.func private @primes(%m: tensor<211xf32>) -> tensor<211xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.neg %m : tensor<211xf32>
  return %n : tensor<211xf32>
}
func.func private @lines(%m: tensor<225xf32>) -> tensor<225xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.neg %m : tensor<225xf32>
  return %n : tensor<225xf32>
}
plan.program @p stage 0 ranks 2 {
  plan.buffer @m : state device 960 bytes source @m
  plan.buffer @o : state device 960 bytes source @o
  plan.buffer @w : activation device 192 bytes
  plan.buffer @y : activation device 320 bytes
  plan.buffer @few : state device 36 bytes source @few
  plan.buffer @prime : state device 844 bytes source @prime
  plan.buffer @line : state device 900 bytes source @line
  plan.buffer @g : activation device 960 bytes
  plan.buffer @p : activation device 1920 bytes
  plan.buffer @n : activation device 80 bytes
  plan.buffer @row : activation device 48 bytes
  plan.buffer @rate : activation device 4 bytes
  plan.body @update engine cpu {
    plan.kernel @update(@g[20x12xf32], @m[20x12xf32], @rate[1xf32]) -> @m[20x12xf32], @p[20x12xf32 at dp*960] rows 20
    plan.kernel @same(@g[20x12xf32]) -> @g[20x12xf32] rows 20
    plan.kernel @small(@few[9xf32]) -> @few[9xf32] rows 1
    plan.kernel @lines(@line[225xf32]) -> @line[225xf32] rows 1
  }
  plan.body @twice engine cpu {
    plan.kernel @same(@m[20x12xf32]) -> @g[20x12xf32] rows 20
    plan.kernel @same(@m[20x12xf32]) -> @m[20x12xf32] rows 20
    plan.fill @rate[1xf32] with 1.0
    plan.kernel @same(@m[20x12xf32]) -> @p[20x12xf32 at 48] rows 20
    plan.kernel @shift(@m[20x12xf32], @p[20x12xf32]) -> @m[20x12xf32] rows 20
  }
  plan.body @whole engine cpu {
    plan.kernel @norm(@m[20x12xf32]) -> @n[20xf32] rows 20
    plan.kernel @columns(@row[12xf32], @m[20x12xf32]) -> @m[20x12xf32] rows 20
    plan.kernel @same(@m[20x12xf32 strides [1, 20]]) -> @g[20x12xf32] rows 20
    plan.kernel @shift(@m[20x12xf32], @p[20x12xf32]) -> @p[20x12xf32 at 48] rows 20
    plan.kernel @primes(@prime[211xf32]) -> @prime[211xf32] rows 1
  }
  plan.body @beside engine cpu {
    plan.kernel @shift(@m[20x12xf32], @o[20x12xf32]) -> @o[20x12xf32] rows 20
    plan.kernel @same(@m[20x12xf32]) -> @m[20x12xf32] rows 20
    plan.gemm @m[20x12xf32], @w[12x4xf32] -> @y[20x4xf32]
    plan.copy @g[20x12xf32] -> @o[20x12xf32]
  }
}

// -----

nn.state moment @t : tensor<72x192xf32> = dense<0.0>
func.func private @large(%m: tensor<72x192xf32>) -> tensor<72x192xf32> attributes {plan.kernel, plan.rows = 72 : i64} {
  %n = nn.neg %m : tensor<72x192xf32>
  return %n : tensor<72x192xf32>
}
plan.program @p stage 0 ranks 1 {
  plan.buffer @t : state device 55296 bytes source @t
  plan.body @large engine cpu {
    plan.kernel @large(@t[72x192xf32]) -> @t[72x192xf32] rows 72
  }
}
