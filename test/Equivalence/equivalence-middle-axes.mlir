// A gather over an axis that stands between others in merged rows: what comes is joined in
// front of what a rank has, so the rows of its part of the sequence come sample by sample.
// Rows that are joined behind, or those of other ranks, are something else.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}
// REDEFINE: %{edit} = s/all_gather %0 over @mesh {tp} dim 0/all_gather %0 over @mesh {cp} dim 0/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%3 = nn.reshape %2 : (tensor<6x2xf64>) -> tensor<2x3x2xf64>/%4 = nn.reshape %2 : (tensor<6x2xf64>) -> tensor<3x2x2xf64>\n%3 = nn.transpose %4 [1, 0, 2] : (tensor<3x2x2xf64>) -> tensor<2x3x2xf64>/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4x6x2xf64> {nn.input = "x"}) -> (tensor<4x6x2xf64> {nn.output = "y"}) attributes {nn.entry} {
    %0 = nn.reshape %x : (tensor<4x6x2xf64>) -> tensor<24x2xf64>
    %1 = nn.exp %0 : tensor<24x2xf64>
    %2 = nn.reshape %1 : (tensor<24x2xf64>) -> tensor<4x6x2xf64>
    return %2 : tensor<4x6x2xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp_replicate" = 2, "cp" = 2, "tp" = 2]
  func.func @main(%x: tensor<1x3x2xf64> {dist.layout = #dist.layout<@mesh [4 by {dp_replicate, tp}, 6 by {cp}, 2]>, nn.input = "x"})
      -> (tensor<2x3x2xf64> {dist.layout = #dist.layout<@mesh [4 by {dp_replicate}, 6 by {cp}, 2]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %0 = nn.reshape %x : (tensor<1x3x2xf64>) -> tensor<3x2xf64>
    %1 = dist.all_gather %0 over @mesh {tp} dim 0 : (tensor<3x2xf64>) -> tensor<6x2xf64>
    %2 = nn.exp %1 : tensor<6x2xf64>
    %3 = nn.reshape %2 : (tensor<6x2xf64>) -> tensor<2x3x2xf64>
    return %3 : tensor<2x3x2xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
