// Terms that a rank adds before the program would: what is linear may be done to their sum, which
// the program has nowhere, and nothing else may.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Another reduction, a term twice, other rows, no sum over ranks, and one over those that have the same.
// REDEFINE: %{edit} = s/nn.reduce sum %d/nn.reduce max %d/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%d = nn.add %b, %c/%d = nn.add %b, %b/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.slice %r starts \[0\]/nn.slice %r starts [1]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum %9 over @mesh {tp}/nn.complete %9/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum %9 over @mesh {tp}/dist.all_reduce sum %9 over @mesh {dp}/
// RUN: %{refused}
// What is padded with another number is so once, not once for each term.
// RUN: sed 's/dense<0.0>/dense<1.0>/' %t/train.mlir > %t/one-train.mlir
// RUN: sed 's/dense<0.0>/dense<1.0>/' %t/local.mlir > %t/one.mlir
// RUN: not acc-opt %t/one.mlir --dist-verify-equivalence=logical=%t/one-train.mlir -o /dev/null 2>&1 | FileCheck %s
// The square of a sum, and its exponential.
// REDEFINE: %{edit} = s/%gg = nn.mul %e, %e/%gg = nn.mul %n, %n/;s/%h, %4/%h, %gg/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%ee = nn.exp %e/%ee = nn.exp %n/;s/%h, %5/%h, %ee/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<8x6xf64> {nn.input = "x"}, %h: tensor<8x4xf64> {nn.input = "h"}, %w: tensor<4x6xf64> {nn.input = "w"}, %v: tensor<4x6xf64> {nn.input = "v"})
      -> (tensor<6xf64> {nn.output = "y"}, tensor<8x4xf64> {nn.output = "s"}, tensor<8x4xf64> {nn.output = "t"}) attributes {nn.entry} {
    %b = nn.matmul %h, %w : (tensor<8x4xf64>, tensor<4x6xf64>) -> tensor<8x6xf64>
    %c = nn.matmul %h, %v : (tensor<8x4xf64>, tensor<4x6xf64>) -> tensor<8x6xf64>
    %0 = nn.add %x, %b : tensor<8x6xf64>
    %1 = nn.add %0, %c : tensor<8x6xf64>
    %2 = nn.reduce sum %1 dims [0] : (tensor<8x6xf64>) -> tensor<6xf64>
    %3 = nn.slice %2 starts [0] sizes [5] steps [1] : (tensor<6xf64>) -> tensor<5xf64>
    %zero = nn.constant dense<0.0> : tensor<f64>
    %y = nn.pad %3, %zero low [0] high [1] : (tensor<5xf64>, tensor<f64>) -> tensor<6xf64>
    %e = nn.tanh %h : tensor<8x4xf64>
    %f = nn.abs %h : tensor<8x4xf64>
    %gg = nn.mul %e, %e : tensor<8x4xf64>
    %hh = nn.mul %f, %f : tensor<8x4xf64>
    %4 = nn.add %h, %gg : tensor<8x4xf64>
    %s = nn.add %4, %hh : tensor<8x4xf64>
    %ee = nn.exp %e : tensor<8x4xf64>
    %ff = nn.exp %f : tensor<8x4xf64>
    %5 = nn.add %h, %ee : tensor<8x4xf64>
    %t = nn.add %5, %ff : tensor<8x4xf64>
    return %y, %s, %t : tensor<6xf64>, tensor<8x4xf64>, tensor<8x4xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2, "tp" = 2]
  func.func @main(%x: tensor<8x6xf64> {dist.layout = #dist.layout<@mesh [8, 6]>, nn.input = "x"}, %h: tensor<8x2xf64> {dist.layout = #dist.layout<@mesh [8, 4 by {tp}]>, nn.input = "h"}, %w: tensor<2x6xf64> {dist.layout = #dist.layout<@mesh [4 by {tp}, 6]>, nn.input = "w"}, %v: tensor<2x6xf64> {dist.layout = #dist.layout<@mesh [4 by {tp}, 6]>, nn.input = "v"})
      -> (tensor<6xf64> {dist.layout = #dist.layout<@mesh [6]>, nn.output = "y"}, tensor<8x2xf64> {dist.layout = #dist.layout<@mesh [8, 4 by {tp}]>, nn.output = "s"}, tensor<8x2xf64> {dist.layout = #dist.layout<@mesh [8, 4 by {tp}]>, nn.output = "t"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %b = nn.matmul %h, %w : (tensor<8x2xf64>, tensor<2x6xf64>) -> tensor<8x6xf64>
    %c = nn.matmul %h, %v : (tensor<8x2xf64>, tensor<2x6xf64>) -> tensor<8x6xf64>
    %d = nn.add %b, %c : tensor<8x6xf64>
    %r = nn.reduce sum %d dims [0] : (tensor<8x6xf64>) -> tensor<6xf64>
    %q = nn.slice %r starts [0] sizes [5] steps [1] : (tensor<6xf64>) -> tensor<5xf64>
    %zero = nn.constant dense<0.0> : tensor<f64>
    %9 = nn.pad %q, %zero low [0] high [1] : (tensor<5xf64>, tensor<f64>) -> tensor<6xf64>
    %o = dist.all_reduce sum %9 over @mesh {tp} : tensor<6xf64>
    %1 = nn.reduce sum %x dims [0] : (tensor<8x6xf64>) -> tensor<6xf64>
    %2 = nn.slice %1 starts [0] sizes [5] steps [1] : (tensor<6xf64>) -> tensor<5xf64>
    %3 = nn.pad %2, %zero low [0] high [1] : (tensor<5xf64>, tensor<f64>) -> tensor<6xf64>
    %y = nn.add %3, %o : tensor<6xf64>
    %e = nn.tanh %h : tensor<8x2xf64>
    %f = nn.abs %h : tensor<8x2xf64>
    %n = nn.add %e, %f : tensor<8x2xf64>
    %gg = nn.mul %e, %e : tensor<8x2xf64>
    %hh = nn.mul %f, %f : tensor<8x2xf64>
    %4 = nn.add %gg, %hh : tensor<8x2xf64>
    %s = nn.add %h, %4 : tensor<8x2xf64>
    %ee = nn.exp %e : tensor<8x2xf64>
    %ff = nn.exp %f : tensor<8x2xf64>
    %5 = nn.add %ee, %ff : tensor<8x2xf64>
    %t = nn.add %h, %5 : tensor<8x2xf64>
    return %y, %s, %t : tensor<6xf64>, tensor<8x2xf64>, tensor<8x2xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
