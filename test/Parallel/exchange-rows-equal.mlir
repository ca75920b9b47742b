// Whatever the ranks exchange, every layout trains what one rank does: a table
// whose rows they do not divide, tied, and one whose rows they do.
// DEFINE: %{stage} = 3
// DEFINE: %{layout} = mesh=dp=2
// DEFINE: %{equal} = acc-opt %s --accel-run-phases="to=local set=zero_stage=%{stage} %{layout}" -o %t.mlir && FileCheck %s --input-file=%t.mlir && acc-eval %t.mlir --compare %s --tolerance 1e-14
// RUN: %{equal}
// REDEFINE: %{layout} = mesh=dp=4
// RUN: %{equal}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=2
// RUN: %{equal}
// REDEFINE: %{layout} = mesh=dp_replicate=2,dp_shard=2 micro-batches=2
// RUN: %{equal}
// REDEFINE: %{stage} = 2
// RUN: %{equal}
// REDEFINE: %{stage} = 1
// REDEFINE: %{layout} = mesh=dp=4
// RUN: %{equal}

// Rows go from rank to rank, and of the table but the product's term.
// CHECK-DAG: dist.all_to_all {{.*}}dist-exchange-rows
// CHECK-DAG: dist.all_gather {{.*}}dist-exchange-rows

module attributes {accel.phase = "train"} {
nn.state @table : tensor<1001x64xf64> = dense<0.5>
nn.state @types : tensor<1000x64xf64> = dense<0.25>
func.func @step(%ids: tensor<8x2xi64> {nn.input = "ids"}, %y: tensor<8x1001xf64> {nn.input = "y"}, %table: tensor<1001x64xf64> {nn.state = @table}, %types: tensor<1000x64xf64> {nn.state = @types})
    -> (tensor<f64> {nn.output = "loss"}, tensor<1001x64xf64> {nn.state = @table}, tensor<1000x64xf64> {nn.state = @types}) attributes {nn.entry = #nn<entry step>} {
  %a = nn.gather %table, %ids dim 0 : (tensor<1001x64xf64>, tensor<8x2xi64>) -> tensor<8x2x64xf64>
  %b = nn.gather %types, %ids dim 0 : (tensor<1000x64xf64>, tensor<8x2xi64>) -> tensor<8x2x64xf64>
  %c = nn.mul %a, %b : tensor<8x2x64xf64>
  %loss = nn.reduce sum %c dims [0, 1, 2] : (tensor<8x2x64xf64>) -> tensor<f64>
  %x = nn.reduce sum %c dims [1] : (tensor<8x2x64xf64>) -> tensor<8x64xf64>
  %none = nn.constant dense<0.0> : tensor<1001x64xf64>
  %zero = nn.constant dense<0.0> : tensor<1000x64xf64>
  %d1 = nn.matmul %y, %x {transpose_lhs} : (tensor<8x1001xf64>, tensor<8x64xf64>) -> tensor<1001x64xf64>
  %d0 = nn.scatter_add %none, %ids, %b dim 0 : (tensor<1001x64xf64>, tensor<8x2xi64>, tensor<8x2x64xf64>) -> tensor<1001x64xf64>
  %d = nn.add %d1, %d0 : tensor<1001x64xf64>
  %e = nn.scatter_add %zero, %ids, %a dim 0 : (tensor<1000x64xf64>, tensor<8x2xi64>, tensor<8x2x64xf64>) -> tensor<1000x64xf64>
  %g = nn.gradient %d of @table : tensor<1001x64xf64>
  %h = nn.gradient %e of @types : tensor<1000x64xf64>
  %table1 = nn.sub %table, %g : tensor<1001x64xf64>
  %types1 = nn.sub %types, %h : tensor<1000x64xf64>
  return %loss, %table1, %types1 : tensor<f64>, tensor<1001x64xf64>, tensor<1000x64xf64>
}
}
