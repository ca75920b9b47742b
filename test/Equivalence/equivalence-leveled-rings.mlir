// Attention by a ring behind a mask of numbers: rows' scores are counted from the largest number
// of their masks, so that rows which are hidden wholly by a large one have the log-sum-exps of how
// many there are, and are what they are in the whole.
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

// The plan says it, and ranks obey it.
// RUN: acc-opt %t/local.mlir --proved-against=%s --compile-to=plan -o %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare %s --tolerance 1e-12

// DEFINE: %{edit} =
// DEFINE: %{program} =
// DEFINE: %{refused} = sed '%{edit}' %t/%{program}local.mlir > %t/edited.mlir && not cmp -s %t/%{program}local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/%{program}decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: {{.*(does not follow from the logical program|found something else)}}

// Columns of another turn; levels that are the least numbers, or no number, or cut off at another.
// REDEFINE: %{edit} = s/mask %18 /mask %14 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%18 = nn.concat %12, %17 /%18 = nn.concat %12, %13 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%9 = nn.reduce max /%9 = nn.reduce min /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%12 = nn.max %10, %11 /%12 = nn.min %10, %11 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%11 = nn.constant dense<-1.79[^>]*>/%11 = nn.constant dense<-1.0>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/%12 = nn.max %10, %11 /%12 = nn.max %11, %11 /
// RUN: %{refused}
// No levels: in one turn, in all of the forward, in one turn of the gradient.
// REDEFINE: %{edit} = /mask %18 /{s/mask %18 /mask %17 /;s/1x1x4x5xf64/1x1x4x4xf64/}
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention /{s/mask %14 /mask %13 /;s/mask %18 /mask %17 /;s/mask %43 /mask %42 /;s/1x1x4x5xf64/1x1x4x4xf64/}
// RUN: %{refused}
// REDEFINE: %{program} = nan.
// REDEFINE: %{edit} = /mask %70 /{s/mask %70 /mask %69 /;s/1x1x4x5xf64/1x1x4x4xf64/}
// RUN: %{refused}
// REDEFINE: %{edit} = s/output %62, %51 gradient %arg4 mask %77 /output %62, %26 gradient %arg4 mask %77 /
// RUN: %{refused}

module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["cp" = 3]
  func.func @main(%q: tensor<1x2x12x4xf64> {nn.input = "q"}, %k: tensor<1x1x12x4xf64> {nn.input = "k"}, %v: tensor<1x1x12x4xf64> {nn.input = "v"}, %m: tensor<1x1x12x12xf64> {nn.input = "m"}, %g: tensor<1x2x12x4xf64> {nn.input = "g"})
      -> (tensor<1x2x12x4xf64> {nn.output = "o"}, tensor<1x2x12x4xf64> {nn.output = "dq"}, tensor<1x1x12x4xf64> {nn.output = "dk"}, tensor<1x1x12x4xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %0 = dist.constraint %q to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x12x4xf64>
    %1 = dist.constraint %k to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %2 = dist.constraint %v to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %3 = dist.constraint %g to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x2x12x4xf64>
    %4 = dist.constraint %m to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x12xf64>
    %hidden = nn.constant dense<[[[[-3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38],
        [-3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.6, 1.2, 0.3, 0.9, 0.0, 0.6, 1.2, 0.3, 0.9, 0.0, 0.6],
        [0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000],
        [0.0, 1.2, 0.9, 0.6, 0.3, 0.0, 1.2, 0.9, 0.6, 0.3, 0.0, 1.2],
        [1.5, 1.5, 1.5, 1.5, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000],
        [0.0, 0.3, 0.6, 0.9, 1.2, 0.0, 0.3, 0.6, 0.9, 1.2, 0.0, 0.3],
        [-3.0e38, -3.0e38, -6.0e38, -6.0e38, -6.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38, -3.0e38],
        [0.0, 0.9, 0.3, 1.2, 0.6, 0.0, 0.9, 0.3, 1.2, 0.6, 0.0, 0.9],
        [0.0, 1.2, 0.9, 0.6, 0.3, 0.0, 1.2, 0.9, 0.6, 0.3, 0.0, 1.2],
        [-0.5, -0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 0.0, -3.0e38, -3.0e38, -3.0e38, -3.0e38],
        [0.0, 0.3, 0.6, 0.9, 1.2, 0.0, 0.3, 0.6, 0.9, 1.2, 0.0, 0.3]]]]> : tensor<1x1x12x12xf64>
    %mask = nn.add %4, %hidden : tensor<1x1x12x12xf64>
    %o, %l = nn.attention %0, %1, %2 mask %mask {scale = 0.5, zero_masked_rows} : (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x12xf64>) -> (tensor<1x2x12x4xf64>, tensor<1x2x12xf64>)
    %d:3 = nn.attention_grad %0, %1, %2 output %o, %l gradient %3 mask %mask {scale = 0.5 : f64, zero_masked_rows} : (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x2x12x4xf64>, tensor<1x2x12xf64>, tensor<1x2x12x4xf64>, tensor<1x1x12x12xf64>) -> (tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>)
    %dk = dist.constraint %d#1 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    %dv = dist.constraint %d#2 to <@mesh, [{}, {}, {cp}, {}]> : tensor<1x1x12x4xf64>
    return %o, %d#0, %dk, %dv : tensor<1x2x12x4xf64>, tensor<1x2x12x4xf64>, tensor<1x1x12x4xf64>, tensor<1x1x12x4xf64>
  }
}
