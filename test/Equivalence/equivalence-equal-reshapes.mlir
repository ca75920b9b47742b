// Elements that are equal along dimensions are so in whatever shape, and in whichever order ranks
// have the rows that they meet: here each second one. Largest elements are as good as any for what
// they are joined with.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else|found \[)}}

// Equal along columns, not rows; columns and rows mixed; other elements.
// REDEFINE: %{edit} = s/%all = nn.broadcast %g : (tensor<6xf64>)/%g1 = nn.slice %g starts [0] sizes [1] steps [1] : (tensor<6xf64>) -> tensor<1xf64> %all = nn.broadcast %g1 : (tensor<1xf64>)/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%rows = nn.reshape %all /%xt = nn.transpose %all [1, 0] : (tensor<8x6xf64>) -> tensor<6x8xf64> %rows = nn.reshape %xt /;s/%rows = \(.*\)(tensor<8x6xf64>) -> tensor<2x4x6xf64>$/%rows = \1(tensor<6x8xf64>) -> tensor<2x4x6xf64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.mul %x, %rows/nn.mul %x, %x/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.broadcast %ek /nn.broadcast %k /
// RUN: %{refused}
// Shares in another order; the smallest elements; of one rank's alone.
// REDEFINE: %{edit} = s/nn.concat %m, %a dim/nn.concat %a, %m dim/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.reduce max %z/nn.reduce min %z/
// RUN: %{refused}
// REDEFINE: %{edit} = s/return %y, %e, %whole/return %y, %e, %own/
// RUN: %{refused}
// What was equal along rows, and has been read in both orders since, is so in another shape.
// RUN: acc-opt %t/both-local.mlir --dist-verify-equivalence=logical=%t/both-train.mlir -o /dev/null
// REDEFINE: %{edit} = s/%h3 = nn.reshape %h2 : (tensor<4x6xf64>)/%h9 = nn.reshape %h2 : (tensor<4x6xf64>) -> tensor<6x4xf64> %h8 = nn.transpose %h9 [1, 0] : (tensor<6x4xf64>) -> tensor<4x6xf64> %h3 = nn.reshape %h8 : (tensor<4x6xf64>)/
// RUN: sed '%{edit}' %t/both-local.mlir > %t/m.mlir && not cmp -s %t/both-local.mlir %t/m.mlir
// RUN: not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/both-train.mlir -o /dev/null 2>&1 | FileCheck %s

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<2x8x6xf64> {nn.input = "x"}, %g: tensor<6xf64> {nn.input = "g"}, %k: tensor<f64> {nn.input = "s"}, %z: tensor<4x2x3xf64> {nn.input = "z"}, %a: tensor<4x2xf64> {nn.input = "a"}, %b: tensor<4x4xf64> {nn.input = "b"})
      -> (tensor<2x8x6xf64> {nn.output = "y"}, tensor<2x4x2x6xf64> {nn.output = "e"}, tensor<4xf64> {nn.output = "sum"}) attributes {nn.entry} {
    %all = nn.broadcast %g : (tensor<6xf64>) -> tensor<16x6xf64>
    %rows = nn.reshape %all : (tensor<16x6xf64>) -> tensor<2x8x6xf64>
    %y = nn.mul %x, %rows : tensor<2x8x6xf64>
    %ek = nn.exp %k : tensor<f64>
    %0 = nn.broadcast %ek : (tensor<f64>) -> tensor<6x8x2xf64>
    %1 = nn.transpose %0 [2, 1, 0] : (tensor<6x8x2xf64>) -> tensor<2x8x6xf64>
    %2 = nn.reshape %1 : (tensor<2x8x6xf64>) -> tensor<2x4x2x6xf64>
    %3 = nn.reshape %x : (tensor<2x8x6xf64>) -> tensor<2x4x2x6xf64>
    %e = nn.mul %2, %3 : tensor<2x4x2x6xf64>
    %m = nn.reduce max %z dims [2] : (tensor<4x2x3xf64>) -> tensor<4x2xf64>
    %ma = nn.concat %m, %a dim 1 : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<4x4xf64>
    %4 = nn.mul %ma, %b : tensor<4x4xf64>
    %whole = nn.reduce sum %4 dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>
    return %y, %e, %whole : tensor<2x8x6xf64>, tensor<2x4x2x6xf64>, tensor<4xf64>
  }
}
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["cp" = 2]
  func.func @main(%x: tensor<2x4x6xf64> {dist.layout = #dist.layout<@mesh [2, 8 by {cp}, 6], interleaved = <1[2] times 4 by 2>>, nn.input = "x"}, %g: tensor<6xf64> {dist.layout = #dist.layout<@mesh [6]>, nn.input = "g"}, %k: tensor<f64> {dist.layout = #dist.layout<@mesh []>, nn.input = "s"}, %z: tensor<4x1x3xf64> {dist.layout = #dist.layout<@mesh [4, 2 by {cp}, 3]>, nn.input = "z"}, %a: tensor<4x1xf64> {dist.layout = #dist.layout<@mesh [4, 2 by {cp}]>, nn.input = "a"}, %b: tensor<4x2xf64> {dist.layout = #dist.layout<@mesh [4, 4 by {cp}], interleaved = <1[2, 2] by 2>>, nn.input = "b"})
      -> (tensor<2x4x6xf64> {dist.layout = #dist.layout<@mesh [2, 8 by {cp}, 6], interleaved = <1[2] times 4 by 2>>, nn.output = "y"}, tensor<2x4x1x6xf64> {dist.layout = #dist.layout<@mesh [2, 4, 2 by {cp}, 6]>, nn.output = "e"}, tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "sum"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %all = nn.broadcast %g : (tensor<6xf64>) -> tensor<8x6xf64>
    %rows = nn.reshape %all : (tensor<8x6xf64>) -> tensor<2x4x6xf64>
    %y = nn.mul %x, %rows : tensor<2x4x6xf64>
    %ek = nn.exp %k : tensor<f64>
    %0 = nn.broadcast %ek : (tensor<f64>) -> tensor<6x4x2xf64>
    %1 = nn.transpose %0 [2, 1, 0] : (tensor<6x4x2xf64>) -> tensor<2x4x6xf64>
    %2 = nn.reshape %1 : (tensor<2x4x6xf64>) -> tensor<2x4x1x6xf64>
    %3 = nn.reshape %x : (tensor<2x4x6xf64>) -> tensor<2x4x1x6xf64>
    %e = nn.mul %2, %3 : tensor<2x4x1x6xf64>
    %m = nn.reduce max %z dims [2] : (tensor<4x1x3xf64>) -> tensor<4x1xf64>
    %ma = nn.concat %m, %a dim 1 : (tensor<4x1xf64>, tensor<4x1xf64>) -> tensor<4x2xf64>
    %4 = nn.mul %ma, %b : tensor<4x2xf64>
    %own = nn.reduce sum %4 dims [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    %whole = dist.all_reduce sum %own over @mesh {cp} : tensor<4xf64>
    return %y, %e, %whole : tensor<2x4x6xf64>, tensor<2x4x1x6xf64>, tensor<4xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- both-train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<2x8x6xf64> {nn.input = "x"}, %h: tensor<2x6xf64> {nn.input = "h"}) -> (tensor<2x8x6xf64> {nn.output = "y"}) attributes {nn.entry} {
    %h0 = nn.reshape %h : (tensor<2x6xf64>) -> tensor<2x1x6xf64>
    %h1 = nn.broadcast %h0 : (tensor<2x1x6xf64>) -> tensor<2x8x6xf64>
    %0 = nn.reshape %h1 : (tensor<2x8x6xf64>) -> tensor<16x6xf64>
    %h2 = nn.exp %0 : tensor<16x6xf64>
    %h3 = nn.reshape %h2 : (tensor<16x6xf64>) -> tensor<2x8x6xf64>
    %y = nn.mul %x, %h3 : tensor<2x8x6xf64>
    return %y : tensor<2x8x6xf64>
  }
}
//--- both-local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2, "cp" = 2]
  func.func @main(%x: tensor<1x4x6xf64> {dist.layout = #dist.layout<@mesh [2 by {dp}, 8 by {cp}, 6], interleaved = <1[2] times 4 by 2>>, nn.input = "x"}, %h: tensor<1x6xf64> {dist.layout = #dist.layout<@mesh [2 by {dp}, 6]>, nn.input = "h"})
      -> (tensor<1x4x6xf64> {dist.layout = #dist.layout<@mesh [2 by {dp}, 8 by {cp}, 6], interleaved = <1[2] times 4 by 2>>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %h0 = nn.reshape %h : (tensor<1x6xf64>) -> tensor<1x1x6xf64>
    %h1 = nn.broadcast %h0 : (tensor<1x1x6xf64>) -> tensor<1x4x6xf64>
    %0 = nn.reshape %h1 : (tensor<1x4x6xf64>) -> tensor<4x6xf64>
    %h2 = nn.exp %0 : tensor<4x6xf64>
    %h3 = nn.reshape %h2 : (tensor<4x6xf64>) -> tensor<1x4x6xf64>
    %y = nn.mul %x, %h3 : tensor<1x4x6xf64>
    return %y : tensor<1x4x6xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
