// Attention by a ring behind a mask of i1: in each turn a rank has its rows' columns of the keys
// that have come, from rows of a mask of its own. A row may see none of them, or no key at all:
// it is zeros or NaN as in the whole.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// CHECK-NOT: all_gather
// CHECK-NOT: reduce_scatter

// A row that sees nothing is NaN, and so is what it adds to gradients.
// RUN: sed 's/, zero_masked_rows//' %s > %t/nan.train.mlir
// RUN: acc-opt %t/nan.train.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/nan.decided.mlir
// RUN: acc-opt %t/nan.decided.mlir --accel-run-phases="to=local" -o %t/nan.local.mlir
// RUN: acc-opt %t/nan.local.mlir --dist-verify-equivalence=logical=%t/nan.decided.mlir -o /dev/null
// RUN: acc-eval %t/nan.local.mlir --compare %t/nan.train.mlir --tolerance 1e-12
// Beside `causal`.
// RUN: sed 's/scale = 0.5/causal, scale = 0.5/' %s > %t/causal.train.mlir
// RUN: acc-opt %t/causal.train.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/causal.decided.mlir
// RUN: acc-opt %t/causal.decided.mlir --accel-run-phases="to=local" -o %t/causal.local.mlir
// RUN: grep -c 'dist.permute' %t/causal.local.mlir | FileCheck %s --check-prefix=MOVES
// RUN: acc-opt %t/causal.local.mlir --dist-verify-equivalence=logical=%t/causal.decided.mlir -o /dev/null
// RUN: acc-eval %t/causal.local.mlir --compare %t/causal.train.mlir --tolerance 1e-12
// MOVES: {{^}}12{{$}}

// The plan says it, and ranks obey it.
// RUN: acc-opt %t/local.mlir --proved-against=%s --compile-to=plan -o %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare %s --tolerance 1e-12

// DEFINE: %{edit} =
// DEFINE: %{program} =
// DEFINE: %{refused} = sed '%{edit}' %t/%{program}local.mlir > %t/edited.mlir && not cmp -s %t/%{program}local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/%{program}decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: {{.*(does not follow from the logical program|found something else)}}

// Columns of another turn, of the other order, of other keys.
// REDEFINE: %{edit} = s/mask %12 /mask %9 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/mask %60 /mask %36 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%8 = nn.concat %6, %7 dim 3 : (\(.*\), \(.*\)) ->/%8 = nn.concat %7, %6 dim 3 : (\2, \1) ->/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%3 = nn.slice %2 starts \[0, 0, 0, 4\]/%3 = nn.slice %2 starts [0, 0, 0, 3]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%12 = dist.all_slice %8 /%12 = dist.all_slice %2 /
// RUN: %{refused}
// Rows that see nothing in one turn are its mean; of all turns the gradient is another's.
// REDEFINE: %{edit} = /nn.attention /s/, zero_masked_rows//
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/, zero_masked_rows//
// RUN: %{refused}
// Minus infinity less minus infinity, in the log-sum-exp and the weights of two turns and of all; another
// number is taken for the most negative one.
// REDEFINE: %{edit} = s/%17 = nn.sub %14, %16 /%17 = nn.sub %14, %13 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/ = nn.sub %log_sum_exp\(_1\|\), %22 / = nn.sub %log_sum_exp\1, %20 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/ = nn.sub \(%20\|%log_sum_exp_3\), %46 / = nn.sub \1, %44 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%15 = nn.constant dense<-1.79[^>]*>/%15 = nn.constant dense<-1.0e300>/
// RUN: %{refused}
// Rows that see nothing are zeros, or their gradients are, where they are NaN in the whole.
// REDEFINE: %{program} = nan.
// REDEFINE: %{edit} = s/ = nn.sub \(%20\|%log_sum_exp_3\), %44 / = nn.sub \1, %40 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%44 = nn.add \(.*\) : \(.*\)/%44 = nn.add \1 : \2\n %guarded = nn.max %44, %39 : \2/;s/ = nn.sub \(%20\|%log_sum_exp_3\), %44 / = nn.sub \1, %guarded /
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/{scale = 5.000000e-01 : f64}/{scale = 5.000000e-01 : f64, zero_masked_rows}/
// RUN: %{refused}

module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 3]
  func.func @main(%q: tensor<1x2x12x4xf64> {nn.input = "q"}, %k: tensor<1x1x12x4xf64> {nn.input = "k"}, %v: tensor<1x1x12x4xf64> {nn.input = "v"}, %m: tensor<1x1x12x12xi1> {nn.input = "m"}, %g: tensor<1x2x12x4xf64> {nn.input = "g"})
      -> (tensor<1x2x12x4xf64> {nn.output = "o"}, tensor<1x2x12x4xf64> {nn.output = "dq"}, tensor<1x1x12x4xf64> {nn.output = "dk"}, tensor<1x1x12x4xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x12x4xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %2 = dist.constraint %v to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %3 = dist.constraint %g to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x12x4xf64>
    %4 = dist.constraint %m to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x12xi1>
    %seen = nn.constant dense<[[[[false, false, false, false, false, false, false, false, false, false, false, false],
        [false, false, false, false, false, false, false, false, true, true, true, true],
        [true, true, true, true, true, true, true, true, true, true, true, true],
        [true, true, true, true, true, true, true, true, true, true, true, true],
        [true, true, true, true, true, true, true, true, true, true, true, true],
        [true, true, true, true, false, false, false, false, false, false, false, false],
        [true, true, true, true, true, true, true, true, true, true, true, true],
        [false, false, false, false, false, false, false, false, false, false, false, false],
        [true, true, true, true, true, true, true, true, true, true, true, true],
        [true, true, true, true, true, true, true, true, true, true, true, true],
        [false, false, false, false, true, true, true, true, false, false, false, false],
        [true, true, true, true, true, true, true, true, true, true, true, true]]]]> : tensor<1x1x12x12xi1>
    %mask = nn.and %4, %seen : tensor<1x1x12x12xi1>
    %o, %l = nn.attention %0, %1, %2 mask %mask {scale = 0.5, zero_masked_rows} : (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x12xi1>) -> (tensor<1x2x12x4xf64>, tensor<1x2x12xf64>)
    %d:3 = nn.attention_grad %0, %1, %2 output %o, %l gradient %3 mask %mask {scale = 0.5 : f64, zero_masked_rows} : (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x2x12x4xf64>, tensor<1x2x12xf64>, tensor<1x2x12x4xf64>, tensor<1x1x12x12xi1>) -> (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>)
    %dk = dist.constraint %d#1 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %dv = dist.constraint %d#2 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    return %o, %d#0, %dk, %dv : tensor<1x2x12x4xf64>, tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>
  }
}
