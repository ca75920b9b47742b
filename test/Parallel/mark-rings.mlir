// Context parallelism by a ring: attention whose keys and values would be gathered is
// marked. What can't be a ring is left as it is, and why is said.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/ring.mlir --accel-run-phases="to=decided set=cp.strategy=ring" | FileCheck %s
// Unless it is wanted, none is marked.
// RUN: acc-opt %t/ring.mlir --accel-run-phases="to=decided" | FileCheck %s --check-prefix=NONE
// RUN: acc-opt %t/obstacles.mlir --accel-run-phases="to=decided set=cp.strategy=ring" 2>&1 | FileCheck %s --check-prefix=LEFT
// RUN: sed 's/"cp"/"sp"/; s/{cp}/{sp}/' %t/ring.mlir > %t/no-cp.mlir
// RUN: not acc-opt %t/no-cp.mlir --accel-run-phases="to=decided set=cp.strategy=ring" 2>&1 | FileCheck %s --check-prefix=AXIS
// Keys that are terms of sums over another axis are summed before they go round.
// RUN: acc-opt %t/terms.mlir --accel-run-phases="to=decided set=cp.strategy=ring" | FileCheck %s --check-prefix=TERMS
// RUN: acc-opt %t/terms.mlir --accel-run-phases="to=local set=cp.strategy=ring" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=TURNS < %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %t/terms.mlir --tolerance 1e-14

// CHECK: dist.reshard {{.*}} #all-all-cp-all> -> {{.*}} #all-all-all-all>
// CHECK: nn.attention %{{.*}} {causal, dist.ring, scale
// CHECK: nn.attention_grad {{.*}} {causal, dist.ring, scale
// CHECK-COUNT-2: dist.reshard %{{.*}}gradient {{.*}} #all-all-all-all-sum_over_cp> -> {{.*}} #all-all-cp-all>
// NONE-NOT: dist.ring
// LEFT: warning: 'cp.strategy' is 'ring', but keys and values of this attention are gathered: it is causal and has a mask of numbers
// LEFT: warning: 'cp.strategy' is 'ring', but keys and values of this attention are gathered: its log-sum-exp is read by what is no ring
// LEFT: warning: 'cp.strategy' is 'ring', but keys and values of this attention are gathered: the gradient of its mask reads all of them
// LEFT: warning: 'cp.strategy' is 'ring', but keys and values of this attention are gathered: its first rows see no key
// LEFT-NOT: dist.ring
// AXIS: error: expected an axis 'cp' of several ranks on the mesh with 'cp.strategy=ring'
// TERMS: %[[SUM:.*]] = dist.reshard %{{.*}} {dist.inserted_by = "dist-mark-rings"} : {{.*}}#all-all-cp-all-sum_over_tp> -> {{.*}}#all-all-cp-all>
// TERMS-NEXT: %[[KEYS:.*]] = dist.reshard %[[SUM]] {{.*}}#all-all-cp-all> -> {{.*}}#all-all-all-all>
// TERMS: nn.attention %{{[^,]*}}, %[[KEYS]], %[[KEYS]] {dist.ring, scale
// TURNS: dist.all_reduce sum %{{.*}} over @mesh {tp}
// TURNS-NOT: dist.all_gather
// TURNS: dist.permute

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

//--- obstacles.mlir
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 2]
  func.func @main(%q: tensor<1x2x8x4xf64> {nn.input = "q"}, %k: tensor<1x2x8x4xf64> {nn.input = "k"}, %k2: tensor<1x2x8x4xf64> {nn.input = "k2"}, %m: tensor<1x1x8x8xf64> {nn.input = "m"})
      -> (tensor<1x2x8x4xf64> {nn.output = "a"}, tensor<1x2x8x4xf64> {nn.output = "b"}, tensor<1x2x8x4xf64> {nn.output = "c"}, tensor<1x2x8xf64> {nn.output = "l"}, tensor<1x2x8x4xf64> {nn.output = "d"}, tensor<1x2x8x8xf64> {nn.output = "e"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x8x4xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x8x4xf64>
    %a, %h = nn.attention %0, %1, %1 mask %m {causal, scale = 0.5} : (tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x1x8x8xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x2x8xf64>)
    %c, %l = nn.attention %0, %1, %1 mask %m {scale = 0.5} : (tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x1x8x8xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x2x8xf64>)
    %2 = dist.constraint %k2 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x8x4xf64>
    %d, %i = nn.attention %0, %2, %2 mask %m {scale = 0.25} : (tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x1x8x8xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x2x8xf64>)
    %e = nn.matmul %0, %2 {transpose_rhs} : (tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>) -> tensor<1x2x8x8xf64>
    %b, %n = nn.attention %0, %1, %1 {causal, column_offset = 1 : i64, scale = 0.5} : (tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x2x8xf64>)
    return %a, %b, %c, %l, %d, %e : tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x8xf64>
  }
}

//--- terms.mlir
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 2, "tp" = 2]
  func.func @main(%q: tensor<1x1x8x4xf64> {nn.input = "q"}, %x: tensor<1x1x8x6xf64> {nn.input = "x"}, %w: tensor<6x4xf64> {nn.input = "w"}) -> (tensor<1x1x8x4xf64> {nn.output = "o"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x8x4xf64>
    %1 = dist.constraint %x to <@mesh, [{}, {}, {cp}, {tp}]> : tensor<1x1x8x6xf64>
    %2 = dist.constraint %w to <@mesh, [{tp}, {}]> : tensor<6x4xf64>
    %k = nn.matmul %1, %2 : (tensor<1x1x8x6xf64>, tensor<6x4xf64>) -> tensor<1x1x8x4xf64>
    %o, %l = nn.attention %0, %k, %k {scale = 0.5} : (tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>, tensor<1x1x8x4xf64>) -> (tensor<1x1x8x4xf64>, tensor<1x1x8xf64>)
    return %o : tensor<1x1x8x4xf64>
  }
}
