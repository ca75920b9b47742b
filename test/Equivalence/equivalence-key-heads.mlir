// Key heads that ranks share (`dist-share-key-heads`): four query heads read two key heads, two ranks
// a key head. Each rank has a term of the gradients of its key head; without the sum over those who
// share it, or with one over those who do not, the program is refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// CHECK: %[[GRADIENT:.*]], %[[KEYS:.*]], %[[VALUES:.*]] = nn.attention_grad {{.*}}-> (tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>)
// CHECK-DAG: dist.all_reduce sum %[[KEYS]] over @mesh {tp}
// CHECK-DAG: dist.all_reduce sum %[[VALUES]] over @mesh {tp}
// RUN: acc-opt %t/local.mlir --proved-against=%s --compile-to=plan -o %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare %s --tolerance 1e-12

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not cmp -s %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: {{.*(does not follow from the logical program|found something else)}}
// REDEFINE: %{edit} = s/dist.all_reduce sum \(%[^ ]*\) over @mesh {tp}/dist.all_reduce sum \1 over @mesh {tp_kv}/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum \(%[^ ]*\) over @mesh {tp}/dist.all_reduce sum \1 over @mesh {tp_kv, tp}/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum \(%[^ ]*\) over @mesh {tp}.* : \(.*\)/nn.add \1, \1 : \2/
// RUN: %{refused}
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["tp_kv" = 2, "tp" = 2]
  func.func @main(%q: tensor<1x4x8x4xf64> {nn.input = "q"}, %k: tensor<1x2x8x4xf64> {nn.input = "k"}, %v: tensor<1x2x8x4xf64> {nn.input = "v"}, %g: tensor<1x4x8x4xf64> {nn.input = "g"})
      -> (tensor<1x4x8x4xf64> {nn.output = "dq"}, tensor<1x2x8x4xf64> {nn.output = "dk"}, tensor<1x2x8x4xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {tp_kv, tp}, {}, {}]> : tensor<1x4x8x4xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {tp_kv}, {}, {}]> : tensor<1x2x8x4xf64>
    %2 = dist.constraint %v to <@mesh, [{}, {tp_kv}, {}, {}]> : tensor<1x2x8x4xf64>
    %o, %l = nn.attention %0, %1, %2 {causal, scale = 0.5} : (tensor<1x4x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>) -> (tensor<1x4x8x4xf64>, tensor<1x4x8xf64>)
    %d:3 = nn.attention_grad %0, %1, %2 output %o, %l gradient %g {causal, scale = 0.5 : f64} : (tensor<1x4x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x4x8x4xf64>, tensor<1x4x8xf64>, tensor<1x4x8x4xf64>) -> (tensor<1x4x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>)
    return %d#0, %d#1, %d#2 : tensor<1x4x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>
  }
}
