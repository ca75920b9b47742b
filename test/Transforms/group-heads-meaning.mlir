// Attention on heads as they were gives the numbers of attention on repeated
// ones; and so do the gradients, those of a shared head summed.
// RUN: acc-opt %s --nn-append-gradients -o %t.wide
// RUN: acc-opt %s --nn-group-heads --canonicalize --nn-append-gradients -o %t
// RUN: FileCheck %s < %t
// RUN: acc-eval %t --compare %t.wide --f64 --tolerance 1e-12
// RUN: acc-eval %t --compare %t.wide --own-types --tolerance 1e-5

// CHECK: nn.attention {{.*}} : (tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
// CHECK: nn.attention_grad {{.*}} -> (tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
func.func @main(%q: tensor<2x6x3x4xf32>, %k: tensor<2x3x2x4xf32>, %v: tensor<2x3x2x4xf32>, %cos: tensor<3x4xf32>) -> tensor<f32> attributes {nn.entry} {
  %0 = nn.reshape %k : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x1x4xf32>
  %1 = nn.broadcast %0 : (tensor<2x3x2x1x4xf32>) -> tensor<2x3x2x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x3x2x3x4xf32>) -> tensor<2x3x6x4xf32>
  %3 = nn.transpose %2 [0, 2, 1, 3] : (tensor<2x3x6x4xf32>) -> tensor<2x6x3x4xf32>
  %c = nn.broadcast %cos : (tensor<3x4xf32>) -> tensor<2x6x3x4xf32>
  %4 = nn.mul %3, %c : tensor<2x6x3x4xf32>
  %5 = nn.reshape %v : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x1x4xf32>
  %6 = nn.broadcast %5 : (tensor<2x3x2x1x4xf32>) -> tensor<2x3x2x3x4xf32>
  %7 = nn.reshape %6 : (tensor<2x3x2x3x4xf32>) -> tensor<2x3x6x4xf32>
  %8 = nn.transpose %7 [0, 2, 1, 3] : (tensor<2x3x6x4xf32>) -> tensor<2x6x3x4xf32>
  %y, %l = nn.attention %q, %4, %8 {causal, scale = 0.5} : (tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) -> (tensor<2x6x3x4xf32>, tensor<2x6x3xf32>)
  %s = nn.mul %y, %q : tensor<2x6x3x4xf32>
  %r = nn.reduce sum %s dims [0, 1, 2, 3] : (tensor<2x6x3x4xf32>) -> tensor<f32>
  return %r : tensor<f32>
}
