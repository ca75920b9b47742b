// Where several convolutions read one transpose, their gradients are added behind
// it, in the order that all else has.
// RUN: acc-opt %s --nn-append-gradients --canonicalize --cse | FileCheck %s

// CHECK-DAG: %[[A:.*]] = nn.conv_input_grad {{.*}} -> tensor<2x4x8x8xf32>
// CHECK-DAG: %[[AL:.*]] = nn.transpose %[[A]] [0, 2, 3, 1]
// CHECK-DAG: %[[B:.*]] = nn.conv_input_grad {{.*}} -> tensor<2x4x8x8xf32>
// CHECK-DAG: %[[BL:.*]] = nn.transpose %[[B]] [0, 2, 3, 1]
// CHECK: nn.add %{{.*}}, %{{.*}} : tensor<2x8x8x4xf32>
// CHECK-NOT: nn.add %{{.*}} : tensor<2x4x8x8xf32>
func.func @main(%x: tensor<2x8x8x4xf32>, %v: tensor<5x4x3x3xf32>, %w: tensor<6x4x1x1xf32>) -> tensor<f32> attributes {nn.entry} {
  %t = nn.transpose %x [0, 3, 1, 2] : (tensor<2x8x8x4xf32>) -> tensor<2x4x8x8xf32>
  %a = nn.conv %t, %v sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : (tensor<2x4x8x8xf32>, tensor<5x4x3x3xf32>) -> tensor<2x5x8x8xf32>
  %b = nn.conv %t, %w sizes [4, 4] strides [2, 2] dilations [1, 1] low [0, 0] : (tensor<2x4x8x8xf32>, tensor<6x4x1x1xf32>) -> tensor<2x6x4x4xf32>
  %0 = nn.reduce sum %a dims [0, 1, 2, 3] : (tensor<2x5x8x8xf32>) -> tensor<f32>
  %1 = nn.reduce sum %b dims [0, 1, 2, 3] : (tensor<2x6x4x4xf32>) -> tensor<f32>
  %2 = nn.mul %0, %1 : tensor<f32>
  return %2 : tensor<f32>
}
