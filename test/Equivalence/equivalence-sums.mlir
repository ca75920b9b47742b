// Sums in another order, and what one op makes of each term of a sum: of the whole,
// if it rounds none of them.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// A term twice, one that is none, one for another.
// REDEFINE: %{edit} = s/nn.add %c, %b :/nn.add %c, %c :/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.add %c, %b :/nn.add %c, %ab :/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%q = nn.add %z, %a/%q = nn.add %z, %b/
// RUN: %{refused}
// A sum of the largest is none of the sums.
// REDEFINE: %{edit} = s/reduce sum %m/reduce max %m/
// RUN: %{refused}
// Terms that were rounded are not the rounded sum.
// RUN: sed 's/bf16/f64/g' %t/train.mlir > %t/narrow-train.mlir
// RUN: sed 's/bf16/f64/g' %t/local.mlir > %t/narrow.mlir
// RUN: not acc-opt %t/narrow.mlir --dist-verify-equivalence=logical=%t/narrow-train.mlir -o /dev/null 2>&1 | FileCheck %s
// What is not linear is made of the sum alone.
// RUN: sed 's/nn.neg/nn.abs/' %t/train.mlir > %t/abs-train.mlir
// RUN: sed 's/nn.neg/nn.abs/' %t/local.mlir > %t/abs.mlir
// RUN: not acc-opt %t/abs.mlir --dist-verify-equivalence=logical=%t/abs-train.mlir -o /dev/null 2>&1 | FileCheck %s

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4xf32> {nn.input = "x"}, %y: tensor<4xf32> {nn.input = "y"}, %m: tensor<2x4xf32> {nn.input = "m"}, %n: tensor<4xbf16> {nn.input = "n"})
      -> (tensor<4xf32> {nn.output = "s"}, tensor<4xf32> {nn.output = "d"}) attributes {nn.entry} {
    %a = nn.exp %x : tensor<4xf32>
    %b = nn.tanh %y : tensor<4xf32>
    %c = nn.reduce sum %m dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
    %ab = nn.add %a, %b : tensor<4xf32>
    %q = nn.add %ab, %c : tensor<4xf32>
    %e = nn.add %n, %n : tensor<4xbf16>
    %f = nn.add %e, %n : tensor<4xbf16>
    %w = nn.cast %f : (tensor<4xbf16>) -> tensor<4xf32>
    %d = nn.neg %w : tensor<4xf32>
    return %q, %d : tensor<4xf32>, tensor<4xf32>
  }
}
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.input = "x"}, %y: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.input = "y"}, %m: tensor<1x4xf32> {dist.layout = #dist.layout<@mesh [2 by {dp}, 4]>, nn.input = "m"}, %n: tensor<4xbf16> {dist.layout = #dist.layout<@mesh [4]>, nn.input = "n"})
      -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "s"}, tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "d"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %a = nn.exp %x : tensor<4xf32>
    %b = nn.tanh %y : tensor<4xf32>
    %ab = nn.add %a, %b : tensor<4xf32>
    %t = nn.reduce sum %m dims [0] : (tensor<1x4xf32>) -> tensor<4xf32>
    %c = dist.all_reduce sum %t over @mesh {dp} : tensor<4xf32>
    %cb = nn.add %c, %b : tensor<4xf32>
    %k = dist.all_slice %cb over @mesh {dp} dim 0 : (tensor<4xf32>) -> tensor<2xf32>
    %z = dist.all_gather %k over @mesh {dp} dim 0 : (tensor<2xf32>) -> tensor<4xf32>
    %q = nn.add %z, %a : tensor<4xf32>
    %w = nn.cast %n : (tensor<4xbf16>) -> tensor<4xf32>
    %g = nn.neg %w : tensor<4xf32>
    %e = nn.add %g, %g : tensor<4xf32>
    %d = nn.add %g, %e : tensor<4xf32>
    return %q, %d : tensor<4xf32>, tensor<4xf32>
  }
  dist.schedule @sc entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
