// Channels that come last change no number: a forward and its gradients, with what
// stands between convolutions.
// RUN: acc-opt %s --nn-append-gradients -o %t.first
// RUN: acc-opt %s --nn-put-channels-last --canonicalize --cse --nn-append-gradients -o %t
// RUN: FileCheck %s < %t
// RUN: acc-eval %t --compare %t.first --f64 --tolerance 1e-12
// RUN: acc-eval %t --compare %t.first --own-types --tolerance 1e-5

// The backward inherits it.
// CHECK: nn.relu %{{.*}} : tensor<2x8x8x4xf32>
// CHECK: nn.conv_input_grad
// CHECK: nn.select {{.*}} : {{.*}}tensor<2x8x8x4xf32>
func.func @main(%x: tensor<2x4x8x8xf32>, %v: tensor<4x4x3x3xf32>, %w: tensor<5x4x3x3xf32>, %u: tensor<5x3x2x2xf32>, %bias: tensor<4xf32>) -> tensor<f32> attributes {nn.entry} {
  %zero = nn.constant dense<0.25> : tensor<f32>
  %a = nn.conv %x, %v sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.reshape %bias : (tensor<4xf32>) -> tensor<1x4x1x1xf32>
  %c = nn.broadcast %b : (tensor<1x4x1x1xf32>) -> tensor<2x4x8x8xf32>
  %s = nn.add %a, %c : tensor<2x4x8x8xf32>
  %r = nn.relu %s : tensor<2x4x8x8xf32>
  %d = nn.conv %r, %v sizes [8, 8] strides [1, 1] dilations [2, 1] low [2, 1] : (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x8x8xf32>
  %j = nn.concat %r, %d dim 1 : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x8x8x8xf32>
  %p = nn.pad %j, %zero low [0, 0, 1, 0] high [0, 0, 0, 2] : (tensor<2x8x8x8xf32>, tensor<f32>) -> tensor<2x8x9x10xf32>
  %k = nn.slice %p starts [0, 6, 0, 0] sizes [2, 4, 9, 10] steps [1, -1, 1, 1] : (tensor<2x8x9x10xf32>) -> tensor<2x4x9x10xf32>
  %y = nn.conv %k, %w sizes [5, 4] strides [2, 3] dilations [1, 1] low [1, 1] : (tensor<2x4x9x10xf32>, tensor<5x4x3x3xf32>) -> tensor<2x5x5x4xf32>
  %z = nn.conv_input_grad %y, %u sizes [9, 8] strides [2, 2] dilations [1, 1] low [0, 0] : (tensor<2x5x5x4xf32>, tensor<5x3x2x2xf32>) -> tensor<2x3x9x8xf32>
  %q = nn.mul %z, %z : tensor<2x3x9x8xf32>
  %0 = nn.reduce sum %q dims [1] : (tensor<2x3x9x8xf32>) -> tensor<2x9x8xf32>
  %1 = nn.reduce max %0 dims [1, 2] : (tensor<2x9x8xf32>) -> tensor<2xf32>
  %2 = nn.reduce sum %q dims [0, 3] : (tensor<2x3x9x8xf32>) -> tensor<3x9xf32>
  %3 = nn.mul %2, %2 : tensor<3x9xf32>
  %4 = nn.reduce sum %3 dims [0, 1] : (tensor<3x9xf32>) -> tensor<f32>
  %5 = nn.reduce sum %1 dims [0] : (tensor<2xf32>) -> tensor<f32>
  %6 = nn.add %4, %5 : tensor<f32>
  return %6 : tensor<f32>
}
