// A rounding between ranks is one that the step declares, of sums that nothing but gradients is
// made of; whatever else is sent keeps its type.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/train.mlir --accel-run-phases="to=decided mesh=dp=2" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t/local.mlir
// LOCAL: dist.all_reduce sum %[[DW:.*]] over @mesh {dp_replicate} wire bf16 {{.*}} : tensor<4x{{[24]}}xf32>
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// NONE-NOT: error

// Nobody has asked for it, or for another type.
// RUN: sed 's/, accel.gradient_wire = bf16//' %t/train.mlir > %t/silent.mlir
// RUN: not acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/silent.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=SILENT
// SILENT: error: does not follow from the logical program: sends 'bf16', expected its own type: no rounding of gradients is declared
// RUN: sed 's/gradient_wire = bf16/gradient_wire = f16/' %t/train.mlir > %t/other.mlir
// RUN: not acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/other.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: does not follow from the logical program: sends 'bf16', expected 'f16', which it declares for gradients
// Who sends all in its own type rounds less than was declared.
// RUN: sed 's/ wire bf16//' %t/local.mlir > %t/exact.mlir
// RUN: acc-opt %t/exact.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null

// The loss is no gradient.
// RUN: sed 's/\(dist.all_reduce sum .* over @mesh {dp_replicate}\) \({.*} : tensor<f32>\)/\1 wire bf16 \2/' %t/local.mlir > %t/loss.mlir
// RUN: not cmp -s %t/local.mlir %t/loss.mlir
// RUN: not acc-opt %t/loss.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOSS
// LOSS: error: does not follow from the logical program: rounds a sum that not only gradients are made of

// Ranks of tp have terms of one product, which are no gradients of ranks.
// RUN: sed 's/dp_replicate/tp/g' %t/local.mlir > %t/tp.mlir
// RUN: not acc-opt %t/tp.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=TP
// TP: error: does not follow from the logical program: rounds a sum over axis 'tp', whose ranks share the work on a sample

// What is gathered is no sum.
// RUN: acc-opt %t/train.mlir --accel-run-phases="to=local mesh=dp=2 set=zero_stage=1" | sed 's/\(dist.all_gather .* dim 0\) {/\1 wire bf16 {/' > %t/gather.mlir
// RUN: grep -q 'dist.all_gather.*wire bf16' %t/gather.mlir
// RUN: not acc-opt %t/gather.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=GATHER
// GATHER: error: does not follow from the logical program: rounds what is no sum

//--- train.mlir
module attributes {accel.phase = "train", accel.gradient_wire = bf16} {
nn.state @w : tensor<4x4xf32> = dense<0.0>
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}, tensor<4x4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %a = nn.relu %y : tensor<8x4xf32>
  %xt = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw = nn.matmul %xt, %a : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %g = nn.gradient %dw of @w : tensor<4x4xf32>
  %w1 = nn.sub %w, %g : tensor<4x4xf32>
  return %loss, %w1 : tensor<f32>, tensor<4x4xf32>
}
}
