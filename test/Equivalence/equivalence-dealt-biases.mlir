// Biases of experts are products with rows of ones, which nobody sends: they are ones on
// every rank. Other numbers than those, and another rank's biases, are refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12

// LOCAL: dist.fetch_rows %arg0, %rows
// LOCAL: dist.fetch_rows %{{.*}}, %places
// LOCAL: %[[ONES:.*]] = nn.constant dense<1.000000e+00> : tensor<16x1xf64>
// LOCAL: %[[B:.*]] = nn.grouped_matmul %[[ONES]]
// LOCAL: dist.fetch_rows %[[B]], %places
// LOCAL: %[[SAME:.*]] = nn.constant dense<1.000000e+00> : tensor<16x1xf64>
// LOCAL: %[[G:.*]] = dist.fetch_rows %arg4, %rows
// LOCAL: nn.grouped_matmul_grad %[[SAME]], %[[G]]
// LOCAL-NOT: dist.fetch_rows

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not cmp -s %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}
// REDEFINE: %{edit} = s/dense<1.000000e+00> : tensor<16x1xf64>/dense<2.000000e+00> : tensor<16x1xf64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/\(dist.axis_index.*\)$/\1\n%one = nn.constant dense<1> : tensor<i64>\n%back = nn.sub %one, %3 : tensor<i64>/; s/nn.deal_rows %2, %3/nn.deal_rows %2, %back/
// RUN: %{refused}

module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["ep" = 2]
  func.func @main(%0: tensor<16x4xf64> {nn.input = "x"}, %1: tensor<8x4xf64> {nn.input = "s"}, %2: tensor<4x6x4xf64> {nn.input = "w"}, %3: tensor<4x1x6xf64> {nn.input = "b"}, %4: tensor<16x6xf64> {nn.input = "g"})
      -> (tensor<16x6xf64> {nn.output = "y"}, tensor<4x1x6xf64> {nn.output = "db"}) attributes {nn.entry} {
    %x = dist.constraint %0 to <@mesh, [{ep}, {}]> : tensor<16x4xf64>
    %s = dist.constraint %1 to <@mesh, [{ep}, {}]> : tensor<8x4xf64>
    %w = dist.constraint %2 to <@mesh, [{ep}, {}, {}]> : tensor<4x6x4xf64>
    %b = dist.constraint %3 to <@mesh, [{ep}, {}, {}]> : tensor<4x1x6xf64>
    %g = dist.constraint %4 to <@mesh, [{ep}, {}]> : tensor<16x6xf64>
    %ones = nn.constant dense<1.0> : tensor<16x1xf64>
    %t = nn.top_k %s k 2 : (tensor<8x4xf64>) -> tensor<8x2xi64>
    %e = nn.reshape %t : (tensor<8x2xi64>) -> tensor<16xi64>
    %h = nn.grouped_matmul %x, %w, %e {transpose_rhs} : (tensor<16x4xf64>, tensor<4x6x4xf64>, tensor<16xi64>) -> tensor<16x6xf64>
    %r = nn.grouped_matmul %ones, %b, %e : (tensor<16x1xf64>, tensor<4x1x6xf64>, tensor<16xi64>) -> tensor<16x6xf64>
    %y = nn.add %h, %r : tensor<16x6xf64>
    %5 = nn.grouped_matmul_grad %ones, %g, %e num_groups 4 : (tensor<16x1xf64>, tensor<16x6xf64>, tensor<16xi64>) -> tensor<4x1x6xf64>
    %db = dist.constraint %5 to <@mesh, [{ep}, {}, {}]> : tensor<4x1x6xf64>
    return %y, %db : tensor<16x6xf64>, tensor<4x1x6xf64>
  }
}
