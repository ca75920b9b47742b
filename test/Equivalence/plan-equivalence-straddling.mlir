// Pairs of rows of which the second goes through a product, and four ranks with
// three rows each: a rank's rows begin or end within a pair. A command reads them
// out of the pairs' bytes, where the task cuts them out of a transposed tensor.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=sp=4 --entries=step --compile-to=local -o %t/local.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --mesh=sp=4 --entries=step --target=null --compile-to=plan -o %t/plan.mlir
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed -E '%{edit}' %t/plan.mlir > %t/m.mlir && not diff -q %t/plan.mlir %t/m.mlir && \
// DEFINE:   not acc-opt %t/m.mlir --plan-verify-equivalence=local=%t/local.mlir -o %t/none.mlir 2>&1 | FileCheck %s
// RUN: acc-opt %t/plan.mlir --plan-verify-equivalence=local=%t/local.mlir -o /dev/null

// Two rows of each rank, one pair each; the rows of other ranks; those of heads and of
// rows exchanged.
// REDEFINE: %{edit} = s/(gradient @kernel_3.result\[.* at sp\*)96/\164/
// RUN: %{refused}
// REDEFINE: %{edit} = s/(gradient @kernel_3.result\[.* at )sp\*96/\196/
// RUN: %{refused}
// REDEFINE: %{edit} = s/(gradient @kernel_3.result\[.* strides \[48, )2, 4, 1/\16, 2, 1/
// RUN: %{refused}
// CHECK: error: 'plan.write' op does not follow from the local program: writes another value than the task gives as output 'grad_norm'
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<8x4xf64> = dense<0.5>
nn.state @w : tensor<4x4xf64> = dense<0.25>
nn.state @v : tensor<4x1xf64> = dense<0.125>
func.func @main(%ids: tensor<1x12xi64> {nn.input = "ids"}, %memory: tensor<1x4x4xf64> {nn.input = "memory"}, %table: tensor<8x4xf64> {nn.state = @table}, %w: tensor<4x4xf64> {nn.state = @w}, %v: tensor<4x1xf64> {nn.state = @v})
    -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
  %0 = nn.gather %table, %ids dim 0 : (tensor<8x4xf64>, tensor<1x12xi64>) -> tensor<1x12x4xf64>
  %1 = nn.reshape %0 : (tensor<1x12x4xf64>) -> tensor<1x12x2x2xf64>
  %2 = nn.transpose %1 [0, 2, 1, 3] : (tensor<1x12x2x2xf64>) -> tensor<1x2x12x2xf64>
  %3 = nn.reshape %memory : (tensor<1x4x4xf64>) -> tensor<1x4x2x2xf64>
  %4 = nn.transpose %3 [0, 2, 1, 3] : (tensor<1x4x2x2xf64>) -> tensor<1x2x4x2xf64>
  %5, %6 = nn.attention %2, %4, %4 {scale = 0.7 : f64} : (tensor<1x2x12x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x4x2xf64>) -> (tensor<1x2x12x2xf64>, tensor<1x2x12xf64>)
  %7 = nn.transpose %5 [0, 2, 1, 3] : (tensor<1x2x12x2xf64>) -> tensor<1x12x2x2xf64>
  %8 = nn.reshape %7 : (tensor<1x12x2x2xf64>) -> tensor<1x6x2x4xf64>
  %9 = nn.slice %8 starts [0, 0, 0, 0] sizes [1, 6, 1, 4] steps [1, 1, 1, 1] : (tensor<1x6x2x4xf64>) -> tensor<1x6x1x4xf64>
  %10 = nn.slice %8 starts [0, 0, 1, 0] sizes [1, 6, 1, 4] steps [1, 1, 1, 1] : (tensor<1x6x2x4xf64>) -> tensor<1x6x1x4xf64>
  %11 = nn.reshape %10 : (tensor<1x6x1x4xf64>) -> tensor<1x6x4xf64>
  %12 = nn.matmul %11, %w : (tensor<1x6x4xf64>, tensor<4x4xf64>) -> tensor<1x6x4xf64>
  %13 = nn.reshape %12 : (tensor<1x6x4xf64>) -> tensor<1x6x1x4xf64>
  %14 = nn.concat %9, %13 dim 2 : (tensor<1x6x1x4xf64>, tensor<1x6x1x4xf64>) -> tensor<1x6x2x4xf64>
  %15 = nn.reshape %14 : (tensor<1x6x2x4xf64>) -> tensor<1x12x4xf64>
  %16 = nn.matmul %15, %v : (tensor<1x12x4xf64>, tensor<4x1xf64>) -> tensor<1x12x1xf64>
  %loss = nn.reduce sum %16 dims [0, 1, 2] : (tensor<1x12x1xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
}
