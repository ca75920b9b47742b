// Convolutions, one to three dimensions of space, without groups and with, as
// they are read and written.
// RUN: acc-opt %s | acc-opt | FileCheck %s

// CHECK-LABEL: func.func @conv(
func.func @conv(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x3x3xf32>, %y: tensor<2x5x4x4xf32>) {
  // CHECK: nn.conv %{{.*}}, %{{.*}} sizes [4, 4] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
  %0 = nn.conv %x, %w sizes [4, 4] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
  // CHECK: nn.conv_input_grad %{{.*}}, %{{.*}} sizes [8, 8] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<2x5x4x4xf32>, tensor<5x3x3x3xf32>) -> tensor<2x3x8x8xf32>
  %1 = nn.conv_input_grad %y, %w sizes [8, 8] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<2x5x4x4xf32>, tensor<5x3x3x3xf32>) -> tensor<2x3x8x8xf32>
  // CHECK: nn.conv_weight_grad %{{.*}}, %{{.*}} sizes [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x5x4x4xf32>) -> tensor<5x3x3x3xf32>
  %2 = nn.conv_weight_grad %x, %y sizes [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x5x4x4xf32>) -> tensor<5x3x3x3xf32>
  return
}

// CHECK-LABEL: func.func @groups(
func.func @groups(%x: tensor<2x4x1x8xbf16>, %w: tensor<4x1x1x3xbf16>, %v: tensor<2x4x1x8x8x2xf64>, %u: tensor<4x3x1x1x1x1xf64>) {
  // CHECK: nn.conv %{{.*}}, %{{.*}} sizes [8] strides [1] dilations [1] low [1] : (tensor<2x4x1x8xbf16>, tensor<4x1x1x3xbf16>) -> tensor<2x4x1x8xbf16>
  %0 = nn.conv %x, %w sizes [8] strides [1] dilations [1] low [1] : (tensor<2x4x1x8xbf16>, tensor<4x1x1x3xbf16>) -> tensor<2x4x1x8xbf16>
  // CHECK: nn.conv %{{.*}} -> tensor<2x4x3x8x8x2xf64>
  %1 = nn.conv %v, %u sizes [8, 8, 2] strides [1, 1, 1] dilations [1, 1, 1] low [0, 0, 0] : (tensor<2x4x1x8x8x2xf64>, tensor<4x3x1x1x1x1xf64>) -> tensor<2x4x3x8x8x2xf64>
  return
}
