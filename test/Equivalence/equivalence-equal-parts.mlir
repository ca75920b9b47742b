// Equal elements of which ranks hold a part, merged with other dimensions: any part is as
// good as another, so they are those of the rows that a rank has of another operand. And
// what is cut and padded with zeros may be cut and padded term by term.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// A sum over ranks that have the same, another kind of it, rows that are other samples'.
// REDEFINE: %{edit} = s/dist.all_reduce sum %5 over @mesh {cp}/dist.all_reduce sum %5 over @mesh {tp}/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum %5/dist.all_reduce max %5/
// RUN: %{refused}
// REDEFINE: %{edit} = s/tensor<4x3x3xf64>/tensor<2x6x3xf64>/g;s/\[4, 6 by {cp}, 3\]/[4 by {cp}, 6, 3]/
// RUN: %{refused}
// A term left out, or padded otherwise than the sum.
// REDEFINE: %{edit} = s/nn.add %10, %11/nn.add %10, %10/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.pad %9, %zero low \[1, 0\] high \[0, 0\]/nn.pad %9, %zero low [0, 0] high [1, 0]/
// RUN: %{refused}
// What is padded with another number is so once, not once for each term.
// RUN: sed 's/dense<0.0>/dense<1.0>/' %t/train.mlir > %t/one-train.mlir
// RUN: sed 's/dense<0.0>/dense<1.0>/' %t/local.mlir > %t/one.mlir
// RUN: not acc-opt %t/one.mlir --dist-verify-equivalence=logical=%t/one-train.mlir -o /dev/null 2>&1 | FileCheck %s

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%g: tensor<4x1x5xf64> {nn.input = "g"}, %h: tensor<4x6x3xf64> {nn.input = "h"}, %x: tensor<4x3xf64> {nn.input = "x"})
      -> (tensor<5x3xf64> {nn.output = "w"}, tensor<4x3xf64> {nn.output = "p"}) attributes {nn.entry} {
    %0 = nn.broadcast %g : (tensor<4x1x5xf64>) -> tensor<4x6x5xf64>
    %1 = nn.reshape %0 : (tensor<4x6x5xf64>) -> tensor<24x5xf64>
    %2 = nn.reshape %h : (tensor<4x6x3xf64>) -> tensor<24x3xf64>
    %3 = nn.matmul %1, %2 {transpose_lhs} : (tensor<24x5xf64>, tensor<24x3xf64>) -> tensor<5x3xf64>
    %4 = nn.exp %x : tensor<4x3xf64>
    %5 = nn.tanh %x : tensor<4x3xf64>
    %6 = nn.add %4, %5 : tensor<4x3xf64>
    %7 = nn.slice %6 starts [1, 0] sizes [3, 3] steps [1, 1] : (tensor<4x3xf64>) -> tensor<3x3xf64>
    %zero = nn.constant dense<0.0> : tensor<f64>
    %8 = nn.pad %7, %zero low [1, 0] high [0, 0] : (tensor<3x3xf64>, tensor<f64>) -> tensor<4x3xf64>
    return %3, %8 : tensor<5x3xf64>, tensor<4x3xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["cp" = 2, "tp" = 2]
  func.func @main(%g: tensor<4x1x5xf64> {dist.layout = #dist.layout<@mesh [4, 1, 5]>, nn.input = "g"}, %h: tensor<4x3x3xf64> {dist.layout = #dist.layout<@mesh [4, 6 by {cp}, 3]>, nn.input = "h"}, %x: tensor<4x3xf64> {dist.layout = #dist.layout<@mesh [4, 3]>, nn.input = "x"})
      -> (tensor<5x3xf64> {dist.layout = #dist.layout<@mesh [5, 3]>, nn.output = "w"}, tensor<4x3xf64> {dist.layout = #dist.layout<@mesh [4, 3]>, nn.output = "p"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %2 = nn.broadcast %g : (tensor<4x1x5xf64>) -> tensor<4x3x5xf64>
    %3 = nn.reshape %2 : (tensor<4x3x5xf64>) -> tensor<12x5xf64>
    %4 = nn.reshape %h : (tensor<4x3x3xf64>) -> tensor<12x3xf64>
    %5 = nn.matmul %3, %4 {transpose_lhs} : (tensor<12x5xf64>, tensor<12x3xf64>) -> tensor<5x3xf64>
    %w = dist.all_reduce sum %5 over @mesh {cp} : tensor<5x3xf64>
    %6 = nn.exp %x : tensor<4x3xf64>
    %7 = nn.tanh %x : tensor<4x3xf64>
    %8 = nn.slice %6 starts [1, 0] sizes [3, 3] steps [1, 1] : (tensor<4x3xf64>) -> tensor<3x3xf64>
    %9 = nn.slice %7 starts [1, 0] sizes [3, 3] steps [1, 1] : (tensor<4x3xf64>) -> tensor<3x3xf64>
    %zero = nn.constant dense<0.0> : tensor<f64>
    %10 = nn.pad %8, %zero low [1, 0] high [0, 0] : (tensor<3x3xf64>, tensor<f64>) -> tensor<4x3xf64>
    %11 = nn.pad %9, %zero low [1, 0] high [0, 0] : (tensor<3x3xf64>, tensor<f64>) -> tensor<4x3xf64>
    %p = nn.add %10, %11 : tensor<4x3xf64>
    return %w, %p : tensor<5x3xf64>, tensor<4x3xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
