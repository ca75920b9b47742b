// Bytes are told apart one by one: columns of the same rows, a rank's own piece,
// what was packed.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{edit} =
// DEFINE: %{prefix} =
// DEFINE: %{refused} = sed '%{edit}' %t/plan.mlir > %t/m.mlir && not diff -q %t/plan.mlir %t/m.mlir && \
// DEFINE:   not acc-opt %t/m.mlir --plan-verify-equivalence=local=%t/local.mlir -o %t/none.mlir 2>&1 | FileCheck %s --check-prefix=%{prefix}
// RUN: acc-opt %t/plan.mlir --plan-verify-equivalence=local=%t/local.mlir -o /dev/null

// A column that nobody writes; one that is written over another.
// REDEFINE: %{edit} = /plan.copy <@y /d
// REDEFINE: %{prefix} = GAP
// RUN: %{refused}
// GAP: error: 'plan.copy' op does not follow from the local program: reads bytes of @c that hold no 'f32' which this run, or its beginning, has put there
// REDEFINE: %{edit} = s/-> <@c + 16 /-> <@c + 12 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/<@c + 0 axes \[<"tp" \* 16>\]/<@c + 0 axes [<"dp" * 16>]/
// REDEFINE: %{prefix} = PIECE
// RUN: %{refused}
// PIECE: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'o'

// A rank's own piece: read where it was written, and nowhere else.
// REDEFINE: %{edit} = /own/s/<@r + 0 axes \[<"tp" \* 16>\]/<@r + 0 axes [<"dp" * 16>]/
// REDEFINE: %{prefix} = OWN
// RUN: %{refused}
// OWN: error: 'plan.write' op does not follow from the local program: reads bytes of @r that hold no 'f32'
// REDEFINE: %{edit} = /own/s/<@r + 0 axes \[<"tp" \* 16>\]/<@r + 0/
// RUN: %{refused}

// Packed weights, and bytes of another type.
// REDEFINE: %{edit} = s/form = {m = 2 : i64}/form = {m = 4 : i64}/
// REDEFINE: %{prefix} = PACKED
// RUN: %{refused}
// PACKED: error: 'plan.gemm' op does not follow from the local program: expected in @packed what was packed for its form, rows and shape of b
// REDEFINE: %{edit} = s/plan.pack <@w + 0 : f32\[4, 4\] strides\[4, 1\]>/plan.pack <@w + 0 : f32[4, 4] strides[1, 4]>/
// REDEFINE: %{prefix} = TURNED
// RUN: %{refused}
// TURNED: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'p'
// TURNED: note: the first command that computes what the local program does not
// REDEFINE: %{edit} = s/plan.gemm <@x + 0 : f32/plan.gemm <@packed + 0 : f32/
// REDEFINE: %{prefix} = TYPE
// RUN: %{refused}
// TYPE: error: 'plan.gemm' op does not follow from the local program: reads bytes of @packed that hold no 'f32'

// What a command writes, it does not read as something else.
// REDEFINE: %{edit} = s/plan.copy <@x + 0 : f32\[2, 4\] strides\[4, 1\]> -> <@c + 0 /plan.copy <@c + 4 : f32[2, 4] strides[8, 1]> -> <@c + 0 /
// REDEFINE: %{prefix} = COPY
// RUN: %{refused}
// COPY: error: 'plan.copy' op does not follow from the local program: {{reads bytes of @c|writes bytes that it still reads}}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  nn.state @w : tensor<4x4xf32> = dense<0.5>
  func.func @main(%x: tensor<2x4xf32> {nn.input = "x"}, %y: tensor<2x4xf32> {nn.input = "y"}, %w: tensor<4x4xf32> {nn.state = @w})
      -> (tensor<2x8xf32> {nn.output = "c"}, tensor<2x4xf32> {nn.output = "o"}, tensor<2x4xf32> {nn.output = "p"}, tensor<2x4xf32> {nn.output = "own"}) attributes {nn.entry} {
    %c = nn.concat %x, %y dim 1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
    %o = dist.all_slice %c over @m {tp} dim 1 : (tensor<2x8xf32>) -> tensor<2x4xf32>
    %p = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %c, %o, %p, %y : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  }
}
//--- plan.mlir
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  nn.state @w : tensor<4x4xf32> = dense<0.5>
  plan.program @main stage 0 ranks 4 mesh @m {
    plan.arena device bytes 512 alignment 64 reserve 0
    plan.buffer @w role activation space device offset 0 bytes 64 slots 1 stride 64
    plan.buffer @packed role packed space device offset 64 bytes 64 slots 1 stride 64
    plan.buffer @x role input space device offset 128 bytes 32 slots 1 stride 32
    plan.buffer @y role input space device offset 192 bytes 32 slots 1 stride 32
    plan.buffer @c role output space device offset 256 bytes 64 slots 1 stride 64
    plan.buffer @r role activation space device offset 320 bytes 64 slots 1 stride 64
    plan.buffer @p role output space device offset 384 bytes 32 slots 1 stride 32
    plan.body @load_states engine cpu {
      plan.read state "w" <[4, 4] by [[], []]> -> <@w + 0 : f32[4, 4] strides[4, 1]>
      plan.pack <@w + 0 : f32[4, 4] strides[4, 1]> -> <@packed + 0 : i8[64] strides[1]> {form = {m = 2 : i64}, plan.releases = [#plan.view<@w + 0 : i8[64] strides[1]>]}
    }
    plan.body @forward engine cpu {
      plan.read input "x" <[2, 4] by [[], []]> -> <@x + 0 : f32[2, 4] strides[4, 1]>
      plan.read input "y" <[2, 4] by [[], []]> -> <@y + 0 : f32[2, 4] strides[4, 1]>
      plan.copy <@x + 0 : f32[2, 4] strides[4, 1]> -> <@c + 0 : f32[2, 4] strides[8, 1]>
      plan.copy <@y + 0 : f32[2, 4] strides[4, 1]> -> <@c + 16 : f32[2, 4] strides[8, 1]>
      plan.copy <@c + 16 : f32[2, 4] strides[8, 1]> -> <@r + 0 axes [<"tp" * 16>] : f32[2, 4] strides[8, 1]>
      plan.gemm <@x + 0 : f32[2, 4] strides[4, 1]>, <@w + 0 : f32[4, 4] strides[4, 1]> -> <@p + 0 : f32[2, 4] strides[4, 1]> {form = {}, packed = #plan.view<@packed + 0 : i8[64] strides[1]>}
      plan.write <@c + 0 : f32[2, 8] strides[8, 1]> -> output "c" <[2, 8] by [[], []]>
      plan.write <@c + 0 axes [<"tp" * 16>] : f32[2, 4] strides[8, 1]> -> output "o" <[2, 4] by [[], []]>
      plan.write <@p + 0 : f32[2, 4] strides[4, 1]> -> output "p" <[2, 4] by [[], []]>
      plan.write <@r + 0 axes [<"tp" * 16>] : f32[2, 4] strides[8, 1]> -> output "own" <[2, 4] by [[], []]>
    }
    plan.entry @load {
      plan.segment cpu {
        plan.run @load_states micro_batch 0
      }
    }
    plan.entry @main {
      plan.segment cpu {
        plan.run @forward micro_batch 0
      }
    }
  }
}
