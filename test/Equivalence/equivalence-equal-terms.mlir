// Equal elements as terms: what is linear in a difference of which one part is a constant is done
// to both, and a constant is added in any order, once for all ranks. Parts of a fused gradient of
// which one is equal along rows are joined as the others' rows. What is cut out of a tensor is
// what is cut out of its reshape, whatever else it is known to be.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else|found \[)}}

// The ones of a rank's own rows beside the sum over all ranks; another number; the other way round.
// REDEFINE: %{edit} = s/all_reduce sum %d over/all_reduce sum %rx over/;s/return %m,/%mm = nn.sub %rc, %m : tensor<3xf64> return %mm,/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%c = nn.constant dense<1.0>/%c = nn.constant dense<2.0>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.sub %rc, %rx/nn.sub %rx, %rc/
// RUN: %{refused}
// The constant is a term of each rank; another; twice.
// REDEFINE: %{edit} = s/%ab = nn.add %a, %b : tensor<3xf64>/%a0 = nn.add %a, %b : tensor<3xf64> %ab = nn.add %half, %a0 : tensor<3xf64>/;s/%y = nn.add %half, %all : tensor<3xf64>//;s/return %m, %y/return %m, %all/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%ab = nn.add %a, %b : tensor<3xf64>/%a0 = nn.add %a, %b : tensor<3xf64> %ab = nn.add %a0, %half : tensor<3xf64>/;s/%y = nn.add %half, %all : tensor<3xf64>//;s/return %m, %y/return %m, %all/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%half = nn.constant dense<0.5>/%half = nn.constant dense<1.0>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.add %half, %all/nn.add %half, %half/
// RUN: %{refused}
// Parts in another order, or of other rows than the rank's.
// REDEFINE: %{edit} = s/nn.concat %e, %q dim/nn.concat %q, %e dim/
// RUN: %{refused}
// REDEFINE: %{edit} = s/\[4, 8 by {tp}\]/[4, 8 by {dp}]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/\[4 by {dp}, 8 by {tp}\]>, nn.input = "r"/[4 by {cp}, 8 by {tp}]>, nn.input = "r"/
// RUN: %{refused}
// Another row, another factor.
// REDEFINE: %{edit} = s/%cut = nn.slice %u starts .0, 1, 0./%cut = nn.slice %u starts [0, 0, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.mul %cut, %k/nn.mul %cut, %cut/
// RUN: %{refused}
// Equal elements that the program gives a shape of more dimensions than a rank does.
// RUN: acc-opt %t/flat-local.mlir --dist-verify-equivalence=logical=%t/flat-train.mlir -o /dev/null
// RUN: sed 's/dist.all_reduce sum %3 over @mesh {tp}/dist.all_reduce max %3 over @mesh {tp}/' %t/flat-local.mlir > %t/m.mlir
// RUN: not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/flat-train.mlir -o /dev/null 2>&1 | FileCheck %s

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4x3xf64> {nn.input = "x"}, %g: tensor<8xf64> {nn.input = "g"}, %h: tensor<4x8xf64> {nn.input = "h"}, %p: tensor<4x8xf64> {nn.input = "p"}, %r: tensor<4x8xf64> {nn.input = "r"}, %w: tensor<16x3xf64> {nn.input = "w"}, %u: tensor<2x2x3xf64> {nn.input = "u"})
      -> (tensor<3xf64> {nn.output = "m"}, tensor<3xf64> {nn.output = "y"}, tensor<3xf64> {nn.output = "numbers"}, tensor<4x3xf64> {nn.output = "back"}, tensor<4x3xf64> {nn.output = "rows"}, tensor<2x1x3xf64> {nn.output = "third"}, tensor<2x1x3xf64> {nn.output = "other"}) attributes {nn.entry} {
    %c = nn.constant dense<1.0> : tensor<4x3xf64>
    %s = nn.sub %c, %x : tensor<4x3xf64>
    %m = nn.reduce sum %s dims [0] : (tensor<4x3xf64>) -> tensor<3xf64>

    %half = nn.constant dense<0.5> : tensor<3xf64>
    %e0 = nn.exp %x : tensor<4x3xf64>
    %t0 = nn.tanh %x : tensor<4x3xf64>
    %a = nn.reduce sum %e0 dims [0] : (tensor<4x3xf64>) -> tensor<3xf64>
    %b = nn.reduce sum %t0 dims [0] : (tensor<4x3xf64>) -> tensor<3xf64>
    %0 = nn.add %half, %a : tensor<3xf64>
    %y = nn.add %0, %b : tensor<3xf64>
    %one = nn.constant dense<1.0> : tensor<3xf64>
    %numbers = nn.add %half, %one : tensor<3xf64>

    %e = nn.broadcast %g : (tensor<8xf64>) -> tensor<4x8xf64>
    %q = nn.exp %h : tensor<4x8xf64>
    %eq = nn.concat %e, %q dim 1 : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x16xf64>
    %back = nn.matmul %eq, %w : (tensor<4x16xf64>, tensor<16x3xf64>) -> tensor<4x3xf64>
    %pr = nn.concat %p, %r dim 1 : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x16xf64>
    %rows = nn.matmul %pr, %w : (tensor<4x16xf64>, tensor<16x3xf64>) -> tensor<4x3xf64>

    %k = nn.constant dense<0.3> : tensor<2x1x3xf64>
    %1 = nn.reshape %u : (tensor<2x2x3xf64>) -> tensor<2x1x2x3xf64>
    %2 = nn.slice %1 starts [0, 0, 1, 0] sizes [2, 1, 1, 3] steps [1, 1, 1, 1] : (tensor<2x1x2x3xf64>) -> tensor<2x1x1x3xf64>
    %3 = nn.reshape %2 : (tensor<2x1x1x3xf64>) -> tensor<2x1x3xf64>
    %4 = nn.mul %3, %k : tensor<2x1x3xf64>
    %5 = nn.exp %u : tensor<2x2x3xf64>
    %6 = nn.add %u, %5 : tensor<2x2x3xf64>
    %7 = nn.slice %6 starts [0, 1, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    return %m, %y, %numbers, %back, %rows, %4, %7 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<4x3xf64>, tensor<4x3xf64>, tensor<2x1x3xf64>, tensor<2x1x3xf64>
  }
}

//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2, "cp" = 2, "tp" = 2]
  func.func @main(%x: tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 3]>, nn.input = "x"}, %g: tensor<4xf64> {dist.layout = #dist.layout<@mesh [8 by {tp}]>, nn.input = "g"}, %h: tensor<4x4xf64> {dist.layout = #dist.layout<@mesh [4, 8 by {tp}]>, nn.input = "h"}, %p: tensor<2x4xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 8 by {tp}]>, nn.input = "p"}, %r: tensor<2x4xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 8 by {tp}]>, nn.input = "r"}, %w: tensor<8x3xf64> {dist.layout = #dist.layout<@mesh [16 by {tp}, 3], interleaved = <0 [8, 8] by 2>>, nn.input = "w"}, %u: tensor<2x2x3xf64> {dist.layout = #dist.layout<@mesh [2, 2, 3]>, nn.input = "u"})
      -> (tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.output = "m"}, tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.output = "y"}, tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.output = "numbers"}, tensor<4x3xf64> {dist.layout = #dist.layout<@mesh [4, 3]>, nn.output = "back"}, tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 3]>, nn.output = "rows"}, tensor<2x1x3xf64> {dist.layout = #dist.layout<@mesh [2, 1, 3]>, nn.output = "third"}, tensor<2x1x3xf64> {dist.layout = #dist.layout<@mesh [2, 1, 3]>, nn.output = "other"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %c = nn.constant dense<1.0> : tensor<2x3xf64>
    %rc = nn.reduce sum %c dims [0] : (tensor<2x3xf64>) -> tensor<3xf64>
    %rx = nn.reduce sum %x dims [0] : (tensor<2x3xf64>) -> tensor<3xf64>
    %d = nn.sub %rc, %rx : tensor<3xf64>
    %m = dist.all_reduce sum %d over @mesh {dp} : tensor<3xf64>

    %half = nn.constant dense<0.5> : tensor<3xf64>
    %e0 = nn.exp %x : tensor<2x3xf64>
    %t0 = nn.tanh %x : tensor<2x3xf64>
    %a = nn.reduce sum %e0 dims [0] : (tensor<2x3xf64>) -> tensor<3xf64>
    %b = nn.reduce sum %t0 dims [0] : (tensor<2x3xf64>) -> tensor<3xf64>
    %ab = nn.add %a, %b : tensor<3xf64>
    %all = dist.all_reduce sum %ab over @mesh {dp} : tensor<3xf64>
    %y = nn.add %half, %all : tensor<3xf64>
    %five = nn.constant dense<0.5> : tensor<3xf64>
    %one = nn.constant dense<1.0> : tensor<3xf64>
    %numbers = nn.add %five, %one : tensor<3xf64>

    %e = nn.broadcast %g : (tensor<4xf64>) -> tensor<4x4xf64>
    %q = nn.exp %h : tensor<4x4xf64>
    %eq = nn.concat %e, %q dim 1 : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x8xf64>
    %back0 = nn.matmul %eq, %w : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
    %back = dist.all_reduce sum %back0 over @mesh {tp} : tensor<4x3xf64>
    %pr = nn.concat %p, %r dim 1 : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x8xf64>
    %rows0 = nn.matmul %pr, %w : (tensor<2x8xf64>, tensor<8x3xf64>) -> tensor<2x3xf64>
    %rows = dist.all_reduce sum %rows0 over @mesh {tp} : tensor<2x3xf64>

    %k = nn.constant dense<0.3> : tensor<2x1x3xf64>
    %cut = nn.slice %u starts [0, 1, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    %4 = nn.mul %cut, %k : tensor<2x1x3xf64>
    %5 = nn.exp %u : tensor<2x2x3xf64>
    %6 = nn.slice %5 starts [0, 1, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    %7 = nn.add %cut, %6 : tensor<2x1x3xf64>
    return %m, %y, %numbers, %back, %rows, %4, %7 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<4x3xf64>, tensor<2x3xf64>, tensor<2x1x3xf64>, tensor<2x1x3xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- flat-train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<6x1xf64> {nn.input = "x"})
      -> (tensor<f64> {nn.output = "s"}, tensor<2x3x4xf64> {nn.output = "cube"}) attributes {nn.entry} {
    %0 = nn.broadcast %x : (tensor<6x1xf64>) -> tensor<6x4xf64>
    %cube = nn.reshape %0 : (tensor<6x4xf64>) -> tensor<2x3x4xf64>
    %1 = nn.reshape %0 : (tensor<6x4xf64>) -> tensor<24xf64>
    %2 = nn.reduce sum %1 dims [0] : (tensor<24xf64>) -> tensor<f64>
    return %2, %cube : tensor<f64>, tensor<2x3x4xf64>
  }
}

//--- flat-local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2, "tp" = 2]
  func.func @main(%x: tensor<6x1xf64> {dist.layout = #dist.layout<@mesh [6, 1]>, nn.input = "x"})
      -> (tensor<f64> {dist.layout = #dist.layout<@mesh []>, nn.output = "s"}, tensor<2x3x4xf64> {dist.layout = #dist.layout<@mesh [2, 3, 4]>, nn.output = "cube"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %0 = nn.broadcast %x : (tensor<6x1xf64>) -> tensor<6x4xf64>
    %cube = nn.reshape %0 : (tensor<6x4xf64>) -> tensor<2x3x4xf64>
    %1 = nn.broadcast %x : (tensor<6x1xf64>) -> tensor<6x2xf64>
    %2 = nn.reshape %1 : (tensor<6x2xf64>) -> tensor<12xf64>
    %3 = nn.reduce sum %2 dims [0] : (tensor<12xf64>) -> tensor<f64>
    %s = dist.all_reduce sum %3 over @mesh {tp} : tensor<f64>
    return %s, %cube : tensor<f64>, tensor<2x3x4xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
