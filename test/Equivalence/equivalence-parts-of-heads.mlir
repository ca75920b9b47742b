// Parts joined along a split sequence, of which one has come to its width by heads and the other
// as it is.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Heads that are not put side by side, parts in the other order, weights in the order of rows, another sum.
// REDEFINE: %{edit} = s/nn.transpose %x \[0, 2, 1, 3\]/nn.transpose %x [0, 1, 2, 3]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.concat %1, %2/nn.concat %2, %1/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.transpose %5 \[1, 0, 2, 3\]/nn.transpose %5 [0, 1, 2, 3]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum/dist.all_reduce max/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<2x2x4x4xf64> {nn.input = "x"}, %y: tensor<2x4x8xf64> {nn.input = "y"}, %w: tensor<8x5xf64> {nn.input = "w"}) -> (tensor<2x8x5xf64> {nn.output = "o"}) attributes {nn.entry} {
    %0 = nn.transpose %x [0, 2, 1, 3] : (tensor<2x2x4x4xf64>) -> tensor<2x4x2x4xf64>
    %1 = nn.reshape %0 : (tensor<2x4x2x4xf64>) -> tensor<2x4x8xf64>
    %2 = nn.concat %1, %y dim 1 : (tensor<2x4x8xf64>, tensor<2x4x8xf64>) -> tensor<2x8x8xf64>
    %3 = nn.transpose %2 [0, 2, 1] : (tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
    %o = nn.matmul %3, %w : (tensor<2x8x8xf64>, tensor<8x5xf64>) -> tensor<2x8x5xf64>
    return %o : tensor<2x8x5xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["cp" = 2]
  func.func @main(%x: tensor<2x2x2x4xf64> {dist.layout = #dist.layout<@mesh [2, 2, 4 by {cp}, 4]>, nn.input = "x"}, %y: tensor<2x2x8xf64> {dist.layout = #dist.layout<@mesh [2, 4 by {cp}, 8]>, nn.input = "y"}, %w: tensor<8x5xf64> {dist.layout = #dist.layout<@mesh [8, 5]>, nn.input = "w"})
      -> (tensor<2x8x5xf64> {dist.layout = #dist.layout<@mesh [2, 8, 5]>, nn.output = "o"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %0 = nn.transpose %x [0, 2, 1, 3] : (tensor<2x2x2x4xf64>) -> tensor<2x2x2x4xf64>
    %1 = nn.reshape %0 : (tensor<2x2x2x4xf64>) -> tensor<2x1x1x2x8xf64>
    %2 = nn.reshape %y : (tensor<2x2x8xf64>) -> tensor<2x1x1x2x8xf64>
    %3 = nn.concat %1, %2 dim 2 : (tensor<2x1x1x2x8xf64>, tensor<2x1x1x2x8xf64>) -> tensor<2x1x2x2x8xf64>
    %4 = nn.reshape %3 : (tensor<2x1x2x2x8xf64>) -> tensor<2x4x8xf64>
    %5 = nn.reshape %w : (tensor<8x5xf64>) -> tensor<2x2x2x5xf64>
    %6 = nn.transpose %5 [1, 0, 2, 3] : (tensor<2x2x2x5xf64>) -> tensor<2x2x2x5xf64>
    %7 = nn.reshape %6 : (tensor<2x2x2x5xf64>) -> tensor<8x5xf64>
    %8 = dist.all_slice %7 over @mesh {cp} dim 0 : (tensor<8x5xf64>) -> tensor<4x5xf64>
    %9 = nn.transpose %4 [0, 2, 1] : (tensor<2x4x8xf64>) -> tensor<2x8x4xf64>
    %10 = nn.matmul %9, %8 : (tensor<2x8x4xf64>, tensor<4x5xf64>) -> tensor<2x8x5xf64>
    %o = dist.all_reduce sum %10 over @mesh {cp} : tensor<2x8x5xf64>
    return %o : tensor<2x8x5xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
