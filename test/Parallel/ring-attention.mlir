// Context parallelism by a ring: keys and values of what is marked go from rank to rank,
// (n - 1) moves of each and of the gradients, and nothing is gathered.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/ring.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" | FileCheck %s
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %t/ring.mlir --tolerance 1e-12
// RUN: sed 's/{nn.input = "q"}/{nn.state = @q}/; s/^  dist.mesh.*/&\n  nn.state @q : tensor<1x2x12x4xf64> = dense<0.5>/' %t/ring.mlir > %t/state.mlir
// RUN: acc-opt %t/state.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/state.decided.mlir
// RUN: acc-opt %t/state.decided.mlir --accel-run-phases="to=local" -o %t/state.local.mlir 2>&1 | FileCheck %s --check-prefix=STATE
// RUN: FileCheck %s --check-prefix=RANGES < %t/state.local.mlir
// RUN: acc-eval %t/state.local.mlir --compare %t/state.mlir --tolerance 1e-12
// RUN: not acc-opt %t/lost.mlir --dist-ring-attention 2>&1 | FileCheck %s --check-prefix=LOST

// Each rank has every third row and key: so all see as much.
// CHECK: func.func @main(%[[Q:.*]]: tensor<1x2x4x4xf64> {dist.layout = #dist.layout<@mesh [1, 2, 12 by {cp}, 4], interleaved = <2[3] times 4 by 3>>, nn.input = "q"}, %[[K:.*]]: tensor<1x1x4x4xf64>{{.*}}, %[[V:.*]]: tensor<1x1x4x4xf64>{{.*}}, %[[G:.*]]: tensor
// CHECK-NOT: all_gather
// CHECK-NOT: reduce_scatter
// CHECK: %[[O0:.*]], %[[L0:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] {causal, column_steps = {cp = 1 : i64}, row_steps = {cp = 1 : i64}, scale = 5.000000e-01 : f64, stride = 3 : i64, zero_masked_rows}
// CHECK: %[[K1:.*]] = dist.permute %[[K]] over @mesh {cp} sources [2, 0, 1] {dist.inserted_by = "dist-ring-attention"}
// CHECK: %[[V1:.*]] = dist.permute %[[V]] over
// CHECK: %[[O1:.*]], %[[L1:.*]] = nn.attention %[[Q]], %[[K1]], %[[V1]] {{{.*}} turn = 1 : i64
// CHECK: %[[MOST:.*]] = nn.max %[[L0]], %[[L1]]
// CHECK: %[[LEAST:.*]] = nn.min %[[L0]], %[[L1]]
// CHECK: %[[LESS:.*]] = nn.sub %[[LEAST]], %[[MOST]]
// CHECK: %[[EXP:.*]] = nn.exp %[[LESS]]
// CHECK: %[[LOG:.*]] = nn.log1p %[[EXP]]
// CHECK: %[[L:.*]] = nn.add %[[MOST]], %[[LOG]]
// CHECK: nn.sub %[[L0]], %[[L]]
// CHECK: nn.sub %[[L1]], %[[L]]
// CHECK: %[[K2:.*]] = dist.permute %[[K1]] over
// CHECK: nn.attention %[[Q]], %[[K2]], {{.*}} turn = 2 : i64
// The gradient begins with its neighbour's keys and ends with its own.
// CHECK: nn.attention_grad {{.*}} turn = 1 : i64
// CHECK: nn.attention_grad {{.*}} turn = 2 : i64
// CHECK: %[[DK:.*]] = dist.permute %{{.*}} over @mesh {cp} sources [2, 0, 1]
// CHECK: nn.attention_grad %[[Q]], %[[K]], %[[V]] output
// CHECK-NOT: turn =
// CHECK: return

// Rows of a state stay where they are, and those of one rank follow each other.
// STATE: warning: ranks of rings have causal rows that follow each other, and so unequal shares of the work: expected rows that ranks can have in turns, found them in a state
// RANGES-NOT: interleaved
// RANGES: nn.attention {{.*}} {causal, column_steps = {cp = 4 : i64}, row_steps = {cp = 4 : i64}, scale = 5.000000e-01 : f64, zero_masked_rows}
// RANGES-NOT: stride

// LOST: error: 'nn.attention' op marked 'dist.ring': expected attention, not causal with a mask of numbers, of keys and values that are gathered over one axis, and their gradients scattered

//--- ring.mlir
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 3]
  func.func @main(%q: tensor<1x2x12x4xf64> {nn.input = "q"}, %k: tensor<1x1x12x4xf64> {nn.input = "k"}, %v: tensor<1x1x12x4xf64> {nn.input = "v"}, %g: tensor<1x2x12x4xf64> {nn.input = "g"})
      -> (tensor<1x2x12x4xf64> {nn.output = "o"}, tensor<1x2x12x4xf64> {nn.output = "dq"}, tensor<1x1x12x4xf64> {nn.output = "dk"}, tensor<1x1x12x4xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x12x4xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %2 = dist.constraint %v to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %3 = dist.constraint %g to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x12x4xf64>
    %o, %l = nn.attention %0, %1, %2 {causal, scale = 0.5} : (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>) -> (tensor<1x2x12x4xf64>, tensor<1x2x12xf64>)
    %d:3 = nn.attention_grad %0, %1, %2 output %o, %l gradient %3 {causal, scale = 0.5 : f64} : (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x2x12x4xf64>, tensor<1x2x12xf64>, tensor<1x2x12x4xf64>) -> (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>)
    %dk = dist.constraint %d#1 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %dv = dist.constraint %d#2 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    return %o, %d#0, %dk, %dv : tensor<1x2x12x4xf64>, tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>
  }
}

//--- lost.mlir
module attributes {accel.phase = "decided"} {
  dist.mesh @mesh ["cp" = 2]
  func.func @main(%q: tensor<1x2x4x4xf64>) -> tensor<1x2x4x4xf64> {
    %o, %l = nn.attention %q, %q, %q {dist.ring, scale = 0.5} : (tensor<1x2x4x4xf64>, tensor<1x2x4x4xf64>, tensor<1x2x4x4xf64>) -> (tensor<1x2x4x4xf64>, tensor<1x2x4xf64>)
    return %o : tensor<1x2x4x4xf64>
  }
}
