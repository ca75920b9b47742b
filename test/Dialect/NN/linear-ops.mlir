// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @matmul(
func.func @matmul(%x: tensor<4x8x16xf32>, %w: tensor<16x32xf32>, %t: tensor<32x16xf32>,
                  %y: tensor<4x8x16xf32>) {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : (tensor<4x8x16xf32>, tensor<16x32xf32>) -> tensor<4x8x32xf32>
  %0 = nn.matmul %x, %w : (tensor<4x8x16xf32>, tensor<16x32xf32>) -> tensor<4x8x32xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_rhs} :
  %1 = nn.matmul %x, %t {transpose_rhs} : (tensor<4x8x16xf32>, tensor<32x16xf32>) -> tensor<4x8x32xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_lhs} : {{.*}} -> tensor<4x16x16xf32>
  %2 = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x16x16xf32>
  return
}
