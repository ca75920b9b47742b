// Lookups by indices that are equal because a view is taken of a constant: they are that constant, as
// one written in their shape is (equivalence-constant-lookups.mlir). Another index is refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// RUN: sed 's/nn.constant dense<6> : tensor<1x1xi64>/nn.constant dense<5> : tensor<1x1xi64>/' %t/local.mlir > %t/edited.mlir
// RUN: not cmp -s %t/local.mlir %t/edited.mlir
// RUN: not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*}}does not follow from the logical program
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["sp" = 2]
  func.func @main(%t: tensor<1x8x4xf64> {nn.input = "t"}) -> (tensor<1x1x4xf64> {nn.output = "y"}) attributes {nn.entry} {
    %0 = dist.constraint %t to <@mesh, [{}, {sp}, {}]> : tensor<1x8x4xf64>
    %c = nn.constant dense<6> : tensor<1x1xi64>
    %i = nn.reshape %c : (tensor<1x1xi64>) -> tensor<1x1x1xi64>
    %y = nn.gather_nd %0, %i {batch_dims = 1 : i64} : (tensor<1x8x4xf64>, tensor<1x1x1xi64>) -> tensor<1x1x4xf64>
    return %y : tensor<1x1x4xf64>
  }
}
