// What compression leaves out of a gradient: each data-parallel rank keeps a term of it from step
// to step, and the value is their sum. A term that is no term, or of something else, is refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --nn-factor-gradients="start=0 min-compression-rate=1" -o %t/train.mlir
// DEFINE: %{mesh} = dp=2
// DEFINE: %{local} = acc-opt %t/train.mlir --accel-run-phases="to=local mesh=%{mesh}" -o %t/local.mlir
// DEFINE: %{verify} = acc-opt --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: %{local} && %{verify} %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// CHECK: nn.state residual @"power_sgd_error/w" : tensor<2x4x6xf32> = dense<0.000000e+00>
// CHECK: func.func private @backward
// CHECK-SAME: tensor<1x4x6xf32> {dist.layout = #dist.layout<@mesh [2 by {dp_replicate}, 4, 6]>, nn.state = @"power_sgd_error/w"}
// CHECK: dist.all_reduce sum {{.*}} : tensor<1x4xf32>
// CHECK: dist.all_reduce sum {{.*}} : tensor<1x6xf32>
// CHECK-NOT: dist.all_reduce

// Its new value: what is left out of the sum is no rank's term.
// RUN: sed 's/nn.sub %3, %15 /nn.sub %3, %14 /' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: does not follow from the logical program: is not linear in what is partial over axis 'dp_replicate': a sum is missing
// Nor is the sum of terms.
// RUN: sed 's/%16 = \(nn.sub.*\)/%left = \1\n%16 = dist.all_reduce sum %left over @mesh {dp_replicate} : tensor<4x6xf32>/; s/%21 = nn.select %19, %20, %arg2/%21 = nn.select %19, %20, %20/' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: error: result 1 of @backward, new state 'power_sgd_error/w', expected [{}, {}, {}] partial {dp_replicate}, found something else
// A term of the gradient is none of what is left out of it.
// RUN: sed 's/nn.reshape %16 /nn.reshape %1 /' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: result 1 of @backward, new state 'power_sgd_error/w', expected [{}, {}, {}] partial {dp_replicate}, found something else
// Factors are needed as sums.
// RUN: sed 's/nn.mul %5, %5 /nn.mul %4, %4 /' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=FACTOR
// FACTOR: error: does not follow from the logical program: is not linear in what is partial over axis 'dp_replicate': a sum is missing
// RUN: sed 's/nn.select %22, %13, /nn.select %22, %12, /' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=RIGHT
// RIGHT: error: result 2 of @backward, new state 'power_sgd_q/w', expected [{}, {}], found something else
// What was left out is added once.
// RUN: sed 's/nn.add %1, %2 /nn.add %2, %2 /' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: does not follow from the logical program

// One that all ranks have is no term, and one that nobody tells apart cannot be kept.
// RUN: sed 's/tensor<2x4x6xf32>/tensor<1x4x6xf32>/; s/\[2 by {dp_replicate}, 4, 6\]/[1, 4, 6]/g' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: does not follow from the logical program
// RUN: sed 's/tensor<2x4x6xf32>/tensor<1x4x6xf32>/; s/\[2 by {dp_replicate}, 4, 6\]/[1, 4, 6], partial = {dp_replicate}/g' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: expected a term of state 'power_sgd_error/w' from each rank that has its own, found #dist.layout<@mesh [1, 4, 6], partial = {dp_replicate}>
// It is a residual, and begins as zeros, whose sum is zeros.
// RUN: sed 's/nn.state residual/nn.state factor/' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=ROLE
// ROLE: error: 'nn.state' op expected a value of 'tensor<1x4x6xf32>' as in the logical program, found 'tensor<2x4x6xf32>'
// RUN: sed 's/\(nn.state residual.* = dense<\)0/\11/' %t/local.mlir | not %{verify} 2>&1 | FileCheck %s --check-prefix=ZEROS
// ZEROS: error: 'nn.state' op expected a residual of floats that begins with a dimension of terms, all zeros, found 'tensor<2x4x6xf32>' = dense<1.000000e+00>

// On one rank it is the value.
// REDEFINE: %{mesh} = dp=1
// RUN: %{local} && FileCheck %s --check-prefix=ONE < %t/local.mlir
// ONE: nn.state residual @"power_sgd_error/w" : tensor<1x4x6xf32>
// ONE-NOT: dist.all_reduce

// A gradient that ranks have whole has no terms.
// RUN: not acc-opt %t/train.mlir --accel-run-phases="to=local mesh=dp=2 batch-dim=x=none" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected a term of the new value of @"power_sgd_error/w" from each data-parallel rank, which has one of the gradient, found

module attributes {accel.phase = "train", accel.reports = ["loss", "verdict"]} {
nn.state @w : tensor<4x6xf32> = dense<1.0>
nn.state counter @"counter/call" : tensor<i64> = dense<0>
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x6xf32> {nn.state = @w}, %n: tensor<i64> {nn.state = @"counter/call"})
    -> (tensor<f32> {nn.output = "loss"}, tensor<i32> {nn.output = "verdict"}, tensor<4x6xf32> {nn.state = @w}, tensor<i64> {nn.state = @"counter/call"}) attributes {nn.entry = #nn<entry step>} {
  %big = nn.constant dense<1.0e+30> : tensor<f32>
  %one = nn.constant dense<1> : tensor<i64>
  %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32>
  %a = nn.tanh %y : tensor<8x6xf32>
  %dw = nn.matmul %x, %a {transpose_lhs} : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %g = nn.gradient %dw of @w : tensor<4x6xf32>
  %w1 = nn.sub %w, %g : tensor<4x6xf32>
  %fine = nn.compare lt %loss, %big : tensor<f32>
  %next = nn.add %n, %one : tensor<i64>
  %done = nn.constant dense<0> : tensor<i32>
  %failed = nn.constant dense<2> : tensor<i32>
  %verdict = nn.select %fine, %done, %failed : tensor<i32>
  return %loss, %verdict, %w1, %next : tensor<f32>, tensor<i32>, tensor<4x6xf32>, tensor<i64>
}
}
