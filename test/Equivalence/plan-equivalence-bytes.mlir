// Bytes are told apart one by one: columns of the same rows, a rank's own piece,
// what was packed.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{edit} =
// DEFINE: %{prefix} =
// DEFINE: %{refused} = sed '%{edit}' %t/plan.mlir > %t/m.mlir && not diff -q %t/plan.mlir %t/m.mlir && \
// DEFINE:   not acc-opt %t/m.mlir --plan-verify-equivalence=local=%t/local.mlir -o %t/none.mlir 2>&1 | FileCheck %s --check-prefix=%{prefix}
// RUN: acc-opt %t/plan.mlir --plan-verify-equivalence=local=%t/local.mlir -o /dev/null

// A column that nobody writes; one that is written over another.
// REDEFINE: %{edit} = /plan.copy @y\[/d
// REDEFINE: %{prefix} = GAP
// RUN: %{refused}
// GAP: error: 'plan.copy' op does not follow from the local program: reads bytes of @c that hold no 'f32' which this run, or its beginning, has put there
// REDEFINE: %{edit} = s/-> @c\[2x4xf32 at 16 /-> @c[2x4xf32 at 12 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/@c\[2x4xf32 at tp/@c[2x4xf32 at dp/
// REDEFINE: %{prefix} = PIECE
// RUN: %{refused}
// PIECE: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'o'

// A rank's own piece: read where it was written, and nowhere else.
// REDEFINE: %{edit} = /own/s/at tp/at dp/
// REDEFINE: %{prefix} = OWN
// RUN: %{refused}
// OWN: error: 'plan.write' op does not follow from the local program: reads bytes of @r that hold no 'f32'
// REDEFINE: %{edit} = /own/s/ at tp\*16//
// RUN: %{refused}

// A part of it is read by ranks that have no more than that, and not beyond it.
// REDEFINE: %{edit} = s/tp\*32 + dp\*16/tp*32 + dp*32/
// REDEFINE: %{prefix} = BEYOND
// RUN: %{refused}
// BEYOND: error: 'plan.write' op does not follow from the local program: reads bytes of @d that hold no 'f32'
// REDEFINE: %{edit} = s/@d\[1x4xf32 at tp\*32 + dp\*16\]/@d[1x4xf32 at tp*16 + dp*16]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/@d\[1x4xf32 at tp\*32 + dp\*16\]/@d[1x4xf32 at tp*32]/
// REDEFINE: %{prefix} = OTHER
// RUN: %{refused}
// OTHER: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'part'

// Of a piece with gaps what lies side by side is not its own.
// REDEFINE: %{edit} = s/@d\[1x4xf32 at tp\*32 + dp\*16\]/@r[1x4xf32 at tp*16 + dp*16]/
// REDEFINE: %{prefix} = GAPS
// RUN: %{refused}
// GAPS: error: 'plan.write' op does not follow from the local program: reads bytes of @r that hold no 'f32'

// Packed weights, and bytes of another type.
// REDEFINE: %{edit} = s/form {m = 2}/form {m = 4}/
// REDEFINE: %{prefix} = PACKED
// RUN: %{refused}
// PACKED: error: 'plan.gemm' op does not follow from the local program: expected in @packed what was packed for its form, rows and shape of b
// REDEFINE: %{edit} = s/plan.pack @w\[4x4xf32\]/plan.pack @w[4x4xf32 strides [1, 4]]/
// REDEFINE: %{prefix} = TURNED
// RUN: %{refused}
// TURNED: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'p'
// TURNED: note: the first command that computes what the local program does not
// REDEFINE: %{edit} = s/plan.gemm @x/plan.gemm @packed/
// REDEFINE: %{prefix} = TYPE
// RUN: %{refused}
// TYPE: error: 'plan.gemm' op does not follow from the local program: reads bytes of @packed that hold no 'f32'

// What a command writes, it does not read as something else.
// REDEFINE: %{edit} = s/plan.copy @x\[2x4xf32\] -> @c/plan.copy @c[2x4xf32 at 4 strides [8, 1]] -> @c/
// REDEFINE: %{prefix} = COPY
// RUN: %{refused}
// COPY: error: 'plan.copy' op does not follow from the local program: {{reads bytes of @c|writes bytes that it still reads}}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  nn.state @w : tensor<4x4xf32> = dense<0.5>
  func.func @main(%x: tensor<2x4xf32> {nn.input = "x"}, %y: tensor<2x4xf32> {nn.input = "y"}, %w: tensor<4x4xf32> {nn.state = @w})
      -> (tensor<2x8xf32> {nn.output = "c"}, tensor<2x4xf32> {nn.output = "o"}, tensor<2x4xf32> {nn.output = "p"}, tensor<2x4xf32> {nn.output = "own"}, tensor<1x4xf32> {nn.output = "part"}) attributes {nn.entry} {
    %c = nn.concat %x, %y dim 1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
    %o = dist.all_slice %c over @m {tp} dim 1 : (tensor<2x8xf32>) -> tensor<2x4xf32>
    %p = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %part = dist.all_slice %y over @m {dp} dim 0 : (tensor<2x4xf32>) -> tensor<1x4xf32>
    return %c, %o, %p, %y, %part : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<1x4xf32>
  }
}
//--- plan.mlir
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  nn.state @w : tensor<4x4xf32> = dense<0.5>
  plan.program @main stage 0 ranks 4 mesh @m {
    plan.arena device 512 bytes
    plan.buffer @w : activation device at 0, 64 bytes
    plan.buffer @packed : packed device at 64, 64 bytes
    plan.buffer @x : input device at 128, 32 bytes
    plan.buffer @y : input device at 192, 32 bytes
    plan.buffer @c : output device at 256, 64 bytes
    plan.buffer @r : activation device at 320, 64 bytes
    plan.buffer @p : output device at 384, 32 bytes
    plan.buffer @d : activation device at 416, 96 bytes
    plan.body @load_states engine cpu {
      plan.read state "w" -> @w[4x4xf32]
      plan.pack @w[4x4xf32] -> @packed[64xi8] form {m = 2} releases @w[64xi8]
    }
    plan.body @forward engine cpu {
      plan.read input "x" -> @x[2x4xf32]
      plan.read input "y" -> @y[2x4xf32]
      plan.copy @x[2x4xf32] -> @c[2x4xf32 strides [8, 1]]
      plan.copy @y[2x4xf32] -> @c[2x4xf32 at 16 strides [8, 1]]
      plan.copy @c[2x4xf32 at 16 strides [8, 1]] -> @r[2x4xf32 at tp*16 strides [8, 1]]
      plan.copy @y[2x4xf32] -> @d[2x4xf32 at tp*32]
      plan.write @d[1x4xf32 at tp*32 + dp*16] -> output "part"
      plan.gemm @x[2x4xf32], @w[4x4xf32] packed @packed[64xi8] -> @p[2x4xf32] form {}
      plan.write @c[2x8xf32] -> output "c"
      plan.write @c[2x4xf32 at tp*16 strides [8, 1]] -> output "o"
      plan.write @p[2x4xf32] -> output "p"
      plan.write @r[2x4xf32 at tp*16 strides [8, 1]] -> output "own"
    }
    plan.entry @load {
      plan.segment cpu {
        plan.run @load_states
      }
    }
    plan.entry @forward {
      plan.segment cpu {
        plan.run @forward
      }
    }
  }
}
