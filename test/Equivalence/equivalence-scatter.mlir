// x + scatter_add(0, i, u) is scatter_add(x, i, u), also where x is a constant,
// which is part of every value of equal elements. Another constant is not; nor is
// it a term of a sum over ranks: it would count once for each.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided mesh=dp=2" -o %t/decided.mlir
// RUN: acc-opt %s --accel-run-phases="to=local mesh=dp=2" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// CHECK: %[[HALF:.*]] = nn.constant dense<5.000000e-01> : tensor<2x3xf64>
// CHECK: nn.scatter_add %[[HALF]], %{{.*}} dim 1 {batch_dims = 1 : i64} : (tensor<2x3xf64>, tensor<2x1xi64>, tensor<2x1xf64>) -> tensor<2x3xf64>
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// REDEFINE: %{edit} = s/dense<5.000000e-01> : tensor<2x3/dense<2.500000e-01> : tensor<2x3/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dense<0.000000e+00> : tensor<3x/dense<7.500000e-01> : tensor<3x/
// RUN: %{refused}
// NOT: error: {{.*}}does not follow from the logical program
module attributes {accel.phase = "train"} {
  func.func @main(%i: tensor<4x1xi64> {nn.input = "i"}, %u: tensor<4x1xf64> {nn.input = "u"}) -> (tensor<4x3xf64> {nn.output = "y"}, tensor<3xf64> {nn.output = "z"}) attributes {nn.entry} {
    %half = nn.constant dense<0.5> : tensor<4x3xf64>
    %none = nn.constant dense<0.0> : tensor<4x3xf64>
    %s = nn.scatter_add %none, %i, %u dim 1 {batch_dims = 1} : (tensor<4x3xf64>, tensor<4x1xi64>, tensor<4x1xf64>) -> tensor<4x3xf64>
    %y = nn.add %half, %s : tensor<4x3xf64>
    %more = nn.constant dense<0.75> : tensor<3xf64>
    %nothing = nn.constant dense<0.0> : tensor<3xf64>
    %t = nn.scatter_add %nothing, %i, %u dim 0 : (tensor<3xf64>, tensor<4x1xi64>, tensor<4x1xf64>) -> tensor<3xf64>
    %z = nn.add %more, %t : tensor<3xf64>
    return %y, %z : tensor<4x3xf64>, tensor<3xf64>
  }
}
