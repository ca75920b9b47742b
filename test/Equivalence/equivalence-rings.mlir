// Attention by a ring: each rank begins with its own keys and values, which go from
// rank to rank, and what it makes of each part is combined by the log-sum-exps; gradients
// of keys and values go round with them. Another part than said, a part that is
// missing, and what is combined otherwise is refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12

// Of all keys, and of rows that begin behind the keys.
// RUN: sed 's/causal, scale/scale/' %s > %t/all.train.mlir
// RUN: acc-opt %t/all.train.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/all.decided.mlir
// RUN: acc-opt %t/all.decided.mlir --accel-run-phases="to=local" -o %t/all.local.mlir
// RUN: grep -c 'dist.permute' %t/all.local.mlir | FileCheck %s --check-prefix=MOVES
// RUN: acc-opt %t/all.local.mlir --dist-verify-equivalence=logical=%t/all.decided.mlir -o /dev/null
// RUN: acc-eval %t/all.local.mlir --compare %t/all.train.mlir --tolerance 1e-12
// RUN: sed 's/causal, scale/causal, row_offset = 3 : i64, scale/' %s > %t/behind.train.mlir
// RUN: acc-opt %t/behind.train.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/behind.decided.mlir
// RUN: acc-opt %t/behind.decided.mlir --accel-run-phases="to=local" -o %t/behind.local.mlir
// RUN: grep -c 'dist.permute' %t/behind.local.mlir | FileCheck %s --check-prefix=MOVES
// RUN: acc-opt %t/behind.local.mlir --dist-verify-equivalence=logical=%t/behind.decided.mlir -o /dev/null
// RUN: acc-eval %t/behind.local.mlir --compare %t/behind.train.mlir --tolerance 1e-12
// MOVES: {{^}}12{{$}}

// Of terms in bf16 that are joined in f32: the value once they are rounded to its type.
// RUN: sed 's/xf64/xbf16/g;s/\(tensor<[0-9]*x[0-9]*x[0-9]*x\)bf16>/\1f32>/g' %s > %t/narrow.train.mlir
// RUN: acc-opt %t/narrow.train.mlir --accel-run-phases="to=decided set=cp.strategy=ring" -o %t/narrow.decided.mlir
// RUN: acc-opt %t/narrow.decided.mlir --accel-run-phases="to=local" -o %t/narrow.local.mlir
// RUN: grep -c 'nn.cast' %t/narrow.local.mlir | FileCheck %s --check-prefix=CASTS
// RUN: acc-opt %t/narrow.local.mlir --dist-verify-equivalence=logical=%t/narrow.decided.mlir -o /dev/null
// CASTS: {{^}}4{{$}}

// The plan says it, and ranks obey it.
// RUN: acc-opt %t/local.mlir --proved-against=%s --compile-to=plan -o %t/plan.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare %s --tolerance 1e-12
// PLAN: plan.attention {{.*}}column_steps {cp = 1 : i64}{{.*}}turn 2{{.*}}stride 3
// PLAN: plan.attention_grad {{.*}}column_steps {cp = 1 : i64}{{.*}}turn 1{{.*}}stride 3

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not cmp -s %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: {{.*(does not follow from the logical program|found something else)}}

// Another turn than that of the keys that have come; no turn; keys, or rows, that begin
// elsewhere, or of all ranks; rows of a range, or further apart, or keys that are; rows that see nothing would count as the mean of what is hidden from them.
// REDEFINE: %{edit} = /nn.attention /s/turn = 1/turn = 2/
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/turn = 2 : i64, //
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention /s/column_steps = {cp = 1/column_steps = {cp = 2/
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/row_steps = {cp = 1/row_steps = {cp = 2/
// RUN: %{refused}
// REDEFINE: %{edit} = /turn = /!s/column_steps = {cp = 1 : i64}, //
// RUN: %{refused}
// REDEFINE: %{edit} = s/, stride = 3 : i64//
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/stride = 3/stride = 4/
// RUN: %{refused}
// REDEFINE: %{edit} = s/, interleaved = <2\[3\] times 4 by 3>//
// RUN: %{refused}
// REDEFINE: %{edit} = /^ *func.func/,/->/s/interleaved = <2\[3\] times 4 by 3>/interleaved = <2[6] times 2 by 3>/
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention /s/, zero_masked_rows//
// RUN: %{refused}
// REDEFINE: %{edit} = /nn.attention_grad /s/, zero_masked_rows//
// RUN: %{refused}
// Keys that stay where they are, that go the other way, values of another turn.
// REDEFINE: %{edit} = s/nn.attention %arg0, %0, %1 /nn.attention %arg0, %arg1, %arg2 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/\[2, 0, 1\]/[1, 2, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/permute %arg1 over @mesh {cp} sources \[2, 0, 1\]/permute %arg1 over @mesh {cp} sources [2, 1, 0]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.attention %arg0, %19, %20 /nn.attention %arg0, %19, %1 /
// RUN: %{refused}
// Rows: one part for all, one part twice, weights by the wrong log-sum-exp, none.
// REDEFINE: %{edit} = s/return %37, /return %18, /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%37 = nn.add %31, %36 /%37 = nn.add %31, %17 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%13 = nn.sub %log_sum_exp_1, %7 /%13 = nn.sub %log_sum_exp, %7 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%8 = nn.sub %log_sum_exp, %7 /%8 = nn.sub %log_sum_exp, %2 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%18 = nn.add %12, %17 /%18 = nn.add %result, %result_0 /
// RUN: %{refused}
// The log-sum-exp of all: of the largest, of two parts; the log of something else.
// REDEFINE: %{edit} = s/%26 = nn.add %21, %25 /%26 = nn.max %7, %log_sum_exp_3 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/output %37, %26 /output %37, %7 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%22 = nn.min %7, %log_sum_exp_3 /%22 = nn.min %7, %log_sum_exp_1 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%6 = nn.log1p %5 /%6 = nn.log %5 /
// RUN: %{refused}
// Gradients: of keys without a term, with one twice, that are not at home yet; of rows
// without a turn.
// REDEFINE: %{edit} = s/%49 = nn.add %48, %key_gradient_8 /%49 = nn.add %48, %48 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%44 = nn.add %43, %key_gradient_5 /%44 = nn.add %43, %43 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%51 = nn.add %50, /%51 = nn.add %46, /
// RUN: %{refused}
// REDEFINE: %{edit} = s/return %37, %47, %49, /return %37, %47, %44, /
// RUN: %{refused}
// REDEFINE: %{edit} = s/%49 = nn.add %48, %key_gradient_8 /%49 = nn.add %48, %value_gradient_9 /
// RUN: %{refused}
// REDEFINE: %{edit} = s/return %37, %47, /return %37, %42, /
// RUN: %{refused}

// A plan whose keys are another turn's.
// RUN: sed '/plan.attention /s/turn 1/turn 2/' %t/plan.mlir > %t/turned.mlir
// RUN: not acc-opt %t/turned.mlir --plan-verify-equivalence=local=%t/local.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=TURNED
// TURNED: error
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
