// A sum of equal rows, of which each rank adds up some: as many ranks as have all of them, and no
// others. Two ranks with one row each do not have three.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: does not follow from the logical program
// REDEFINE: %{edit} = s/dist.all_reduce sum %1 over @mesh {ep}/dist.all_reduce sum %1 over @mesh {cp}/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum %1 over @mesh {ep}/dist.all_reduce sum %1 over @mesh {ep, cp}/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum %3 over @mesh {cp}/dist.all_reduce sum %3 over @mesh {ep}/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4xf64> {nn.input = "x"}) -> (tensor<4xf64> {nn.output = "y"}, tensor<4xf64> {nn.output = "z"}) attributes {nn.entry} {
    %0 = nn.broadcast %x : (tensor<4xf64>) -> tensor<3x4xf64>
    %1 = nn.reduce sum %0 dims [0] : (tensor<3x4xf64>) -> tensor<4xf64>
    %2 = nn.broadcast %x : (tensor<4xf64>) -> tensor<4x4xf64>
    %3 = nn.reduce sum %2 dims [0] : (tensor<4x4xf64>) -> tensor<4xf64>
    return %1, %3 : tensor<4xf64>, tensor<4xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["ep" = 3, "cp" = 2]
  func.func @main(%x: tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.input = "x"})
      -> (tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "y"}, tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "z"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %0 = nn.broadcast %x : (tensor<4xf64>) -> tensor<1x4xf64>
    %1 = nn.reduce sum %0 dims [0] : (tensor<1x4xf64>) -> tensor<4xf64>
    %y = dist.all_reduce sum %1 over @mesh {ep} : tensor<4xf64>
    %2 = nn.broadcast %x : (tensor<4xf64>) -> tensor<2x4xf64>
    %3 = nn.reduce sum %2 dims [0] : (tensor<2x4xf64>) -> tensor<4xf64>
    %z = dist.all_reduce sum %3 over @mesh {cp} : tensor<4xf64>
    return %y, %z : tensor<4xf64>, tensor<4xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
