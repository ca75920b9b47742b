// What is read of all micro-batches at once, each copies out of there, and what
// they put side by side is written at once: each has its own place, in which
// turn of which loop it ever runs.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{edit} =
// DEFINE: %{prefix} =
// DEFINE: %{refused} = sed '%{edit}' %t/plan.mlir > %t/m.mlir && not diff -q %t/plan.mlir %t/m.mlir && \
// DEFINE:   not acc-opt %t/m.mlir --plan-verify-equivalence=local=%t/local.mlir -o %t/none.mlir 2>&1 | FileCheck %s --check-prefix=%{prefix}
// RUN: acc-opt %t/plan.mlir --plan-verify --plan-verify-equivalence=local=%t/local.mlir -o /dev/null

// Another micro-batch's, or some of two; and those of another number of them.
// REDEFINE: %{edit} = s/@xs.2x4xf32 at 0 + mb\*32/@xs[2x4xf32 at 32 + mb*0/
// REDEFINE: %{prefix} = OTHER
// RUN: %{refused}
// REDEFINE: %{edit} = s/@xs.2x4xf32 at 0 + mb\*32/@xs[2x4xf32 at 16 + mb*16/
// RUN: %{refused}
// OTHER: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'y'
// REDEFINE: %{edit} = /plan.read input/s/12x2x4/6x4x4/
// REDEFINE: %{prefix} = COUNT
// RUN: %{refused}
// COUNT: error: 'plan.read' op does not follow from the local program: expected a view of the parts of 12 micro-batches, found one of 6
// REDEFINE: %{edit} = /plan.write/s/12x2x4/6x4x4/
// REDEFINE: %{prefix} = WRITTEN
// RUN: %{refused}
// WRITTEN: error: 'plan.write' op does not follow from the local program: expected a view of the parts of 12 micro-batches, found one of 6
// REDEFINE: %{edit} = s/of .24.mb, 4. -> output/of [24, 4\/mb] -> output/
// REDEFINE: %{prefix} = PART
// RUN: %{refused}
// PART: error: 'plan.write' op does not follow from the local program: expected the part of output 'y' that the task gives

// Places that are not the micro-batches' own: all the same, half as far apart.
// REDEFINE: %{edit} = s/@ys.2x4xf32 at 0 + mb\*32/@ys[2x4xf32/
// REDEFINE: %{prefix} = PLACE
// RUN: %{refused}
// REDEFINE: %{edit} = s/@ys.2x4xf32 at 0 + mb\*32/@ys[2x4xf32 at 0 + mb*16/
// RUN: %{refused}
// PLACE: error: 'plan.write' op does not follow from the local program: expected in @ys what each micro-batch, and nobody else, has put in its place there

// Somebody else writes there: behind the loop, in its turns before and behind
// what they put (another turn's place it may be), as another buffer's bytes; or
// one micro-batch has put nothing yet, or all of them before what is written.
// REDEFINE: %{edit} = /behind the loop/s/.*/plan.run @overwrite/
// RUN: %{refused}
// REDEFINE: %{edit} = /in the loop/s/.*/plan.run @overwrite micro_batch turn/
// RUN: %{refused}
// REDEFINE: %{edit} = s/plan.run @forward micro_batch turn + 1/& plan.run @overwrite micro_batch turn/
// RUN: %{refused}
// REDEFINE: %{edit} = /plan.fill/s/@ys.4xf32 at 368/@late[4xf32/;/behind the loop/s/.*/plan.run @overwrite/
// RUN: %{refused}
// REDEFINE: %{edit} = /@forward micro_batch 11/d
// RUN: %{refused}
// REDEFINE: %{edit} = s/plan.run @forward micro_batch 11/plan.run @write &/
// RUN: %{refused}
// Before anything is put there, it does not matter.
// RUN: sed '/before the loop/s/.*/plan.run @overwrite/' %t/plan.mlir > %t/m.mlir && not diff -q %t/plan.mlir %t/m.mlir
// RUN: acc-opt %t/m.mlir --plan-verify-equivalence=local=%t/local.mlir -o /dev/null

// Twice, and never.
// REDEFINE: %{edit} = s/plan.run @write/& &/
// REDEFINE: %{prefix} = TWICE
// RUN: %{refused}
// TWICE: error: 'plan.write' op does not follow from the local program: writes output 'y' of micro-batch 0 a second time
// REDEFINE: %{edit} = /plan.run @write/d
// REDEFINE: %{prefix} = NEVER
// RUN: %{refused}
// NEVER: error: 'plan.program' op does not follow from the local program: expected output 'y' of micro-batch 0 to be written
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @m ["mb" = 12]
  nn.state @k : tensor<f32> = dense<1.0>
  func.func private @step(tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, tensor<f32> {nn.state = @k, dist.layout = #dist.layout<@m []>})
      -> (tensor<2x4xf32> {nn.output = "y", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}) attributes {nn.entry = #nn<entry forward>}
  func.func private @forward(%x: tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, %k: tensor<f32> {nn.state = @k, dist.layout = #dist.layout<@m []>})
      -> (tensor<2x4xf32> {nn.output = "y", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}) attributes {dist.task = #dist.task<forward stage 0>} {
    %kb = nn.broadcast %k : (tensor<f32>) -> tensor<2x4xf32>
    %y = nn.mul %x, %kb : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  dist.schedule @s entry @step micro_batches 12 {
    dist.stage 0 {
      dist.run @forward[0]
      dist.loop 10 {
        dist.run @forward[turn + 1]
      }
      dist.run @forward[11]
    }
  }
}
//--- plan.mlir
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["mb" = 12]
  nn.state @k : tensor<f32> = dense<1.0>
  plan.program @step stage 0 ranks 1 mesh @m {
    plan.arena device 160 bytes
    plan.arena pinned 768 bytes
    plan.buffer @xs : input pinned at 0, 384 bytes
    plan.buffer @ys : output pinned at 384, 384 bytes
    plan.buffer @late : output pinned at 640, 32 bytes
    plan.buffer @x : input device at 64, 32 bytes
    plan.buffer @y : activation device at 128, 32 bytes
    plan.buffer @k : state device at 0, 4 bytes source @k part []
    plan.body @load engine cpu {
      plan.read state "k" -> @k[f32]
    }
    plan.body @read engine cpu {
      plan.read input "x" each_micro_batch -> @xs[12x2x4xf32] of [24/mb, 4]
    }
    plan.body @forward engine cpu {
      plan.copy @xs[2x4xf32 at 0 + mb*32] -> @x[2x4xf32]
      plan.kernel @multiply(@x[2x4xf32], @k[f32]) -> @y[2x4xf32] rows 2
      plan.copy @y[2x4xf32] -> @ys[2x4xf32 at 0 + mb*32]
    }
    plan.body @overwrite engine cpu {
      plan.fill @ys[4xf32 at 368] with 1.0
    }
    plan.body @write engine cpu {
      plan.write @ys[12x2x4xf32] of [24/mb, 4] -> output "y" each_micro_batch
    }
    plan.entry @load {
      plan.segment cpu {
        plan.run @load
      }
    }
    plan.entry @forward {
      plan.segment cpu {
        plan.run @read
        // before the loop
        plan.run @forward
      }
      plan.loop 10 {
        plan.segment cpu {
          // in the loop
          plan.run @forward micro_batch turn + 1
        }
      }
      plan.segment cpu {
        plan.run @forward micro_batch 11
        // behind the loop
        plan.run @write
      }
    }
  }
  func.func private @multiply(%x: tensor<2x4xf32>, %k: tensor<f32>) -> tensor<2x4xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
    %kb = nn.broadcast %k : (tensor<f32>) -> tensor<2x4xf32>
    %y = nn.mul %x, %kb : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}
