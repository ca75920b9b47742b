// What weight decay leaves out, by names and shapes as users have them: each decayed parameter is
// multiplied by 0.25, in its own shape.
// DEFINE: %{step} = --canonicalize --cse --nn-build-step="loss=y optimizer=sgd set=optimizer.lr=0.5,optimizer.weight_decay=0.25
// DEFINE: %{decayed} = grep -o 'dense<2.500000e-01> .*' | sort
// RUN: split-file %s %t

// Vectors: what has one dimension (of a stack its members), and biases of any; neither scalars nor matrices.
// RUN: acc-opt %t/model.mlir %{step},optimizer.no_decay=vectors" --cse | %{decayed} | FileCheck %s --check-prefix=VECTORS
// VECTORS:      : tensor<6x7xf32>
// VECTORS-NEXT: : tensor<f32>
// VECTORS-NOT:  {{.}}

// All, and those that a pattern names: by an alias, and by the members of a stack.
// RUN: acc-opt %t/model.mlir %{step}" --cse | %{decayed} | FileCheck %s --check-prefix=ALL
// ALL:      : tensor<2x3xf32>
// ALL-NEXT: : tensor<4x5xf32>
// ALL-NEXT: : tensor<6x7xf32>
// ALL-NEXT: : tensor<8xf32>
// ALL-NEXT: : tensor<9x2xf32>
// ALL-NEXT: : tensor<f32>
// ALL-NOT:  {{.}}
// RUN: acc-opt %t/model.mlir %{step},{optimizer.no_decay=u.*,up.?,*calar}" --cse | %{decayed} | FileCheck %s --check-prefix=NAMED
// NAMED:      : tensor<4x5xf32>
// NAMED-NEXT: : tensor<6x7xf32>
// NAMED-NEXT: : tensor<8xf32>
// NAMED-NOT:  {{.}}

// What is to be decayed all the same: by a pattern, and norms of queries and keys by their names.
// RUN: acc-opt %t/model.mlir %{step},{optimizer.no_decay=vectors,matrix},{optimizer.decay=qk_norms,t.*}" --cse | %{decayed} | FileCheck %s --check-prefix=BUT
// BUT:      : tensor<4x5xf32>
// BUT-NEXT: : tensor<8xf32>
// BUT-NEXT: : tensor<f32>
// BUT-NOT:  {{.}}

// RUN: not acc-opt %t/model.mlir %{step},optimizer.no_decay=mtarix" 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: pattern 'mtarix' of optimizer.no_decay matches no parameter, the nearest are 'matrix'
// RUN: not acc-opt %t/model.mlir %{step},optimizer.decay=mtarix" 2>&1 | FileCheck %s --check-prefix=DECAY
// DECAY: error: pattern 'mtarix' of optimizer.decay matches no parameter
// RUN: not acc-opt %t/model.mlir %{step},optimizer.no_decay=up.0" 2>&1 | FileCheck %s --check-prefix=STACK
// STACK: error: expected 'up.1' to be updated as 'up.0' is, because 'up.*' holds both: match all of them by 'optimizer.no_decay' or groups[PATTERN], or none
// RUN: not acc-opt %t/plain.mlir %{step},optimizer.no_decay=vectors,optimizer.decay=qk_norms" 2>&1 | FileCheck %s --check-prefix=NORMS
// NORMS: error: expected norms of queries and keys with 'optimizer.decay=qk_norms', found no parameter of q_layernorm, k_layernorm, q_norm or k_norm: name them by --set optimizer.decay=PATTERN

//--- model.mlir
nn.state @up.0 : tensor<3xf32> = dense<1.0>
nn.state @up.1 : tensor<3xf32> = dense<1.0>
nn.state @"up.*" : tensor<2x3xf32> = [@up.0, @up.1]
nn.state @t.bias : tensor<4x5xf32> = dense<1.0>
nn.state @matrix : tensor<6x7xf32> = dense<1.0>
nn.state @a.q_norm.weight : tensor<8xf32> = dense<1.0>
nn.state @w : tensor<9x2xf32> = dense<1.0> {aliases = ["u.bias"]}
nn.state @scalar : tensor<f32> = dense<1.0>
func.func @main(%x: tensor<f32> {nn.input = "x"}, %up: tensor<2x3xf32> {nn.state = @"up.*"},
    %t: tensor<4x5xf32> {nn.state = @t.bias}, %matrix: tensor<6x7xf32> {nn.state = @matrix},
    %norm: tensor<8xf32> {nn.state = @a.q_norm.weight}, %w: tensor<9x2xf32> {nn.state = @w},
    %scalar: tensor<f32> {nn.state = @scalar})
    -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
  %0 = nn.reduce sum %up dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  %1 = nn.reduce sum %t dims [0, 1] : (tensor<4x5xf32>) -> tensor<f32>
  %2 = nn.reduce sum %matrix dims [0, 1] : (tensor<6x7xf32>) -> tensor<f32>
  %3 = nn.reduce sum %norm dims [0] : (tensor<8xf32>) -> tensor<f32>
  %4 = nn.reduce sum %w dims [0, 1] : (tensor<9x2xf32>) -> tensor<f32>
  %5 = nn.add %0, %1 : tensor<f32>
  %6 = nn.add %5, %2 : tensor<f32>
  %7 = nn.add %6, %3 : tensor<f32>
  %8 = nn.add %7, %4 : tensor<f32>
  %9 = nn.add %8, %scalar : tensor<f32>
  %y = nn.mul %9, %x : tensor<f32>
  return %y : tensor<f32>
}
//--- plain.mlir
nn.state @norm.weight : tensor<3xf32> = dense<1.0>
func.func @main(%x: tensor<3xf32> {nn.input = "x"}, %w: tensor<3xf32> {nn.state = @norm.weight})
    -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
  %p = nn.mul %x, %w : tensor<3xf32>
  %y = nn.reduce sum %p dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
