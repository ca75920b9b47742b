// Ulysses: positions of all heads are exchanged for heads of all positions in front of
// attention and of its gradient, and back behind them; with context parallelism beside
// it, keys of the other ranks are gathered besides. Key heads that are too few are
// gathered, with a remark.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/heads.mlir --dist-exchange-heads | FileCheck %s
// RUN: acc-opt %t/heads.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %t/heads.mlir --tolerance 1e-10
// RUN: acc-opt %t/few.mlir --dist-exchange-heads 2>&1 | FileCheck %s --check-prefix=FEW

// CHECK-DAG: #[[HEADS:.*]] = #dist.sharding<@mesh, [{}, {sp}, {cp}, {}]>
// CHECK-DAG: #[[KEYS:.*]] = #dist.sharding<@mesh, [{}, {sp}, {}, {}]>
// CHECK-DAG: #[[ROWS:.*]] = #dist.sharding<@mesh, [{}, {}, {cp, sp}, {}]>
// CHECK: %[[Q:.*]] = dist.constraint %{{.*}} to #[[HEADS]] alone
// CHECK: %[[K:.*]] = dist.constraint %{{.*}} to #[[KEYS]] alone
// CHECK: %[[V:.*]] = dist.constraint %{{.*}} to #[[KEYS]] alone
// CHECK: %[[O:.*]], %[[L:.*]] = nn.attention %[[Q]], %[[K]], %[[V]]
// CHECK: %[[BACK:.*]] = dist.constraint %[[O]] to #[[ROWS]] alone
// What the gradient reads of the forward has not moved.
// CHECK: nn.attention_grad {{.*}} output %[[O]], %[[L]] gradient
// CHECK-COUNT-3: dist.constraint {{.*}} to #[[ROWS]] alone
// CHECK: return %[[BACK]]

// LOCAL: func.func @main
// LOCAL: dist.all_to_all %{{.*}} over @mesh {sp} split 1 concat 2
// LOCAL-COUNT-2: dist.all_gather {{.*}} {cp} dim 2
// LOCAL: nn.attention {{.*}} row_steps = {cp = 256 : i64}{{.*}} : (tensor<1x2x256x16xf64>, tensor<1x1x512x16xf64>,
// LOCAL: nn.attention_grad
// LOCAL-COUNT-2: dist.reduce_scatter sum {{.*}} {cp} dim 2

// FEW: remark: keys and values are gathered: 2 ranks cannot share 1 key heads
// FEW-NOT: alone

//--- heads.mlir
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 2, "sp" = 2]
  func.func @main(%q: tensor<1x4x512x16xf64> {nn.input = "q"}, %k: tensor<1x2x512x16xf64> {nn.input = "k"}, %v: tensor<1x2x512x16xf64> {nn.input = "v"}, %g: tensor<1x4x512x16xf64> {nn.input = "g"})
      -> (tensor<1x4x512x16xf64> {nn.output = "o"}, tensor<1x4x512x16xf64> {nn.output = "dq"}, tensor<1x2x512x16xf64> {nn.output = "dk"}, tensor<1x2x512x16xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x4x512x16xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x2x512x16xf64>
    %2 = dist.constraint %v to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x2x512x16xf64>
    %3 = dist.constraint %g to <@mesh, [{}, {}, {cp, sp}, {}]> : tensor<1x4x512x16xf64>
    %o, %l = nn.attention %0, %1, %2 {causal, scale = 0.5} : (tensor<1x4x512x16xf64>, tensor<1x2x512x16xf64>, tensor<1x2x512x16xf64>) -> (tensor<1x4x512x16xf64>, tensor<1x4x512xf64>)
    %d:3 = nn.attention_grad %0, %1, %2 output %o, %l gradient %3 {causal, scale = 0.5} : (tensor<1x4x512x16xf64>, tensor<1x2x512x16xf64>, tensor<1x2x512x16xf64>, tensor<1x4x512x16xf64>, tensor<1x4x512xf64>, tensor<1x4x512x16xf64>) -> (tensor<1x4x512x16xf64>, tensor<1x2x512x16xf64>, tensor<1x2x512x16xf64>)
    return %o, %d#0, %d#1, %d#2 : tensor<1x4x512x16xf64>, tensor<1x4x512x16xf64>, tensor<1x2x512x16xf64>, tensor<1x2x512x16xf64>
  }
}

//--- few.mlir
dist.mesh @mesh ["sp" = 2]
func.func @main(%q: tensor<1x4x512x16xf64> {nn.input = "q"}, %k: tensor<1x1x512x16xf64> {nn.input = "k"}) -> tensor<1x4x512x16xf64> attributes {nn.entry} {
  %0 = dist.constraint %q to <@mesh, [{}, {}, {sp}, {}]> : tensor<1x4x512x16xf64>
  %o, %l = nn.attention %0, %k, %k {causal, scale = 0.5} : (tensor<1x4x512x16xf64>, tensor<1x1x512x16xf64>, tensor<1x1x512x16xf64>) -> (tensor<1x4x512x16xf64>, tensor<1x4x512xf64>)
  return %o : tensor<1x4x512x16xf64>
}
