// Sums of what was cut and padded before, cut and padded again (rows written behind one block
// after another): done to each term, of which one is itself then, and is found in any order.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Of the other term the rows that are not cut off; other rows; a term twice.
// REDEFINE: %{edit} = s/reduce sum %ez /reduce sum %e /
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.slice %e starts .0, 0./nn.slice %e starts [1, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.add %er, [^ ]* /nn.add %er, %er /
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %y: tensor<4x2xf32> {nn.input = "y"})
      -> (tensor<2xf32> {nn.output = "s"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<f32>
    %c = nn.slice %x starts [0, 0] sizes [3, 2] steps [1, 1] : (tensor<4x2xf32>) -> tensor<3x2xf32>
    %p = nn.pad %c, %zero low [0, 0] high [1, 0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<4x2xf32>
    %t = nn.reduce sum %p dims [0] : (tensor<4x2xf32>) -> tensor<2xf32>
    %e = nn.exp %y : tensor<4x2xf32>
    %sum = nn.add %p, %e : tensor<4x2xf32>
    %cut = nn.slice %sum starts [0, 0] sizes [3, 2] steps [1, 1] : (tensor<4x2xf32>) -> tensor<3x2xf32>
    %z = nn.pad %cut, %zero low [0, 0] high [1, 0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<4x2xf32>
    %r = nn.reduce sum %z dims [0] : (tensor<4x2xf32>) -> tensor<2xf32>
    %s = nn.mul %r, %t : tensor<2xf32>
    return %s : tensor<2xf32>
  }
}
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<4x1xf32> {dist.layout = #dist.layout<@mesh [4, 2 by {dp}]>, nn.input = "x"}, %y: tensor<4x1xf32> {dist.layout = #dist.layout<@mesh [4, 2 by {dp}]>, nn.input = "y"})
      -> (tensor<1xf32> {dist.layout = #dist.layout<@mesh [2 by {dp}]>, nn.output = "s"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<f32>
    %c = nn.slice %x starts [0, 0] sizes [3, 1] steps [1, 1] : (tensor<4x1xf32>) -> tensor<3x1xf32>
    %p = nn.pad %c, %zero low [0, 0] high [1, 0] : (tensor<3x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %t = nn.reduce sum %p dims [0] : (tensor<4x1xf32>) -> tensor<1xf32>
    %pc = nn.slice %p starts [0, 0] sizes [3, 1] steps [1, 1] : (tensor<4x1xf32>) -> tensor<3x1xf32>
    %pz = nn.pad %pc, %zero low [0, 0] high [1, 0] : (tensor<3x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %prior = nn.reduce sum %pz dims [0] : (tensor<4x1xf32>) -> tensor<1xf32>
    %e = nn.exp %y : tensor<4x1xf32>
    %ec = nn.slice %e starts [0, 0] sizes [3, 1] steps [1, 1] : (tensor<4x1xf32>) -> tensor<3x1xf32>
    %ez = nn.pad %ec, %zero low [0, 0] high [1, 0] : (tensor<3x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %er = nn.reduce sum %ez dims [0] : (tensor<4x1xf32>) -> tensor<1xf32>
    %r = nn.add %er, %prior : tensor<1xf32>
    %s = nn.mul %r, %t : tensor<1xf32>
    return %s : tensor<1xf32>
  }
  dist.schedule @sc entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
