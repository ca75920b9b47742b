// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @losses(
func.func @losses(%x: tensor<2x3x8xf32>, %l: tensor<2x3xi64>) {
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  %0 = nn.cross_entropy %x, %l : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} {ignore_index = 0 : i64} :
  %1 = nn.cross_entropy %x, %l {ignore_index = 0} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  return
}
