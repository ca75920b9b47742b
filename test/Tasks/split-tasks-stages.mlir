// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=pp=2 --micro-batches=8 --compile-to=local -o %t/1f1b.mlir
// RUN: FileCheck %s < %t/1f1b.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=pp=2 --micro-batches=8 --schedule=gpipe --compile-to=local -o %t/gpipe.mlir
// RUN: FileCheck %s --check-prefix=GPIPE < %t/gpipe.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=pp=2 --compile-to=local -o %t/one.mlir
// RUN: FileCheck %s --check-prefix=ONE < %t/one.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --compile-to=train -o %t/train.mlir
// RUN: acc-eval %t/1f1b.mlir --compare %t/train.mlir --tolerance 1e-14
// RUN: acc-eval %t/gpipe.mlir --compare %t/train.mlir --tolerance 1e-14
// RUN: acc-eval %t/one.mlir --compare %t/train.mlir --tolerance 1e-14

// A chunk's tasks are its stage's. What is cut is an edge: of the forward to the
// next stage, of the backward to the one before. What runs once goes in rounds: each stage's squares, then the norm of
// all on stage 0, then the update of stage 1.
// CHECK-LABEL: func.func private @forward_0(
// CHECK: dist.task = #dist.task<forward stage 0>
// CHECK-LABEL: func.func private @forward_1(
// CHECK: dist.task = #dist.task<forward stage 1>
// CHECK-LABEL: func.func private @backward_0(
// CHECK: nn.state = @"accumulator/w0", nn.write = #nn<write accumulate_sum>
// CHECK-LABEL: func.func private @backward_1(
// CHECK: nn.state = @"accumulator/w1", nn.write = #nn<write accumulate_sum>
// Squares are summed at once. New weights, which wait for the norm, are made behind it.
// CHECK-LABEL: func.func private @update_0(
// CHECK-NOT: nn.sub
// CHECK: nn.reduce sum
// CHECK-NOT: nn.sub
// CHECK-LABEL: func.func private @update_1(
// CHECK-NOT: nn.sub
// CHECK-LABEL: func.func private @update_0_round_1(
// CHECK-NOT: nn.reduce
// CHECK: nn.output = "loss"
// CHECK: dist.task = #dist.task<update stage 0 round 1>
// CHECK-LABEL: func.func private @update_1_round_2(
// CHECK: nn.state = @w1
// CHECK: dist.task = #dist.task<update stage 1 round 2>

// The first two micro-batches of a task and the last two are outside of loops: what
// has been sent and received is alike in all turns.
// CHECK-LABEL: dist.schedule @step_schedule entry @step micro_batches 8
// CHECK-NEXT: dist.stage 0 {
// CHECK-NEXT:   dist.run @forward_0[0]
// CHECK-NEXT:   dist.run @forward_0[1]
// CHECK-NEXT:   dist.run @backward_0[0]
// CHECK-NEXT:   dist.run @forward_0[2]
// CHECK-NEXT:   dist.run @backward_0[1]
// CHECK-NEXT:   dist.loop 3 {
// CHECK-NEXT:     dist.run @forward_0[turn + 3]
// CHECK-NEXT:     dist.run @backward_0[turn + 2]
// CHECK-NEXT:   }
// CHECK-NEXT:   dist.run @forward_0[6]
// CHECK-NEXT:   dist.run @backward_0[5]
// CHECK-NEXT:   dist.run @forward_0[7]
// CHECK-NEXT:   dist.run @backward_0[6]
// CHECK-NEXT:   dist.run @backward_0[7]
// CHECK-NEXT:   dist.run @update_0[0]
// CHECK-NEXT:   dist.run @update_0_round_1[0]
// CHECK-NEXT: }
// CHECK-NEXT: dist.stage 1 {
// CHECK-NEXT:   dist.run @forward_1[0]
// CHECK-NEXT:   dist.run @backward_1[0]
// CHECK-NEXT:   dist.run @forward_1[1]
// CHECK-NEXT:   dist.run @backward_1[1]
// CHECK-NEXT:   dist.loop 4 {
// CHECK-NEXT:     dist.run @forward_1[turn + 2]
// CHECK-NEXT:     dist.run @backward_1[turn + 2]
// CHECK-NEXT:   }
// CHECK-NEXT:   dist.run @forward_1[6]
// CHECK-NEXT:   dist.run @backward_1[6]
// CHECK-NEXT:   dist.run @forward_1[7]
// CHECK-NEXT:   dist.run @backward_1[7]
// CHECK-NEXT:   dist.run @update_1[0]
// CHECK-NEXT:   dist.run @update_1_round_2[0]
// CHECK-NEXT: }
// CHECK: dist.edge @forward_0 0 -> @forward_1 0
// CHECK: dist.edge @backward_1 0 -> @backward_0 1
// CHECK: dist.edge @update_1 {{[0-9]+}} -> @update_0_round_1
// CHECK: dist.edge @update_0_round_1 {{[0-9]+}} -> @update_1_round_2

// GPIPE-LABEL: dist.schedule @step_schedule entry @step micro_batches 8
// GPIPE-NEXT: dist.stage 0 {
// GPIPE-NEXT:   dist.run @forward_0[0]
// GPIPE-NEXT:   dist.run @forward_0[1]
// GPIPE-NEXT:   dist.loop 4 {
// GPIPE-NEXT:     dist.run @forward_0[turn + 2]
// GPIPE-NEXT:   }
// GPIPE-NEXT:   dist.run @forward_0[6]
// GPIPE-NEXT:   dist.run @forward_0[7]
// GPIPE-NEXT:   dist.run @backward_0[0]
// GPIPE-NEXT:   dist.run @backward_0[1]
// GPIPE-NEXT:   dist.loop 4 {
// GPIPE-NEXT:     dist.run @backward_0[turn + 2]
// GPIPE-NEXT:   }
// GPIPE-NEXT:   dist.run @backward_0[6]
// GPIPE-NEXT:   dist.run @backward_0[7]

// Of one micro-batch, what is reported of the last stage waits for the update, and so
// does the question whether its loss is finite: what a backward sends on waits for neither.
// ONE-LABEL: func.func private @backward_0(
// ONE-NOT: nn.compare
// ONE-NOT: i1
// ONE-LABEL: func.func private @backward_1(
// ONE-NOT: nn.compare
// ONE-LABEL: func.func private @update_0(
// ONE-LABEL: func.func private @update_1(
// ONE: nn.compare lt
// ONE-LABEL: dist.schedule @step_schedule entry @step micro_batches 1
// ONE: dist.stage 0 {
// ONE-NEXT: dist.run @forward_0[0]
// ONE-NEXT: dist.run @backward_0[0]
// ONE-NEXT: dist.run @update_0[0]
// ONE-NEXT: dist.run @update_0_round_1[0]
module attributes {accel.phase = "nn"} {
nn.state @w0 : tensor<8x8xf32> = dense<0.5>
nn.state @w1 : tensor<8x8xf32> = dense<0.25>
func.func @main(%x: tensor<16x8xf32> {nn.input = "x"}, %w0: tensor<8x8xf32> {nn.state = @w0},
                %w1: tensor<8x8xf32> {nn.state = @w1})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w0 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %1 = nn.tanh %0 : tensor<16x8xf32>
  %2 = nn.matmul %1, %w1 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %3 = nn.mul %2, %0 : tensor<16x8xf32>
  %4 = nn.reduce sum %3 dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
}
