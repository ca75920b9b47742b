// A weight that two chunks of a pipeline read has a term of its gradient from
// each. Where the sequence is split in one of them alone, both are summed in
// pieces all the same, padded or not; what crosses is a sum over micro-batches.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{options} = --train --loss=loss --optimizer=sgd --emit-gradients --entries=step
// DEFINE: %{layout} = --mesh=cp=2,pp=2 --micro-batches=2 --set zero_stage=3
// DEFINE: %{equal} = acc-opt %t/four.mlir %{options} %{layout} --compile-to=local -o %t/local.mlir && acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-14
// RUN: sed 's/ROWS/4/g' %t/tied.mlir > %t/four.mlir
// RUN: acc-opt %t/four.mlir %{options} --compile-to=train -o %t/train.mlir
// RUN: %{equal}
// RUN: FileCheck %s < %t/local.mlir
// REDEFINE: %{layout} = --mesh=cp=2,pp=2 --set zero_stage=2
// RUN: %{equal}
// REDEFINE: %{layout} = --mesh=cp=2,pp=2 --micro-batches=2 --set zero_stage=3
// RUN: sed 's/ROWS/3/g' %t/tied.mlir > %t/three.mlir
// RUN: acc-opt %t/three.mlir %{options} %{layout} --compile-to=local | FileCheck %s

// Rows of the two ranks, of both chunks' terms; padding is put there where they
// are made, and the one message has a rank's rows.
// CHECK-LABEL: func.func private @backward_0(
// CHECK: tensor<2x[[$N:3|4]]xf64> {{.*}}[4 by {cp}, {{.}}]>, nn.state = @"accumulator/w_0"
// CHECK-LABEL: func.func private @backward_1(
// CHECK: tensor<2x[[$N]]xf64> {{.*}}[4 by {cp}, {{.}}]>, nn.state = @"accumulator/w"
// CHECK-LABEL: func.func private @update_0_round_1(
// CHECK: %d_w = nn.add %w, %accumulator_w.0 : tensor<2x[[$N]]xf64>

//--- tied.mlir
module attributes {accel.phase = "nn"} {
nn.state @w : tensor<ROWSxROWSxf64> = dense<0.5>
nn.state @v : tensor<ROWSx2xf64> = dense<0.25>
func.func @main(%x: tensor<8x4xROWSxf64> {nn.input = "x"}, %w: tensor<ROWSxROWSxf64> {nn.state = @w}, %v: tensor<ROWSx2xf64> {nn.state = @v})
    -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w : (tensor<8x4xROWSxf64>, tensor<ROWSxROWSxf64>) -> tensor<8x4xROWSxf64>
  %1 = nn.reshape %0 : (tensor<8x4xROWSxf64>) -> tensor<8x1x4xROWSxf64>
  %2, %3 = nn.attention %1, %1, %1 {causal, scale = 0.5 : f64} : (tensor<8x1x4xROWSxf64>, tensor<8x1x4xROWSxf64>, tensor<8x1x4xROWSxf64>) -> (tensor<8x1x4xROWSxf64>, tensor<8x1x4xf64>)
  %4 = nn.reshape %2 : (tensor<8x1x4xROWSxf64>) -> tensor<8x4xROWSxf64>
  %zero = nn.constant dense<0.0> : tensor<f64>
  %5 = nn.pad %4, %zero low [0, 2, 0] high [0, 0, 0] : (tensor<8x4xROWSxf64>, tensor<f64>) -> tensor<8x6xROWSxf64>
  %6 = nn.slice %5 starts [0, 0, 0] sizes [8, 4, ROWS] steps [1, 1, 1] : (tensor<8x6xROWSxf64>) -> tensor<8x4xROWSxf64>
  %7 = nn.matmul %6, %w : (tensor<8x4xROWSxf64>, tensor<ROWSxROWSxf64>) -> tensor<8x4xROWSxf64>
  %8 = nn.matmul %7, %v : (tensor<8x4xROWSxf64>, tensor<ROWSx2xf64>) -> tensor<8x4x2xf64>
  %loss = nn.reduce sum %8 dims [0, 1, 2] : (tensor<8x4x2xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
}
