// Buffers with a copy for each micro-batch in flight: of a loop one turn is
// followed, and what it finds in its copies is what earlier runs on the same
// micro-batch have left, whichever turn that was.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{edit} =
// DEFINE: %{prefix} =
// DEFINE: %{local} = %t/local.mlir
// DEFINE: %{plan} = %t/plan.mlir
// DEFINE: %{refused} = sed '%{edit}' %{plan} > %t/m.mlir && not diff -q %{plan} %t/m.mlir && \
// DEFINE:   not acc-opt %t/m.mlir --plan-verify-equivalence=local=%{local} -o %t/none.mlir 2>&1 | FileCheck %s --check-prefix=%{prefix}
// DEFINE: %{accepted} = sed '%{edit}' %{plan} > %t/m.mlir && \
// DEFINE:   acc-opt %t/m.mlir --plan-verify-equivalence=local=%{local} -o /dev/null
// RUN: acc-opt %t/plan.mlir --plan-verify --plan-verify-equivalence=local=%t/local.mlir -o /dev/null

// More copies than it takes.
// REDEFINE: %{edit} = /@y /s/slots 2/slots 3/
// RUN: %{accepted}

// One copy is enough, as a backward comes before the next forward; not if it comes
// behind it, where two are.
// REDEFINE: %{edit} = /@y /s/slots 2//
// RUN: %{accepted}
// REDEFINE: %{edit} = /@backward micro_batch turn/d;s/@forward micro_batch turn + 1/& plan.run @backward micro_batch turn/
// RUN: %{accepted}
// REDEFINE: %{edit} = /@backward micro_batch turn/d;s/@forward micro_batch turn + 1/& plan.run @backward micro_batch turn/;/@y /s/slots 2//
// REDEFINE: %{prefix} = ONE
// RUN: %{refused}
// ONE: error: 'plan.read' op does not follow from the local program: when a turn ends the bytes of state 'a' do not hold the value that the tasks give it

// The wrong micro-batch, in a turn and behind the loop.
// REDEFINE: %{edit} = s/@backward micro_batch turn/& + 1/
// REDEFINE: %{prefix} = TURN
// RUN: %{refused}
// TURN: error: 'plan.kernel' op does not follow from the local program: reads bytes of @y that hold no 'f32'
// REDEFINE: %{edit} = s/@backward micro_batch 11/@backward micro_batch 10/
// REDEFINE: %{prefix} = LAST
// RUN: %{refused}
// LAST: error: {{.*(does not follow from the local program: reads bytes of @[xy] that hold no 'f32'|leaves something else in its copy of @y than an earlier run of it)}}

// Behind the last turn another micro-batch takes the copy of the one that is left.
// REDEFINE: %{edit} = /at last/s/.*/plan.run @read micro_batch 9 plan.run @forward micro_batch 9/
// RUN: %{refused}

// Bytes of the second copy alone, which half of the micro-batches have, written
// as another buffer's: in each turn between two runs of a micro-batch, behind the
// last turn, in a run that reads it; and where it is not, behind a backward.
// REDEFINE: %{edit} = s/@forward micro_batch turn + 1/& plan.run @overwrite micro_batch turn/
// REDEFINE: %{prefix} = OTHER
// RUN: %{refused}
// OTHER: error: 'plan.kernel' op does not follow from the local program: reads bytes of @y that hold no 'f32'
// REDEFINE: %{edit} = /at last/s/.*/plan.run @overwrite/
// RUN: %{refused}
// REDEFINE: %{edit} = /@y /s/slots 2//;/@other /s/320/256/;s/plan.run @backward micro_batch turn/plan.run @overwrite micro_batch turn &/
// RUN: %{refused}
// REDEFINE: %{edit} = /other backward/s/.*/plan.fill @other[8xf32] with 1.0/
// RUN: %{refused}
// REDEFINE: %{edit} = s/@backward micro_batch turn/& plan.run @overwrite micro_batch turn/
// RUN: %{accepted}
// REDEFINE: %{edit} = /other forward/s/.*/plan.fill @other[8xf32] with 1.0\nplan.copy @other[8xf32] -> @y[8xf32]/
// REDEFINE: %{prefix} = APART
// RUN: %{refused}
// APART: error: 'plan.copy' op does not follow from the local program: writes bytes that it still reads as another element

// A state where the second copy lies.
// REDEFINE: %{edit} = s/state device at 0, 64/state device at 320, 64/
// REDEFINE: %{prefix} = STATE
// RUN: %{refused}
// STATE: error: 'plan.read' op does not follow from the local program: when the loop begins the bytes of state 'a' do not hold the value that the tasks give it

// Copies that lie in each other's, not of the same micro-batch.
// REDEFINE: %{edit} = /@x /s/slots 2/slots 3/
// REDEFINE: %{prefix} = EACH
// RUN: %{refused}
// EACH: error: {{.*}} does not follow from the local program: writes bytes that it still reads as another element

// What the runs of the loop leave is not what the run before it has left.
// REDEFINE: %{edit} = /before the loop/s/.*/plan.run @spoil/
// REDEFINE: %{prefix} = LEAVES
// RUN: %{refused}
// LEAVES: error: 'plan.run' op leaves something else in its copy of @y than an earlier run of it: expected what other micro-batches find in theirs

// All forwards first. The last of them, on micro-batch 0, takes the copy of
// micro-batch 11 where there are eleven: all turns but the last find theirs.
// RUN: sed '/forward\[0\]/d;/@backward\[11\]/d;/dist.loop/,/}/c dist.loop 11 { dist.run @forward[turn + 1] } dist.run @forward[0] dist.loop 12 { dist.run @backward[turn] }' %t/local.mlir > %t/all-local.mlir
// RUN: sed '/before the prologue/,/behind the loop/c plan.loop 11 { plan.segment cpu { plan.run @read micro_batch turn + 1 plan.run @forward micro_batch turn + 1 } } plan.segment cpu { plan.run @read plan.run @forward } plan.loop 12 { plan.segment cpu { plan.run @backward micro_batch turn } }' %t/plan.mlir | sed 's/device at 128/device at 1024/;s/device at 256/device at 2048/;s/slots 2/slots 12/' > %t/all.mlir
// REDEFINE: %{local} = %t/all-local.mlir
// REDEFINE: %{plan} = %t/all.mlir
// REDEFINE: %{edit} =
// RUN: %{accepted}
// REDEFINE: %{edit} = s/slots 12/slots 11/
// REDEFINE: %{prefix} = ELEVEN
// RUN: %{refused}
// ELEVEN: error: {{.*}} does not follow from the local program: reads bytes of @{{[xy]}} that hold no 'f32'

// A task that gives another value in each turn, as a state that the loop writes
// goes into it, is followed under no name.
// RUN: sed 's/^ *%%y = nn.mul %%x, %%kb.*/%%a0 = nn.slice %%a starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>\n%%y = nn.mul %%x, %%a0 : tensor<2x4xf32>/;s/%%k: tensor<f32>) -> tensor<2x4xf32>/%%k: tensor<f32>, %%a: tensor<4x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [4, 4]>}) -> tensor<2x4xf32>/' %t/local.mlir > %t/other-local.mlir
// RUN: not acc-opt %t/plan.mlir --plan-verify-equivalence=local=%t/other-local.mlir -o %t/none.mlir 2>&1 | FileCheck %s --check-prefix=NAMELESS
// NAMELESS: error: {{.*}}gives as result 0 something else than it gave to micro-batches before it

// All forwards, then all backwards, and both write a state. What the forward has
// made of it is not what the backward would make of it, though a turn of either
// loop begins with it.
// RUN: sed 's/ (again)//;/(kept)/d' %t/again.mlir > %t/again-local.mlir && sed '/(again)/d;s/ (kept)//' %t/again.mlir > %t/kept-local.mlir
// RUN: acc-opt %t/kept-local.mlir --local-form-kernels --local-lower-to-plan --plan-keep-in-flight --plan-allocate-buffers -o %t/kept.mlir
// RUN: acc-opt %t/again-local.mlir --local-form-kernels --local-lower-to-plan --plan-keep-in-flight --plan-allocate-buffers -o %t/again-plan.mlir
// RUN: acc-opt %t/kept.mlir --plan-verify-equivalence=local=%t/kept-local.mlir -o /dev/null
// RUN: acc-opt %t/again-plan.mlir --plan-verify-equivalence=local=%t/again-local.mlir -o /dev/null
// RUN: not acc-opt %t/again-plan.mlir --plan-verify-equivalence=local=%t/kept-local.mlir -o %t/none.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: 'plan.read' op does not follow from the local program: when a turn ends the bytes of state 'a' do not hold the value that the tasks give it
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @m ["mb" = 12]
  nn.state @a : tensor<4x4xf32> = dense<0.0>
  nn.state @k : tensor<f32> = dense<1.0>
  func.func private @step(tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, tensor<4x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [4, 4]>}, tensor<f32> {nn.state = @k, dist.layout = #dist.layout<@m []>})
      -> (tensor<4x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [4, 4]>}) attributes {nn.entry = #nn<entry step>}
  func.func private @prepare(%k: tensor<f32> {nn.state = @k, dist.layout = #dist.layout<@m []>}) -> tensor<f32> attributes {dist.task = #dist.task<prepare stage 0>} {
    %n = nn.neg %k : tensor<f32>
    return %n : tensor<f32>
  }
  func.func private @forward(%x: tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, %k: tensor<f32>) -> tensor<2x4xf32> attributes {dist.task = #dist.task<forward stage 0>} {
    %kb = nn.broadcast %k : (tensor<f32>) -> tensor<2x4xf32>
    %y = nn.mul %x, %kb : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func private @backward(%y: tensor<2x4xf32>, %x: tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, %a: tensor<4x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [4, 4]>})
      -> (tensor<4x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [4, 4]>}) attributes {dist.task = #dist.task<backward stage 0>} {
    %z = nn.neg %y : tensor<2x4xf32>
    %g = nn.matmul %x, %z {transpose_lhs} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %s = nn.add %a, %g : tensor<4x4xf32>
    return %s : tensor<4x4xf32>
  }
  dist.schedule @s entry @step micro_batches 12 {
    dist.stage 0 {
      dist.run @prepare[0]
      dist.run @forward[0]
      dist.loop 11 {
        dist.run @backward[turn]
        dist.run @forward[turn + 1]
      }
      dist.run @backward[11]
    }
    dist.edge @prepare 0 -> @forward 1
    dist.edge @forward 0 -> @backward 0
  }
}
//--- plan.mlir
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["mb" = 12]
  nn.state @a : tensor<4x4xf32> = dense<0.0>
  nn.state @k : tensor<f32> = dense<1.0>
  plan.program @step stage 0 ranks 1 mesh @m {
    plan.arena device 452 bytes
    plan.buffer @x : input device at 128, 32 bytes slots 2 stride 64 part [24/mb, 4]
    plan.buffer @y : activation device at 256, 32 bytes slots 2 stride 64
    plan.buffer @other : activation device at 320, 32 bytes
    plan.buffer @t : activation device at 448, 4 bytes
    plan.buffer @a : state device at 0, 64 bytes source @a part [4, 4]
    plan.buffer @k : state device at 64, 4 bytes source @k part []
    plan.body @load engine cpu {
      plan.read state "a" -> @a[4x4xf32]
      plan.read state "k" -> @k[f32]
    }
    plan.body @prepare engine cpu {
      plan.kernel @opposite(@k[f32]) -> @t[f32] rows 1
    }
    plan.body @spoil engine cpu {
      plan.fill @t[f32] with 2.0
    }
    plan.body @overwrite engine cpu {
      plan.fill @other[8xf32] with 1.0
    }
    plan.body @read engine cpu {
      plan.read input "x" -> @x[2x4xf32] of [24/mb, 4]
    }
    plan.body @forward engine cpu {
      // other forward
      plan.kernel @multiply(@x[2x4xf32], @t[f32]) -> @y[2x4xf32] rows 2
    }
    plan.body @backward engine cpu {
      // other backward
      plan.kernel @negate(@y[2x4xf32]) -> @y[2x4xf32] rows 2
      plan.gemm @x[4x2xf32 strides [1, 4]], @y[2x4xf32] -> accumulate @a[4x4xf32]
    }
    plan.entry @load {
      plan.segment cpu {
        plan.run @load
      }
    }
    plan.entry @step {
      plan.segment cpu {
        plan.run @prepare
      }
      // before the prologue
      plan.segment cpu {
        plan.run @read
        plan.run @forward
        // before the loop
      }
      plan.loop 11 {
        plan.segment cpu {
          plan.run @backward micro_batch turn
          plan.run @read micro_batch turn + 1
          plan.run @forward micro_batch turn + 1
        }
      }
      plan.segment cpu {
        // at last
        plan.run @backward micro_batch 11
      }
      // behind the loop
    }
  }
  func.func private @opposite(%k: tensor<f32>) -> tensor<f32> attributes {plan.kernel, plan.rows = 1 : i64} {
    %n = nn.neg %k : tensor<f32>
    return %n : tensor<f32>
  }
  func.func private @multiply(%x: tensor<2x4xf32>, %k: tensor<f32>) -> tensor<2x4xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
    %kb = nn.broadcast %k : (tensor<f32>) -> tensor<2x4xf32>
    %y = nn.mul %x, %kb : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func private @negate(%y: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
    %z = nn.neg %y : tensor<2x4xf32>
    return %z : tensor<2x4xf32>
  }
}
//--- again.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @m ["mb" = 12]
  nn.state @a : tensor<2x4xf32> = dense<0.0>
  func.func private @step(tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, tensor<2x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [2, 4]>})
      -> (tensor<2x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [2, 4]>}) attributes {nn.entry = #nn<entry step>}
  func.func private @forward(%x: tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, %a: tensor<2x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [2, 4]>})
      -> (tensor<2x4xf32>, tensor<2x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [2, 4]>}) attributes {dist.task = #dist.task<forward stage 0>} {
    %y = nn.mul %x, %a : tensor<2x4xf32>
    %s = nn.add %a, %x : tensor<2x4xf32>
    return %y, %s : tensor<2x4xf32>, tensor<2x4xf32>
  }
  func.func private @backward(%y0: tensor<2x4xf32>, %x: tensor<2x4xf32> {nn.input = "x", dist.layout = #dist.layout<@m [24 by {mb}, 4]>}, %a: tensor<2x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [2, 4]>})
      -> (tensor<2x4xf32> {nn.state = @a, dist.layout = #dist.layout<@m [2, 4]>}) attributes {dist.task = #dist.task<backward stage 0>} {
    %y = nn.mul %x, %a : tensor<2x4xf32> (again)
    %s = nn.sub %a, %y : tensor<2x4xf32> (again)
    %s = nn.sub %a, %y0 : tensor<2x4xf32> (kept)
    return %s : tensor<2x4xf32>
  }
  dist.schedule @s entry @step micro_batches 12 {
    dist.stage 0 {
      dist.loop 12 { dist.run @forward[turn] }
      dist.loop 12 { dist.run @backward[turn] }
    }
    dist.edge @forward 0 -> @backward 0
  }
}
