// A sum over micro-batches of inputs alone, which losses of two chunks are divided by,
// is made by one of them; the other gets it once, before the micro-batches.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --cut=product --mesh=pp=2 --micro-batches=4 --compile-to=local -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --compile-to=train -o %t/train.mlir
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// RUN: acc-eval %t/local.mlir --entry eval --compare %t/train.mlir --tolerance 1e-12
// CHECK-LABEL: func.func private @count_0(
// CHECK-NOT: func.func private @count_1(
// CHECK-LABEL: func.func private @prepare_0(
// CHECK: nn.state = @"accumulator/count"
// CHECK: return %accumulator_count : tensor<f32>
// CHECK-LABEL: func.func private @prepare_0_round_1(
// CHECK: nn.div %{{.*}}, %accumulator_count
// CHECK-LABEL: func.func private @prepare_1_round_1(
// CHECK-NEXT: %[[COUNT:.*]]: tensor<f32>
// CHECK-NEXT: ) ->
// CHECK: nn.div %{{.*}}, %[[COUNT]]
// CHECK-LABEL: dist.schedule @step_schedule
// CHECK: dist.stage 1 {
// CHECK-NEXT: dist.run @prepare_1_round_1[0]
// CHECK: dist.edge @prepare_0 0 -> @prepare_1_round_1 0
// CHECK: dist.edge @prepare_1_round_1 1 -> @backward_1 1
// CHECK-LABEL: dist.schedule @eval_schedule
// CHECK: dist.edge @eval_update_0 0 -> @eval_update_1_round_1 0
module attributes {accel.phase = "nn"} {
nn.state @w0 : tensor<8x8xf32> = dense<0.5>
nn.state @w1 : tensor<8x8xf32> = dense<0.25>
func.func @main(%x: tensor<8192x8xf32> {nn.input = "x"}, %m: tensor<8192x8xf32> {nn.input = "m"},
                %w0: tensor<8x8xf32> {nn.state = @w0}, %w1: tensor<8x8xf32> {nn.state = @w1})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %count = nn.reduce sum %m dims [0, 1] : (tensor<8192x8xf32>) -> tensor<f32>
  %0 = nn.matmul %x, %w0 : (tensor<8192x8xf32>, tensor<8x8xf32>) -> tensor<8192x8xf32>
  %1 = nn.tanh %0 : tensor<8192x8xf32>
  %2 = nn.reduce sum %1 dims [0, 1] : (tensor<8192x8xf32>) -> tensor<f32>
  %3 = nn.div %2, %count : tensor<f32>
  %product = nn.matmul %1, %w1 : (tensor<8192x8xf32>, tensor<8x8xf32>) -> tensor<8192x8xf32>
  %4 = nn.tanh %product : tensor<8192x8xf32>
  %5 = nn.reduce sum %4 dims [0, 1] : (tensor<8192x8xf32>) -> tensor<f32>
  %6 = nn.div %5, %count : tensor<f32>
  %7 = nn.add %3, %6 : tensor<f32>
  return %7 : tensor<f32>
}
}
