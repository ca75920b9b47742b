// Ranks exchange pieces of a view so that its axes split it in another order: of two axes of other sizes none takes
// the other's place. Pieces that go elsewhere, or to several ranks, are something else.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found )}}
// REDEFINE: %{edit} = s/sources \[0, 2, 4, 1, 3, 5\]/sources [0, 3, 1, 4, 2, 5]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/sources \[0, 2, 4, 1, 3, 5\]/sources [0, 2, 4, 1, 5, 3]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/sources \[0, 2, 4, 1, 3, 5\]/sources [1, 3, 5, 0, 2, 4]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/all_gather %1 over @mesh {tp, sp}/all_gather %1 over @mesh {sp, tp}/
// RUN: %{refused}
// REDEFINE: %{edit} = s/all_slice %2 over @mesh {tp, sp}/all_slice %2 over @mesh {sp, tp}/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<12x2xf64> {nn.input = "x"}) -> (tensor<12x2xf64> {nn.output = "y"}) attributes {nn.entry} {
    %0 = nn.exp %x : tensor<12x2xf64>
    return %0 : tensor<12x2xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["sp" = 2, "tp" = 3]
  func.func @main(%x: tensor<2x2xf64> {dist.layout = #dist.layout<@mesh [12 by {sp, tp}, 2]>, nn.input = "x"})
      -> (tensor<2x2xf64> {dist.layout = #dist.layout<@mesh [12 by {tp, sp}, 2]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %0 = nn.reshape %x : (tensor<2x2xf64>) -> tensor<1x2x2xf64>
    %1 = dist.permute %0 over @mesh {sp, tp} sources [0, 2, 4, 1, 3, 5] : tensor<1x2x2xf64>
    %2 = dist.all_gather %1 over @mesh {tp, sp} dim 1 : (tensor<1x2x2xf64>) -> tensor<1x12x2xf64>
    %3 = dist.all_slice %2 over @mesh {tp, sp} dim 1 : (tensor<1x12x2xf64>) -> tensor<1x2x2xf64>
    %4 = nn.reshape %3 : (tensor<1x2x2xf64>) -> tensor<2x2xf64>
    %5 = nn.exp %4 : tensor<2x2xf64>
    return %5 : tensor<2x2xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
