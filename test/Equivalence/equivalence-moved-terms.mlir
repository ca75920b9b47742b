// What is cut out of a view of a sum may be cut out of each term in the term's own shape.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Other rows, of one term and of all; a term twice; columns for rows; another rank's columns.
// REDEFINE: %{edit} = s/nn.slice %2 starts \[0, 0\]/nn.slice %2 starts [1, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/starts \[0, 0/starts [3, 0/;s/nn.slice %6 starts \[3, 0, 0\]/nn.slice %6 starts [0, 3, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.add %3, %5/nn.add %3, %3/
// RUN: %{refused}
// REDEFINE: %{edit} = s/all_slice %b over @mesh {sp} dim 1 : (tensor<6x12xf64>) -> tensor<6x6xf64>/all_slice %a over @mesh {sp} dim 1 : (tensor<6x12xf64>) -> tensor<6x6xf64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%2 = dist.all_slice %a over @mesh {sp} dim 1/%2 = nn.slice %a starts [0, 6] sizes [6, 6] steps [1, 1]/
// RUN: %{refused}
// What is padded with another number is so once, not once for each term.
// RUN: sed 's/dense<0.0>/dense<1.0>/' %t/train.mlir > %t/one-train.mlir
// RUN: sed 's/dense<0.0>/dense<1.0>/' %t/local.mlir > %t/one.mlir
// RUN: not acc-opt %t/one.mlir --dist-verify-equivalence=logical=%t/one-train.mlir -o /dev/null 2>&1 | FileCheck %s

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<6x12xf64> {nn.input = "x"}, %y: tensor<1x6x12xf64> {nn.input = "y"}) -> (tensor<3x12xf64> {nn.output = "z"}, tensor<7x12xf64> {nn.output = "w"}) attributes {nn.entry} {
    %a = nn.exp %x : tensor<6x12xf64>
    %b = nn.tanh %x : tensor<6x12xf64>
    %c = nn.abs %y : tensor<1x6x12xf64>
    %q = nn.add %a, %b : tensor<6x12xf64>
    %r = nn.reshape %q : (tensor<6x12xf64>) -> tensor<1x6x12xf64>
    %f = nn.sin %x : tensor<6x12xf64>
    %g = nn.reshape %f : (tensor<6x12xf64>) -> tensor<1x6x12xf64>
    %cg = nn.add %c, %g : tensor<1x6x12xf64>
    %0 = nn.add %cg, %r : tensor<1x6x12xf64>
    %1 = nn.slice %0 starts [0, 0, 0] sizes [1, 3, 12] steps [1, 1, 1] : (tensor<1x6x12xf64>) -> tensor<1x3x12xf64>
    %z = nn.reshape %1 : (tensor<1x3x12xf64>) -> tensor<3x12xf64>
    %zero = nn.constant dense<0.0> : tensor<f64>
    %e = nn.pad %0, %zero low [0, 1, 0] high [0, 0, 0] : (tensor<1x6x12xf64>, tensor<f64>) -> tensor<1x7x12xf64>
    %w = nn.reshape %e : (tensor<1x7x12xf64>) -> tensor<7x12xf64>
    return %z, %w : tensor<3x12xf64>, tensor<7x12xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["sp" = 2]
  func.func @main(%x: tensor<6x12xf64> {dist.layout = #dist.layout<@mesh [6, 12]>, nn.input = "x"}, %y: tensor<1x6x12xf64> {dist.layout = #dist.layout<@mesh [1, 6, 12]>, nn.input = "y"})
      -> (tensor<3x6xf64> {dist.layout = #dist.layout<@mesh [3, 12 by {sp}]>, nn.output = "z"}, tensor<7x6xf64> {dist.layout = #dist.layout<@mesh [7, 12 by {sp}]>, nn.output = "w"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %a = nn.exp %x : tensor<6x12xf64>
    %b = nn.tanh %x : tensor<6x12xf64>
    %c = nn.abs %y : tensor<1x6x12xf64>
    %2 = dist.all_slice %a over @mesh {sp} dim 1 : (tensor<6x12xf64>) -> tensor<6x6xf64>
    %3 = nn.slice %2 starts [0, 0] sizes [3, 6] steps [1, 1] : (tensor<6x6xf64>) -> tensor<3x6xf64>
    %4 = dist.all_slice %b over @mesh {sp} dim 1 : (tensor<6x12xf64>) -> tensor<6x6xf64>
    %5 = nn.slice %4 starts [0, 0] sizes [3, 6] steps [1, 1] : (tensor<6x6xf64>) -> tensor<3x6xf64>
    %d = nn.add %3, %5 : tensor<3x6xf64>
    %f = nn.sin %x : tensor<6x12xf64>
    %g = dist.all_slice %f over @mesh {sp} dim 1 : (tensor<6x12xf64>) -> tensor<6x6xf64>
    %h = nn.slice %g starts [0, 0] sizes [3, 6] steps [1, 1] : (tensor<6x6xf64>) -> tensor<3x6xf64>
    %dh = nn.add %d, %h : tensor<3x6xf64>
    %6 = dist.all_slice %c over @mesh {sp} dim 2 : (tensor<1x6x12xf64>) -> tensor<1x6x6xf64>
    %7 = nn.slice %6 starts [0, 0, 0] sizes [1, 3, 6] steps [1, 1, 1] : (tensor<1x6x6xf64>) -> tensor<1x3x6xf64>
    %8 = nn.reshape %7 : (tensor<1x3x6xf64>) -> tensor<3x6xf64>
    %z = nn.add %8, %dh : tensor<3x6xf64>
    %zero = nn.constant dense<0.0> : tensor<f64>
    %9 = nn.pad %2, %zero low [1, 0] high [0, 0] : (tensor<6x6xf64>, tensor<f64>) -> tensor<7x6xf64>
    %10 = nn.pad %4, %zero low [1, 0] high [0, 0] : (tensor<6x6xf64>, tensor<f64>) -> tensor<7x6xf64>
    %e = nn.add %9, %10 : tensor<7x6xf64>
    %k = nn.pad %g, %zero low [1, 0] high [0, 0] : (tensor<6x6xf64>, tensor<f64>) -> tensor<7x6xf64>
    %ek = nn.add %e, %k : tensor<7x6xf64>
    %11 = nn.pad %6, %zero low [0, 1, 0] high [0, 0, 0] : (tensor<1x6x6xf64>, tensor<f64>) -> tensor<1x7x6xf64>
    %12 = nn.reshape %11 : (tensor<1x7x6xf64>) -> tensor<7x6xf64>
    %w = nn.add %12, %ek : tensor<7x6xf64>
    return %z, %w : tensor<3x6xf64>, tensor<7x6xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
