// A running mean, m <- d m + (1-d) t once for each of four groups of rows, in their
// order. What the four come to is d^4 m + sum of (1-d) d^(3-g) t_g: a sum over
// micro-batches like any other. So the state is written once, in the update, no
// read sees half a step, and a step that is skipped leaves the state as it was.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/sum.mlir --accel-run-phases="to=local mesh=dp=2 micro-batches=2" | FileCheck %s
// In every phase, for every layout, what the groups give one after another.
// DEFINE: %{layout} = mesh=dp=1
// DEFINE: %{phase} = plan
// DEFINE: %{compare} = acc-opt %t/sum.mlir --accel-run-phases="to=%{phase} target=cpu:x86-64-v3 %{layout}" -o %t/m.mlir && acc-eval %t/m.mlir --compare %t/ordered.mlir --tolerance 1e-14
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=2
// RUN: %{compare}
// REDEFINE: %{phase} = dist
// RUN: %{compare}
// REDEFINE: %{phase} = local
// RUN: %{compare}
// REDEFINE: %{layout} = micro-batches=4
// REDEFINE: %{phase} = plan
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=4 set=zero_stage=3
// RUN: %{compare}
// Each micro-batch has weights of its own, which those in flight keep theirs of.
// REDEFINE: %{layout} = micro-batches=4 schedule=1f1b:2
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=4 schedule=gpipe
// RUN: %{compare}
// Written one after another it needs the groups of all micro-batches at once.
// RUN: not acc-opt %t/ordered.mlir --accel-run-phases="to=local micro-batches=4" 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: {{.*}}needs the samples of all micro-batches at once, which run one after another

// The forward has all that the mean is made of, and no gradient reads it: nothing is kept for it.
// RUN: acc-opt %t/sum.mlir --accel-run-phases="to=local" | FileCheck %s --check-prefix=ONE
// ONE: func.func private @forward
// ONE-SAME: -> (tensor<4xf64>, tensor<f64>
// ONE: func.func private @backward
// ONE-NOT: mean
// ONE: func.func private @update
// ONE-SAME: nn.state = @mean
// CHECK: func.func private @forward
// CHECK-SAME: nn.write = #nn<write accumulate_sum>
// CHECK: %[[WEIGHTS:.*]] = nn.constant dense<[3.125000e-02, 6.250000e-02, 1.250000e-01, 2.500000e-01]>
// CHECK: dist.all_slice %[[WEIGHTS]] over @mesh {mb, dp_replicate} dim 0
// CHECK: func.func private @update
// CHECK: nn.state = @mean

//--- sum.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4xf64> = dense<[0.5, -1.5, 2.5, 1.0]>
nn.state buffer @mean : tensor<4xf64> = dense<[0.25, -1.0, 0.0, 3.0]>
func.func @step(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4xf64> {nn.state = @w}, %mean: tensor<4xf64> {nn.state = @mean})
    -> (tensor<f64> {nn.output = "loss"}, tensor<f64> {nn.output = "grad_norm"}, tensor<f64> {nn.output = "lr"},
        tensor<4xf64> {nn.state = @w}, tensor<4xf64> {nn.state = @mean}) attributes {nn.entry = #nn<entry step>} {
  %wb = nn.broadcast %w : (tensor<4xf64>) -> tensor<8x4xf64>
  %y = nn.mul %x, %wb : tensor<8x4xf64>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %groups = nn.reshape %y : (tensor<8x4xf64>) -> tensor<4x2x4xf64>
  %sums = nn.reduce sum %groups dims [1] : (tensor<4x2x4xf64>) -> tensor<4x4xf64>
  // (1-d)/2 d^(3-g), d = 0.5
  %weights = nn.constant dense<[0.03125, 0.0625, 0.125, 0.25]> : tensor<4xf64>
  %wc = nn.reshape %weights : (tensor<4xf64>) -> tensor<4x1xf64>
  %weightsb = nn.broadcast %wc : (tensor<4x1xf64>) -> tensor<4x4xf64>
  %terms = nn.mul %sums, %weightsb : tensor<4x4xf64>
  %fresh = nn.reduce sum %terms dims [0] : (tensor<4x4xf64>) -> tensor<4xf64>
  %d4 = nn.constant dense<0.0625> : tensor<4xf64>
  %kept = nn.mul %mean, %d4 : tensor<4xf64>
  %next = nn.add %kept, %fresh : tensor<4xf64>
  %dw = nn.reduce sum %x dims [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %g = nn.gradient %dw of @w : tensor<4xf64>
  %new = nn.sub %w, %g : tensor<4xf64>
  %lr = nn.constant dense<1.0> : tensor<f64>
  return %loss, %loss, %lr, %new, %next : tensor<f64>, tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<4xf64>
}
}

//--- ordered.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4xf64> = dense<[0.5, -1.5, 2.5, 1.0]>
nn.state buffer @mean : tensor<4xf64> = dense<[0.25, -1.0, 0.0, 3.0]>
func.func @step(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4xf64> {nn.state = @w}, %mean: tensor<4xf64> {nn.state = @mean})
    -> (tensor<f64> {nn.output = "loss"}, tensor<f64> {nn.output = "grad_norm"}, tensor<f64> {nn.output = "lr"},
        tensor<4xf64> {nn.state = @w}, tensor<4xf64> {nn.state = @mean}) attributes {nn.entry = #nn<entry step>} {
  %wb = nn.broadcast %w : (tensor<4xf64>) -> tensor<8x4xf64>
  %y = nn.mul %x, %wb : tensor<8x4xf64>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %groups = nn.reshape %y : (tensor<8x4xf64>) -> tensor<4x2x4xf64>
  %sums = nn.reduce sum %groups dims [1] : (tensor<4x2x4xf64>) -> tensor<4x4xf64>
  %half = nn.constant dense<0.5> : tensor<4xf64>
  %quarter = nn.constant dense<0.25> : tensor<4xf64>
  %t0 = nn.slice %sums starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<4x4xf64>) -> tensor<1x4xf64>
  %r0 = nn.reshape %t0 : (tensor<1x4xf64>) -> tensor<4xf64>
  %new0 = nn.mul %r0, %quarter : tensor<4xf64>
  %kept0 = nn.mul %mean, %half : tensor<4xf64>
  %m0 = nn.add %kept0, %new0 : tensor<4xf64>
  %t1 = nn.slice %sums starts [1, 0] sizes [1, 4] steps [1, 1] : (tensor<4x4xf64>) -> tensor<1x4xf64>
  %r1 = nn.reshape %t1 : (tensor<1x4xf64>) -> tensor<4xf64>
  %new1 = nn.mul %r1, %quarter : tensor<4xf64>
  %kept1 = nn.mul %m0, %half : tensor<4xf64>
  %m1 = nn.add %kept1, %new1 : tensor<4xf64>
  %t2 = nn.slice %sums starts [2, 0] sizes [1, 4] steps [1, 1] : (tensor<4x4xf64>) -> tensor<1x4xf64>
  %r2 = nn.reshape %t2 : (tensor<1x4xf64>) -> tensor<4xf64>
  %new2 = nn.mul %r2, %quarter : tensor<4xf64>
  %kept2 = nn.mul %m1, %half : tensor<4xf64>
  %m2 = nn.add %kept2, %new2 : tensor<4xf64>
  %t3 = nn.slice %sums starts [3, 0] sizes [1, 4] steps [1, 1] : (tensor<4x4xf64>) -> tensor<1x4xf64>
  %r3 = nn.reshape %t3 : (tensor<1x4xf64>) -> tensor<4xf64>
  %new3 = nn.mul %r3, %quarter : tensor<4xf64>
  %kept3 = nn.mul %m2, %half : tensor<4xf64>
  %next = nn.add %kept3, %new3 : tensor<4xf64>
  %dw = nn.reduce sum %x dims [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %g = nn.gradient %dw of @w : tensor<4xf64>
  %new = nn.sub %w, %g : tensor<4xf64>
  %lr = nn.constant dense<1.0> : tensor<f64>
  return %loss, %loss, %lr, %new, %next : tensor<f64>, tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<4xf64>
}
}
