// Rows in another order: counted position by position in the step, batch by batch on
// ranks, where a range of the batch must be a range of rows. Two halves of a batch are
// joined and taken apart again.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=local mesh=dp=2" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%s -o /dev/null
// LOCAL: %[[ROWS:.*]] = nn.reshape %arg0 : (tensor<2x2x2xf64>) -> tensor<4x2xf64>
// LOCAL: nn.transpose %{{.*}} [1, 0, 2]
// LOCAL: nn.concat %{{.*}} dim 1
// LOCAL: nn.slice %{{.*}} starts [0, 1, 0]
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%s -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Positions that are left in the order of the step.
// REDEFINE: %{edit} = s/nn.transpose \(.*\) .1, 0, 2. : (tensor<2x2x2xf64>)/nn.reshape \1 : (tensor<2x2x2xf64>)/
// RUN: %{refused}
// The other half, or halves exchanged.
// REDEFINE: %{edit} = s/starts .0, 1, 0./starts [0, 0, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.concat \(%[0-9]*\), \(%[0-9]*\) dim 1/nn.concat \2, \1 dim 1/
// RUN: %{refused}

module attributes {accel.phase = "train"} {
func.func @main(%x: tensor<4x2x2xf64> {nn.input = "x"}, %a: tensor<4x2xf64> {nn.input = "a"}, %b: tensor<4x2xf64> {nn.input = "b"})
    -> (tensor<4x2x2xf64> {nn.output = "rows"}, tensor<4x2xf64> {nn.output = "half"}) attributes {nn.entry} {
  %0 = nn.transpose %x [1, 0, 2] : (tensor<4x2x2xf64>) -> tensor<2x4x2xf64>
  %1 = nn.reshape %0 : (tensor<2x4x2xf64>) -> tensor<8x2xf64>
  %i = nn.iota {dim = 0 : i64} : tensor<8x2xf64>
  %2 = nn.mul %1, %i : tensor<8x2xf64>
  %3 = nn.reshape %2 : (tensor<8x2xf64>) -> tensor<2x4x2xf64>
  %rows = nn.transpose %3 [1, 0, 2] : (tensor<2x4x2xf64>) -> tensor<4x2x2xf64>
  %both = nn.concat %a, %b dim 0 : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<8x2xf64>
  %e = nn.exp %both : tensor<8x2xf64>
  %half = nn.slice %e starts [4, 0] sizes [4, 2] steps [1, 1] : (tensor<8x2xf64>) -> tensor<4x2xf64>
  return %rows, %half : tensor<4x2x2xf64>, tensor<4x2xf64>
}
}
