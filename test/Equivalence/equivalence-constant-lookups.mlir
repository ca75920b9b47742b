// Lookups by constants, all equal: only one index need be looked at, and it is the
// rank's own, or another's. Another index, offset or mask is refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// CHECK: nn.gather {{.*}} dim 0 : (tensor<2x8xf64>, tensor<3xi64>) -> tensor<3x8xf64>
// CHECK: nn.scatter_add {{.*}} dim 0 : (tensor<2x8xf64>, tensor<3xi64>, tensor<3x8xf64>) -> tensor<2x8xf64>

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not cmp -s %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: {{.*(does not follow from the logical program|found something else)}}
// Another index; another offset, of the gather and of the scatter.
// REDEFINE: %{edit} = s/%1 = nn.constant dense<2>/%1 = nn.constant dense<3>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%8 = nn.constant dense<2>/%8 = nn.constant dense<1>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%34 = nn.constant dense<2>/%34 = nn.constant dense<3>/
// RUN: %{refused}
// The offset taken the other way; a row for another rank's index that is not there.
// REDEFINE: %{edit} = s/nn.sub \(.*\) : tensor<3xi64>/nn.add \1 : tensor<3xi64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%47 = nn.select %41, %46, %45/%47 = nn.select %41, %46, %3/
// RUN: %{refused}
// A mask turned around, and none.
// REDEFINE: %{edit} = s/%26 = nn.select %24, %22, %25/%26 = nn.select %24, %25, %22/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%51 = nn.select %49, %arg1, %50/%51 = nn.select %49, %arg1, %arg1/
// RUN: %{refused}
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%t: tensor<4x8xf64> {nn.input = "t"}, %dy: tensor<3x8xf64> {nn.input = "dy"}) -> (tensor<3x8xf64> {nn.output = "y"}, tensor<4x8xf64> {nn.output = "dt"}) attributes {nn.entry} {
    %0 = dist.constraint %t to <@mesh, [{tp}, {}]> : tensor<4x8xf64>
    %i = nn.constant dense<2> : tensor<3xi64>
    %y = nn.gather %0, %i dim 0 : (tensor<4x8xf64>, tensor<3xi64>) -> tensor<3x8xf64>
    %zeros = nn.constant dense<0.0> : tensor<4x8xf64>
    %d = nn.scatter_add %zeros, %i, %dy dim 0 : (tensor<4x8xf64>, tensor<3xi64>, tensor<3x8xf64>) -> tensor<4x8xf64>
    %dt = dist.constraint %d to <@mesh, [{tp}, {}]> : tensor<4x8xf64>
    return %y, %dt : tensor<3x8xf64>, tensor<4x8xf64>
  }
}
