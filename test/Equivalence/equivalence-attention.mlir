// Rows of causal attention that ranks share: each says where its own begin, keys are
// gathered, and the gradients of keys and values are sums over the ranks. Rows that
// begin elsewhere are refused, and so are sums that are missing.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// CHECK: nn.attention {{.*}}row_offset = 2{{.*}}row_steps = {cp = 4 : i64, sp = 2 : i64}{{.*}}(tensor<1x2x2x4xf64>, tensor<1x1x8x4xf64>
// CHECK: nn.attention_grad {{.*}}row_steps = {cp = 4 : i64, sp = 2 : i64}
// CHECK-COUNT-2: dist.reduce_scatter sum {{.*}} {cp, sp} dim 2 {{.*}}: (tensor<1x1x8x4xf64>)

// The plan and the executable say it, and ranks obey it.
// RUN: acc-opt %t/local.mlir --proved-against=%s --compile-to=plan -o %t/plan.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare %s --tolerance 1e-12
// PLAN: plan.attention {{.*}}causal row_offset 2 row_steps {cp = 4 : i64, sp = 2 : i64}
// PLAN: plan.attention_grad {{.*}}causal row_offset 2 row_steps {cp = 4 : i64, sp = 2 : i64}

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not cmp -s %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: {{.*(does not follow from the logical program|found something else)}}

// Another step, none for an axis or for all, another first row.
// REDEFINE: %{edit} = /nn.attention /s/cp = 4/cp = 2/
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/sp = 2/sp = 4/
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention /s/cp = 4 : i64, //
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/, row_steps = {[^}]*}//
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention /s/row_offset = 2/row_offset = 1/
// RUN: %{refused}
// Keys of one rank's own: half a sum is no sum.
// REDEFINE: %{edit} = s/dist.reduce_scatter sum \(%[^ ]*\) .* : (tensor<1x1x8x4xf64>)/nn.slice \1 starts [0, 0, 0, 0] sizes [1, 1, 2, 4] steps [1, 1, 1, 1] : (tensor<1x1x8x4xf64>)/
// RUN: %{refused}
// A plan that places rows elsewhere.
// RUN: sed '/plan.attention /s/cp = 4/cp = 2/' %t/plan.mlir > %t/moved.mlir
// RUN: not acc-opt %t/moved.mlir --plan-verify-equivalence=local=%t/local.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=MOVED
// MOVED: error
// RUN: sed 's/cp = 4 : i64/dp = 4 : i64/' %t/plan.mlir > %t/named.mlir
// RUN: not acc-opt %t/named.mlir --plan-verify -o /dev/null 2>&1 | FileCheck %s --check-prefix=NAMED
// NAMED: expected an axis of ranks in 'row_steps', found 'dp'
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 2, "sp" = 2]
  func.func @main(%q: tensor<1x2x8x4xf64> {nn.input = "q"}, %k: tensor<1x1x8x4xf64> {nn.input = "k"}, %v: tensor<1x1x8x4xf64> {nn.input = "v"}, %g: tensor<1x2x8x4xf64> {nn.input = "g"})
      -> (tensor<1x2x8x4xf64> {nn.output = "dq"}, tensor<1x1x8x4xf64> {nn.output = "dk"}, tensor<1x1x8x4xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x2x8x4xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x1x8x4xf64>
    %2 = dist.constraint %v to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x1x8x4xf64>
    %o, %l = nn.attention %0, %1, %2 {causal, row_offset = 2, scale = 0.5} : (tensor<1x2x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x2x8xf64>)
    %d:3 = nn.attention_grad %0, %1, %2 output %o, %l gradient %g {causal, row_offset = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8xf64>, tensor<1x2x8x4xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>)
    %dk = dist.constraint %d#1 to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x1x8x4xf64>
    %dv = dist.constraint %d#2 to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x1x8x4xf64>
    return %d#0, %dk, %dv : tensor<1x2x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>
  }
}
