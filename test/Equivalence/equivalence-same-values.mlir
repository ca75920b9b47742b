// Values of the program that are one though its ops read others: what is summed in another order
// of rows, what is cut out of a view, what is joined with a tensor that has no elements, equal
// elements beside equal ones; and a term of a sum that is a view before it is reduced.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %t/train.mlir --tolerance 1e-12
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else|found \[)}}

// Columns where rows were; the largest; of some ranks alone.
// REDEFINE: %{edit} = s/%xm = nn.reshape %x /%xt = nn.transpose %x [0, 2, 1] : (tensor<2x3x3xf64>) -> tensor<2x3x3xf64> %xm = nn.reshape %xt /
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.reduce sum %xm /nn.reduce max %xm /;s/all_reduce sum %xr/all_reduce max %xr/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.tanh %xs /nn.tanh %xr /
// RUN: %{refused}
// Another row; one of the other term; in another order.
// REDEFINE: %{edit} = s/%cut = nn.slice %u starts .0, 1, 0./%cut = nn.slice %u starts [0, 0, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%cut = nn.slice %u /%cut = nn.slice %eu /
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.concat %first, %half dim/nn.concat %half, %first dim/
// RUN: %{refused}
// Joined with what has no elements, another tensor.
// REDEFINE: %{edit} = s/nn.exp %joined /nn.exp %v /
// RUN: %{refused}
// Other elements.
// REDEFINE: %{edit} = s/%ones = nn.constant dense<1.0>/%ones = nn.constant dense<2.0>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.concat %ones, %ones dim/nn.concat %ones, %w dim/
// RUN: %{refused}
// A term of a sum twice, and of another.
// REDEFINE: %{edit} = s/nn.add %br, %qr/nn.add %br, %br/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%bm = nn.reshape %b0 : (tensor<2x2x3xf64>)/%bm = nn.reshape %nq : (tensor<2x1x2x3xf64>)/
// RUN: %{refused}

//--- train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%x: tensor<4x3x3xf64> {nn.input = "x"}, %u: tensor<4x2x3xf64> {nn.input = "u"}, %v: tensor<4x3xf64> {nn.input = "v"}, %w: tensor<1x3xf64> {nn.input = "w"}, %b0: tensor<4x2x3xf64> {nn.input = "p"}, %q: tensor<4x1x2x3xf64> {nn.input = "q"})
      -> (tensor<3xf64> {nn.output = "orders"}, tensor<4x2x3xf64> {nn.output = "cuts"}, tensor<4x1x3xf64> {nn.output = "others"}, tensor<4x3xf64> {nn.output = "nothing"}, tensor<2x3xf64> {nn.output = "equal"}, tensor<3xf64> {nn.output = "terms"}) attributes {nn.entry} {
    %0 = nn.reshape %x : (tensor<4x3x3xf64>) -> tensor<12x3xf64>
    %1 = nn.reduce sum %0 dims [0] : (tensor<12x3xf64>) -> tensor<3xf64>
    %2 = nn.transpose %x [1, 0, 2] : (tensor<4x3x3xf64>) -> tensor<3x4x3xf64>
    %3 = nn.reshape %2 : (tensor<3x4x3xf64>) -> tensor<12x3xf64>
    %4 = nn.reduce sum %3 dims [0] : (tensor<12x3xf64>) -> tensor<3xf64>
    %5 = nn.exp %1 : tensor<3xf64>
    %6 = nn.tanh %4 : tensor<3xf64>
    %orders = nn.mul %5, %6 : tensor<3xf64>

    %k = nn.constant dense<0.5> : tensor<4x1x3xf64>
    %7 = nn.reshape %u : (tensor<4x2x3xf64>) -> tensor<4x1x2x3xf64>
    %8 = nn.slice %7 starts [0, 0, 0, 0] sizes [4, 1, 1, 3] steps [1, 1, 1, 1] : (tensor<4x1x2x3xf64>) -> tensor<4x1x1x3xf64>
    %9 = nn.slice %7 starts [0, 0, 1, 0] sizes [4, 1, 1, 3] steps [1, 1, 1, 1] : (tensor<4x1x2x3xf64>) -> tensor<4x1x1x3xf64>
    %10 = nn.reshape %9 : (tensor<4x1x1x3xf64>) -> tensor<4x1x3xf64>
    %11 = nn.mul %10, %k : tensor<4x1x3xf64>
    %12 = nn.reshape %11 : (tensor<4x1x3xf64>) -> tensor<4x1x1x3xf64>
    %13 = nn.concat %8, %12 dim 2 : (tensor<4x1x1x3xf64>, tensor<4x1x1x3xf64>) -> tensor<4x1x2x3xf64>
    %cuts = nn.reshape %13 : (tensor<4x1x2x3xf64>) -> tensor<4x2x3xf64>
    %14 = nn.exp %u : tensor<4x2x3xf64>
    %15 = nn.add %u, %14 : tensor<4x2x3xf64>
    %16 = nn.slice %15 starts [0, 0, 0] sizes [4, 1, 3] steps [1, 1, 1] : (tensor<4x2x3xf64>) -> tensor<4x1x3xf64>
    %17 = nn.slice %15 starts [0, 1, 0] sizes [4, 1, 3] steps [1, 1, 1] : (tensor<4x2x3xf64>) -> tensor<4x1x3xf64>
    %others = nn.mul %16, %17 : tensor<4x1x3xf64>

    %18 = nn.tanh %v : tensor<4x3xf64>
    %19 = nn.slice %18 starts [0, 0] sizes [4, 0] steps [1, 1] : (tensor<4x3xf64>) -> tensor<4x0xf64>
    %20 = nn.concat %18, %19 dim 1 : (tensor<4x3xf64>, tensor<4x0xf64>) -> tensor<4x3xf64>
    %nothing = nn.exp %20 : tensor<4x3xf64>

    %21 = nn.constant dense<1.0> : tensor<1x3xf64>
    %22 = nn.reshape %21 : (tensor<1x3xf64>) -> tensor<1x1x3xf64>
    %23 = nn.concat %22, %22 dim 1 : (tensor<1x1x3xf64>, tensor<1x1x3xf64>) -> tensor<1x2x3xf64>
    %24 = nn.reshape %23 : (tensor<1x2x3xf64>) -> tensor<2x3xf64>
    %25 = nn.concat %w, %w dim 0 : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<2x3xf64>
    %equal = nn.sub %24, %25 : tensor<2x3xf64>

    %26 = nn.reshape %b0 : (tensor<4x2x3xf64>) -> tensor<8x3xf64>
    %27 = nn.exp %26 : tensor<8x3xf64>
    %28 = nn.tanh %q : tensor<4x1x2x3xf64>
    %29 = nn.reshape %28 : (tensor<4x1x2x3xf64>) -> tensor<4x2x3xf64>
    %30 = nn.add %b0, %29 : tensor<4x2x3xf64>
    %31 = nn.reshape %30 : (tensor<4x2x3xf64>) -> tensor<8x3xf64>
    %32 = nn.reduce sum %31 dims [0] : (tensor<8x3xf64>) -> tensor<3xf64>
    %33 = nn.reduce sum %27 dims [0] : (tensor<8x3xf64>) -> tensor<3xf64>
    %terms = nn.mul %32, %33 : tensor<3xf64>
    return %orders, %cuts, %others, %nothing, %equal, %terms : tensor<3xf64>, tensor<4x2x3xf64>, tensor<4x1x3xf64>, tensor<4x3xf64>, tensor<2x3xf64>, tensor<3xf64>
  }
}
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<2x3x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 3, 3]>, nn.input = "x"}, %u: tensor<2x2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 2, 3]>, nn.input = "u"}, %v: tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 3]>, nn.input = "v"}, %w: tensor<1x3xf64> {dist.layout = #dist.layout<@mesh [1, 3]>, nn.input = "w"}, %b0: tensor<2x2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 2, 3]>, nn.input = "p"}, %q: tensor<2x1x2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 1, 2, 3]>, nn.input = "q"})
      -> (tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.output = "orders"}, tensor<2x2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 2, 3]>, nn.output = "cuts"}, tensor<2x1x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 1, 3]>, nn.output = "others"}, tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 3]>, nn.output = "nothing"}, tensor<2x3xf64> {dist.layout = #dist.layout<@mesh [2, 3]>, nn.output = "equal"}, tensor<3xf64> {dist.layout = #dist.layout<@mesh [3]>, nn.output = "terms"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %xm = nn.reshape %x : (tensor<2x3x3xf64>) -> tensor<6x3xf64>
    %xr = nn.reduce sum %xm dims [0] : (tensor<6x3xf64>) -> tensor<3xf64>
    %xs = dist.all_reduce sum %xr over @mesh {dp} : tensor<3xf64>
    %ex = nn.exp %xs : tensor<3xf64>
    %tx = nn.tanh %xs : tensor<3xf64>
    %orders = nn.mul %ex, %tx : tensor<3xf64>

    %k = nn.constant dense<0.5> : tensor<2x1x3xf64>
    %eu = nn.exp %u : tensor<2x2x3xf64>
    %first = nn.slice %u starts [0, 0, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    %cut = nn.slice %u starts [0, 1, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    %half = nn.mul %cut, %k : tensor<2x1x3xf64>
    %cuts = nn.concat %first, %half dim 1 : (tensor<2x1x3xf64>, tensor<2x1x3xf64>) -> tensor<2x2x3xf64>
    %ue = nn.add %u, %eu : tensor<2x2x3xf64>
    %a = nn.slice %ue starts [0, 0, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    %b = nn.slice %ue starts [0, 1, 0] sizes [2, 1, 3] steps [1, 1, 1] : (tensor<2x2x3xf64>) -> tensor<2x1x3xf64>
    %others = nn.mul %a, %b : tensor<2x1x3xf64>

    %tv = nn.tanh %v : tensor<2x3xf64>
    %pv = nn.reshape %tv : (tensor<2x3xf64>) -> tensor<2x1x3xf64>
    %none = nn.slice %pv starts [0, 0, 0] sizes [2, 0, 3] steps [1, 1, 1] : (tensor<2x1x3xf64>) -> tensor<2x0x3xf64>
    %with = nn.concat %pv, %none dim 1 : (tensor<2x1x3xf64>, tensor<2x0x3xf64>) -> tensor<2x1x3xf64>
    %joined = nn.reshape %with : (tensor<2x1x3xf64>) -> tensor<2x3xf64>
    %nothing = nn.exp %joined : tensor<2x3xf64>

    %ones = nn.constant dense<1.0> : tensor<1x3xf64>
    %two = nn.concat %ones, %ones dim 0 : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<2x3xf64>
    %ww = nn.concat %w, %w dim 0 : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<2x3xf64>
    %equal = nn.sub %two, %ww : tensor<2x3xf64>

    %nq = nn.tanh %q : tensor<2x1x2x3xf64>
    %bm = nn.reshape %b0 : (tensor<2x2x3xf64>) -> tensor<4x3xf64>
    %br = nn.reduce sum %bm dims [0] : (tensor<4x3xf64>) -> tensor<3xf64>
    %qm = nn.reshape %nq : (tensor<2x1x2x3xf64>) -> tensor<4x3xf64>
    %qr = nn.reduce sum %qm dims [0] : (tensor<4x3xf64>) -> tensor<3xf64>
    %bq = nn.add %br, %qr : tensor<3xf64>
    %bqs = dist.all_reduce sum %bq over @mesh {dp} : tensor<3xf64>
    %em = nn.exp %bm : tensor<4x3xf64>
    %er = nn.reduce sum %em dims [0] : (tensor<4x3xf64>) -> tensor<3xf64>
    %es = dist.all_reduce sum %er over @mesh {dp} : tensor<3xf64>
    %terms = nn.mul %bqs, %es : tensor<3xf64>
    return %orders, %cuts, %others, %nothing, %equal, %terms : tensor<3xf64>, tensor<2x2x3xf64>, tensor<2x1x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<3xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
