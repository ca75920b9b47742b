// Tensors between convolutions get their channels last where that is worth the
// transposes around them.
// RUN: acc-opt %s --nn-put-channels-last --canonicalize --cse | FileCheck %s

// Two convolutions, and what stands between and behind them: a bias, a batch
// norm, an activation, padding, a slice, a concatenation. Sums over channels, and
// over positions, are others.
// CHECK-LABEL: @block(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x16x8x8xf32>, %[[V:[a-z0-9]+]]: {{.*}}, %[[W:[a-z0-9]+]]: {{.*}}, %[[B:[a-z0-9]+]]: {{.*}}, %[[MEAN:[a-z0-9]+]]: {{.*}}, %[[VAR:[a-z0-9]+]]: tensor
// CHECK-DAG: %[[A:.*]] = nn.conv %[[X]], %[[V]]
// CHECK-DAG: %[[AL:.*]] = nn.transpose %[[A]] [0, 2, 3, 1] : (tensor<2x16x8x8xf32>) -> tensor<2x8x8x16xf32>
// CHECK-DAG: %[[BC:.*]] = nn.reshape %[[B]] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
// CHECK-DAG: %[[BL:.*]] = nn.broadcast %[[BC]] : (tensor<1x1x1x16xf32>) -> tensor<2x8x8x16xf32>
// CHECK: %[[S:.*]] = nn.add %[[AL]], %[[BL]]
// CHECK: %[[N:.*]] = nn.batch_norm %[[S]], %[[MEAN]], %[[VAR]] dim 3 momentum
// CHECK: %[[R:.*]] = nn.relu %[[N]]
// CHECK: %[[P:.*]] = nn.pad %[[R]], %{{.*}} low [0, 1, 0, 0] high [0, 0, 2, 0] : {{.*}} -> tensor<2x9x10x16xf32>
// CHECK: %[[C:.*]] = nn.slice %[[P]] starts [0, 1, 0, 4] sizes [2, 8, 8, 8] steps [1, 1, 1, 1]
// CHECK: %[[J:.*]] = nn.concat %[[C]], %[[C]] dim 3
// CHECK: %[[F:.*]] = nn.transpose %[[J]] [0, 3, 1, 2] : (tensor<2x8x8x16xf32>) -> tensor<2x16x8x8xf32>
// CHECK: %[[Y:.*]] = nn.conv %[[F]], %[[W]]
// CHECK: %[[YL:.*]] = nn.transpose %[[Y]] [0, 2, 3, 1]
// CHECK-DAG: nn.reduce sum %[[YL]] dims [3] : (tensor<2x8x8x16xf32>) -> tensor<2x8x8xf32>
// CHECK-DAG: nn.reduce max %[[YL]] dims [1, 2] : (tensor<2x8x8x16xf32>) -> tensor<2x16xf32>
// CHECK-DAG: %[[ROWS:.*]] = nn.reduce sum %[[YL]] dims [0, 2] : (tensor<2x8x8x16xf32>) -> tensor<8x16xf32>
// CHECK-DAG: nn.transpose %[[ROWS]] [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
func.func @block(%x: tensor<2x16x8x8xf32>, %v: tensor<16x16x3x3xf32>, %w: tensor<16x16x1x1xf32>, %bias: tensor<16xf32>, %mean: tensor<16xf32>, %var: tensor<16xf32>) -> (tensor<2x8x8xf32>, tensor<2x16xf32>, tensor<16x8xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %a = nn.conv %x, %v sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : (tensor<2x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<2x16x8x8xf32>
  %b = nn.reshape %bias : (tensor<16xf32>) -> tensor<1x16x1x1xf32>
  %c = nn.broadcast %b : (tensor<1x16x1x1xf32>) -> tensor<2x16x8x8xf32>
  %s = nn.add %a, %c : tensor<2x16x8x8xf32>
  %n = nn.batch_norm %s, %mean, %var dim 1 momentum 0.1 epsilon 1.0e-5 : (tensor<2x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x16x8x8xf32>
  %r = nn.relu %n : tensor<2x16x8x8xf32>
  %p = nn.pad %r, %zero low [0, 0, 1, 0] high [0, 0, 0, 2] : (tensor<2x16x8x8xf32>, tensor<f32>) -> tensor<2x16x9x10xf32>
  %k = nn.slice %p starts [0, 4, 1, 0] sizes [2, 8, 8, 8] steps [1, 1, 1, 1] : (tensor<2x16x9x10xf32>) -> tensor<2x8x8x8xf32>
  %j = nn.concat %k, %k dim 1 : (tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>) -> tensor<2x16x8x8xf32>
  %y = nn.conv %j, %w sizes [8, 8] strides [1, 1] dilations [1, 1] low [0, 0] : (tensor<2x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<2x16x8x8xf32>
  %0 = nn.reduce sum %y dims [1] : (tensor<2x16x8x8xf32>) -> tensor<2x8x8xf32>
  %1 = nn.reduce max %y dims [2, 3] : (tensor<2x16x8x8xf32>) -> tensor<2x16xf32>
  %2 = nn.reduce sum %y dims [0, 3] : (tensor<2x16x8x8xf32>) -> tensor<16x8xf32>
  return %0, %1, %2 : tensor<2x8x8xf32>, tensor<2x16xf32>, tensor<16x8xf32>
}

// What a model transposes itself between convolutions is gone.
// CHECK-LABEL: @own_transposes(
// CHECK: %[[B:.*]] = nn.conv
// CHECK: nn.conv
// CHECK-NEXT: %[[T:.*]] = nn.transpose
// CHECK-NEXT: %[[N:.*]] = nn.layer_norm %[[T]], %{{.*}} dim 2
// CHECK-NEXT: nn.transpose %[[N]]
// CHECK-NEXT: return
func.func @own_transposes(%x: tensor<2x16x32xf32>, %v: tensor<16x16x3xf32>, %scale: tensor<16xf32>) -> tensor<2x16x32xf32> {
  %a = nn.conv %x, %v sizes [32] strides [1] dilations [1] low [1] : (tensor<2x16x32xf32>, tensor<16x16x3xf32>) -> tensor<2x16x32xf32>
  %b = nn.conv %a, %v sizes [32] strides [1] dilations [1] low [1] : (tensor<2x16x32xf32>, tensor<16x16x3xf32>) -> tensor<2x16x32xf32>
  %t = nn.transpose %b [0, 2, 1] : (tensor<2x16x32xf32>) -> tensor<2x32x16xf32>
  %n = nn.layer_norm %t, %scale dim 2 epsilon 1.0e-5 : (tensor<2x32x16xf32>, tensor<16xf32>) -> tensor<2x32x16xf32>
  %u = nn.transpose %n [0, 2, 1] : (tensor<2x32x16xf32>) -> tensor<2x16x32xf32>
  return %u : tensor<2x16x32xf32>
}

// A patch embedding: one convolution, of a picture that would be transposed, and
// so would what it makes.
// CHECK-LABEL: @patches(
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @patches(%x: tensor<2x3x8x8xf32>, %w: tensor<16x3x4x4xf32>) -> tensor<2x16x4xf32> {
  %a = nn.conv %x, %w sizes [2, 2] strides [4, 4] dilations [1, 1] low [0, 0] : (tensor<2x3x8x8xf32>, tensor<16x3x4x4xf32>) -> tensor<2x16x2x2xf32>
  %r = nn.reshape %a : (tensor<2x16x2x2xf32>) -> tensor<2x16x4xf32>
  return %r : tensor<2x16x4xf32>
}

// Random numbers belong to coordinates: they are drawn where they were. Groups
// stay with channels first.
// CHECK-LABEL: @coordinates(
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @coordinates(%x: tensor<2x4x1x8xf32>, %w: tensor<4x1x1x3xf32>) -> tensor<2x4x1x8xf32> {
  %a = nn.conv %x, %w sizes [8] strides [1] dilations [1] low [1] : (tensor<2x4x1x8xf32>, tensor<4x1x1x3xf32>) -> tensor<2x4x1x8xf32>
  %r = nn.relu %a : tensor<2x4x1x8xf32>
  %b = nn.conv %r, %w sizes [8] strides [1] dilations [1] low [1] : (tensor<2x4x1x8xf32>, tensor<4x1x1x3xf32>) -> tensor<2x4x1x8xf32>
  return %b : tensor<2x4x1x8xf32>
}
