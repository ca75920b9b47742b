// Equal elements as rows that stand in other places: one row of them on a rank, joined to
// rows of the batch; and windows of them that ranks cut across, put in the order of ranks.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else|output .y., expected)}}

// The other row, the rows in another order, rows of another value, of another batch.
// REDEFINE: %{edit} = s/nn.slice %x starts \[0, 0\]/nn.slice %x starts [1, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.concat %0, %1/nn.concat %1, %0/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.broadcast %n /nn.broadcast %o /
// RUN: %{refused}
// REDEFINE: %{edit} = s/\[8 by {dp, cp}, 3\]>, nn.input/[8 by {cp, dp}, 3]>, nn.input/
// RUN: %{refused}
// Windows in the order of samples, of other sizes, of the other rank, and of all ranks' rows.
// REDEFINE: %{edit} = s/\[1, 0, 2, 3\]/[0, 1, 2, 3]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.broadcast %g : (tensor<2x3x1x5xf64>) -> tensor<2x3x4x5xf64>/nn.broadcast %i : (tensor<2x1x4x5xf64>) -> tensor<2x3x4x5xf64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_slice %5 over @mesh {cp} dim 0/nn.slice %5 starts [0, 0] sizes [12, 5] steps [1, 1]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum %8 over @mesh {cp}/dist.all_reduce sum %8 over @mesh {dp}/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<8x3xf64> {nn.input = "x"}, %n: tensor<3xf64> {nn.input = "n"}, %o: tensor<3xf64> {nn.input = "o"}, %g: tensor<2x3x1x5xf64> {nn.input = "g"}, %i: tensor<2x1x4x5xf64> {nn.input = "i"}, %h: tensor<2x12x3xf64> {nn.input = "h"})
      -> (tensor<8x3xf64> {nn.output = "y"}, tensor<5x3xf64> {nn.output = "w"}) attributes {nn.entry} {
    %0 = nn.reshape %x : (tensor<8x3xf64>) -> tensor<4x2x3xf64>
    %1 = nn.slice %0 starts [0, 0, 0] sizes [4, 1, 3] steps [1, 1, 1] : (tensor<4x2x3xf64>) -> tensor<4x1x3xf64>
    %2 = nn.broadcast %n : (tensor<3xf64>) -> tensor<4x3xf64>
    %3 = nn.reshape %2 : (tensor<4x3xf64>) -> tensor<4x1x3xf64>
    %4 = nn.concat %1, %3 dim 1 : (tensor<4x1x3xf64>, tensor<4x1x3xf64>) -> tensor<4x2x3xf64>
    %5 = nn.reshape %4 : (tensor<4x2x3xf64>) -> tensor<8x3xf64>
    %6 = nn.broadcast %g : (tensor<2x3x1x5xf64>) -> tensor<2x3x4x5xf64>
    %7 = nn.reshape %6 : (tensor<2x3x4x5xf64>) -> tensor<24x5xf64>
    %8 = nn.reshape %h : (tensor<2x12x3xf64>) -> tensor<24x3xf64>
    %9 = nn.matmul %7, %8 {transpose_lhs} : (tensor<24x5xf64>, tensor<24x3xf64>) -> tensor<5x3xf64>
    return %5, %9 : tensor<8x3xf64>, tensor<5x3xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2, "cp" = 2]
  func.func @main(%x: tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [8 by {dp, cp}, 3]>, nn.input = "x"}, %n: tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.input = "n"}, %o: tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.input = "o"}, %g: tensor<2x3x1x5xf64> {dist.layout = #dist.layout<@mesh [2, 3, 1, 5]>, nn.input = "g"}, %i: tensor<2x1x4x5xf64> {dist.layout = #dist.layout<@mesh [2, 1, 4, 5]>, nn.input = "i"}, %h: tensor<2x6x3xf64> {dist.layout = #dist.layout<@mesh [2, 12 by {cp}, 3]>, nn.input = "h"})
      -> (tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [8 by {dp, cp}, 3]>, nn.output = "y"}, tensor<5x3xf64> {dist.layout = #dist.layout<@mesh [5, 3]>, nn.output = "w"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %0 = nn.slice %x starts [0, 0] sizes [1, 3] steps [1, 1] : (tensor<2x3xf64>) -> tensor<1x3xf64>
    %1 = nn.broadcast %n : (tensor<3xf64>) -> tensor<1x3xf64>
    %y = nn.concat %0, %1 dim 0 : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<2x3xf64>
    %2 = nn.broadcast %g : (tensor<2x3x1x5xf64>) -> tensor<2x3x4x5xf64>
    %3 = nn.reshape %2 : (tensor<2x3x4x5xf64>) -> tensor<2x2x6x5xf64>
    %4 = nn.transpose %3 [1, 0, 2, 3] : (tensor<2x2x6x5xf64>) -> tensor<2x2x6x5xf64>
    %5 = nn.reshape %4 : (tensor<2x2x6x5xf64>) -> tensor<24x5xf64>
    %6 = dist.all_slice %5 over @mesh {cp} dim 0 : (tensor<24x5xf64>) -> tensor<12x5xf64>
    %7 = nn.reshape %h : (tensor<2x6x3xf64>) -> tensor<12x3xf64>
    %8 = nn.matmul %6, %7 {transpose_lhs} : (tensor<12x5xf64>, tensor<12x3xf64>) -> tensor<5x3xf64>
    %w = dist.all_reduce sum %8 over @mesh {cp} : tensor<5x3xf64>
    return %y, %w : tensor<2x3xf64>, tensor<5x3xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
