// An output that the first stage makes alone, beside the loss: the last stage has
// nothing to do for the model's outputs, and all to do in a step.
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=pp=2 --micro-batches=2 --compile-to=local -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --compile-to=train -o %t.train.mlir
// RUN: acc-eval %t.mlir --compare %t.train.mlir --tolerance 1e-12 --entry=forward
// RUN: acc-eval %t.mlir --compare %t.train.mlir --tolerance 1e-12
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=pp=2 --micro-batches=2 -o %t.accx

// CHECK-DAG: func.func private @forward_1(
// CHECK-DAG: func.func private @forward_forward(
// CHECK-NOT: @forward_forward_1
module attributes {accel.phase = "nn"} {
nn.state @v : tensor<4x4xf64> = dense<0.25>
nn.state @w : tensor<4x4xf64> = dense<0.5>
func.func @main(%x: tensor<6x4xf64> {nn.input = "x"}, %v: tensor<4x4xf64> {nn.state = @v}, %w: tensor<4x4xf64> {nn.state = @w})
    -> (tensor<f64> {nn.output = "loss"}, tensor<6x4xf64> {nn.output = "hidden"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %v : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
  %1 = nn.tanh %0 : tensor<6x4xf64>
  %2 = nn.matmul %1, %w : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
  %3 = nn.tanh %2 : tensor<6x4xf64>
  %loss = nn.reduce sum %3 dims [0, 1] : (tensor<6x4xf64>) -> tensor<f64>
  return %loss, %1 : tensor<f64>, tensor<6x4xf64>
}
}
