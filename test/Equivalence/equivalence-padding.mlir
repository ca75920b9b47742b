// States that ranks cannot split evenly: five elements are six on two ranks, and what
// the sixth is nobody may see.
// RUN: rm -rf %t && mkdir %t
// DEFINE: %{compile} = acc-opt %s --accel-run-phases="to=local mesh=dp=2 set=zero_stage=2"
// RUN: %{compile} -o %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%s -o /dev/null
// DEFINE: %{edit} =
// DEFINE: %{prefix} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=%{prefix}

// Padding in front, and of another number, which the norm would take in.
// REDEFINE: %{edit} = s/low .0. high .1./low [1] high [0]/
// REDEFINE: %{prefix} = OTHER
// RUN: %{refused}
// REDEFINE: %{edit} = s/dense<0.000000e+00> : tensor<f64>/dense<1.000000e+00> : tensor<f64>/
// RUN: %{refused}
// OTHER: error: does not follow from the logical program: no op of it computes this from what the operands hold
// Cut off where it is not.
// REDEFINE: %{edit} = s/starts .0. sizes .5./starts [1] sizes [5]/
// RUN: %{refused}
// Of a sum of what is not known to be 0 there: what is gathered is cut first.
// RUN: sed 's/reduce sum %q/reduce sum %m1/' %s > %t/sum.mlir
// RUN: acc-opt %t/sum.mlir --accel-run-phases="to=local mesh=dp=2 set=zero_stage=2" -o %t/cut.mlir
// RUN: sed 's/nn.reduce sum %2 dims .0. : (tensor<5xf64>)/nn.reduce sum %1 dims [0] : (tensor<6xf64>)/' %t/cut.mlir > %t/m.mlir && not cmp -s %t/cut.mlir %t/m.mlir
// RUN: not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/sum.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: error: does not follow from the logical program: takes in padding that is not known to be 0
// What is taken and given is what the state says, and no input is padded.
// REDEFINE: %{edit} = s/nn.state moment @m : tensor<6xf64>/nn.state moment @m : tensor<8xf64>/
// REDEFINE: %{prefix} = HELD
// RUN: %{refused}
// HELD: error: expected the layout of all of state 'm', found #dist.layout<@mesh [6 by {dp_shard}]>
// REDEFINE: %{edit} = /@step(/s/tensor<2x5xf64> {dist.layout = #dist.layout<@mesh .4 /tensor<4x5xf64> {dist.layout = #dist.layout<@mesh [8 /
// REDEFINE: %{prefix} = INPUT
// RUN: %{refused}
// INPUT: error: expected the layout of all of input 'x', found #dist.layout<@mesh [8 by {dp_shard}, 5]>

module attributes {accel.phase = "train"} {
nn.state @b : tensor<5xf64> = dense<0.5>
nn.state moment @m : tensor<5xf64> = dense<0.0>
func.func @step(%x: tensor<4x5xf64> {nn.input = "x"}, %b: tensor<5xf64> {nn.state = @b}, %m: tensor<5xf64> {nn.state = @m})
    -> (tensor<f64> {nn.output = "loss"}, tensor<f64> {nn.output = "norm"}, tensor<5xf64> {nn.output = "b.grad"},
        tensor<5xf64> {nn.state = @b}, tensor<5xf64> {nn.state = @m}) attributes {nn.entry = #nn<entry step>} {
  %bs = nn.broadcast %b : (tensor<5xf64>) -> tensor<4x5xf64>
  %y = nn.mul %x, %bs : tensor<4x5xf64>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<4x5xf64>) -> tensor<f64>
  %db = nn.reduce sum %x dims [0] : (tensor<4x5xf64>) -> tensor<5xf64>
  %g = nn.gradient %db of @b : tensor<5xf64>
  %q = nn.mul %g, %g : tensor<5xf64>
  %m1 = nn.add %m, %g : tensor<5xf64>
  %norm = nn.reduce sum %q dims [0] : (tensor<5xf64>) -> tensor<f64>
  %b1 = nn.sub %b, %m1 : tensor<5xf64>
  return %loss, %norm, %g, %b1, %m1 : tensor<f64>, tensor<f64>, tensor<5xf64>, tensor<5xf64>, tensor<5xf64>
}
}
