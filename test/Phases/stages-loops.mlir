// Schedules whose loops turn on each other's micro-batches, of a V whose stages have two
// chunks: what all micro-batches share (weights, constants) is taken for no micro-batch's
// own, and stages that would wait for each other post what they receive earlier.
// RUN: rm -rf %t && mkdir %t
// DEFINE: %{train} = acc-opt %s --train --loss=loss --optimizer=sgd --entries=step
// RUN: %{train} --compile-to=train -o %t/train.mlir
// RUN: %{train} --mesh=pp=4 --micro-batches=8 --schedule=dualpipev --compile-to=plan -o %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare=%t/train.mlir --tolerance=1e-6
// RUN: %{train} --mesh=pp=4 --micro-batches=16 --schedule=dualpipev --compile-to=plan -o %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare=%t/train.mlir --tolerance=1e-6
// RUN: %{train} --mesh=pp=4 --micro-batches=16 --schedule=zbv --compile-to=plan -o %t/plan.mlir
// RUN: FileCheck %s < %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare=%t/train.mlir --tolerance=1e-6
// CHECK: plan.program @step_stage_0 stage 0
// CHECK: plan.loop
//
// Stage 0 must send what its second chunk's first backward made before it may run the
// third: stage 3 takes it long before it reads it, or stage 0 would wait.
// RUN: %{train} --mesh=pp=4 --micro-batches=4 --schedule=interleaved:2 --compile-to=plan -o %t/plan.mlir
// RUN: FileCheck %s --check-prefix=EARLY < %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare=%t/train.mlir --tolerance=1e-6
// EARLY: plan.program @step_stage_0 stage 0
// EARLY: plan.entry @step {
// EARLY-NEXT: plan.segment cpu {
// EARLY-NEXT: plan.run @read_inputs
// EARLY: plan.run @backward_1 micro_batch 1
// EARLY-NEXT: plan.run @receive_backward_1_1_to_backward_0_1 micro_batch 3
// EARLY-NEXT: plan.run @send_backward_0_1_to_backward_3
// EARLY-NEXT: plan.run @backward_1 micro_batch 2
// EARLY: plan.program @step_stage_3 stage 3
// EARLY: plan.entry @step {
// EARLY-NEXT: plan.segment cpu capturable {
// EARLY-NEXT: plan.run @receive_backward_0_1_to_backward_3
// EARLY-NEXT: plan.run @receive_forward_2_to_forward_3
// EARLY: plan.run @receive_backward_0_1_to_backward_3 micro_batch 1
// EARLY-NEXT: plan.run @backward
module attributes {accel.phase = "nn"} {
nn.state @w0 : tensor<8x8xf32> = dense<0.1e-1>
nn.state @w1 : tensor<8x8xf32> = dense<0.2e-1>
nn.state @w2 : tensor<8x8xf32> = dense<0.3e-1>
nn.state @w3 : tensor<8x8xf32> = dense<0.4e-1>
nn.state @w4 : tensor<8x8xf32> = dense<0.5e-1>
nn.state @w5 : tensor<8x8xf32> = dense<0.6e-1>
nn.state @w6 : tensor<8x8xf32> = dense<0.7e-1>
nn.state @w7 : tensor<8x8xf32> = dense<0.8e-1>
func.func @main(%x: tensor<16x8xf32> {nn.input = "x"},
                %w0: tensor<8x8xf32> {nn.state = @w0},
                %w1: tensor<8x8xf32> {nn.state = @w1},
                %w2: tensor<8x8xf32> {nn.state = @w2},
                %w3: tensor<8x8xf32> {nn.state = @w3},
                %w4: tensor<8x8xf32> {nn.state = @w4},
                %w5: tensor<8x8xf32> {nn.state = @w5},
                %w6: tensor<8x8xf32> {nn.state = @w6},
                %w7: tensor<8x8xf32> {nn.state = @w7})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %m0 = nn.matmul %x, %w0 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t0 = nn.tanh %m0 : tensor<16x8xf32>
  %m1 = nn.matmul %t0, %w1 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t1 = nn.tanh %m1 : tensor<16x8xf32>
  %m2 = nn.matmul %t1, %w2 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t2 = nn.tanh %m2 : tensor<16x8xf32>
  %m3 = nn.matmul %t2, %w3 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t3 = nn.tanh %m3 : tensor<16x8xf32>
  %m4 = nn.matmul %t3, %w4 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t4 = nn.tanh %m4 : tensor<16x8xf32>
  %m5 = nn.matmul %t4, %w5 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t5 = nn.tanh %m5 : tensor<16x8xf32>
  %m6 = nn.matmul %t5, %w6 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t6 = nn.tanh %m6 : tensor<16x8xf32>
  %m7 = nn.matmul %t6, %w7 : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t7 = nn.tanh %m7 : tensor<16x8xf32>
  %l = nn.reduce sum %t7 dims [0, 1] : (tensor<16x8xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
}
