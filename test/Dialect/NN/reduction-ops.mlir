// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @reductions(
func.func @reductions(%x: tensor<2x3x4xf32>) {
  // CHECK: nn.reduce sum %{{.*}} dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  %0 = nn.reduce sum %x dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  // CHECK: nn.reduce max
  %1 = nn.reduce max %x dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.reduce max %{{.*}} dims [1] {first} :
  %5 = nn.reduce max %x dims [1] {first} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.reduce min
  %2 = nn.reduce min %x dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.reduce prod {{.*}} -> tensor<f32>
  %3 = nn.reduce prod %x dims [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
  // CHECK: nn.cumsum %{{.*}} dim 1 {exclusive, reverse} :
  %4 = nn.cumsum %x dim 1 {exclusive, reverse} : tensor<2x3x4xf32>
  // CHECK: nn.top_k %{{.*}} k 2 : (tensor<2x3x4xf32>) -> tensor<2x3x2xi64>
  %6 = nn.top_k %x k 2 : (tensor<2x3x4xf32>) -> tensor<2x3x2xi64>
  // CHECK: nn.top_k %{{.*}} k 4 {smallest} :
  %7 = nn.top_k %x k 4 {smallest} : (tensor<2x3x4xf32>) -> tensor<2x3x4xi64>
  return
}
