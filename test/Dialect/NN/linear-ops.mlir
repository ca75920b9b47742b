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

// CHECK-LABEL: @grouped(
func.func @grouped(%x: tensor<8x16xf32>, %w: tensor<4x16x32xf32>, %t: tensor<4x32x16xf32>,
                   %g: tensor<8xi64>, %h: tensor<8xi32>, %y: tensor<8x32xf32>) {
  // CHECK: nn.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x16xf32>, tensor<4x16x32xf32>, tensor<8xi64>) -> tensor<8x32xf32>
  %0 = nn.grouped_matmul %x, %w, %g : (tensor<8x16xf32>, tensor<4x16x32xf32>, tensor<8xi64>) -> tensor<8x32xf32>
  // CHECK: nn.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} {transpose_rhs} :
  %1 = nn.grouped_matmul %x, %t, %h {transpose_rhs} : (tensor<8x16xf32>, tensor<4x32x16xf32>, tensor<8xi32>) -> tensor<8x32xf32>
  // CHECK: nn.grouped_matmul_grad %{{.*}}, %{{.*}}, %{{.*}} num_groups 4 : (tensor<8x16xf32>, tensor<8x32xf32>, tensor<8xi64>) -> tensor<4x16x32xf32>
  %2 = nn.grouped_matmul_grad %x, %y, %g num_groups 4 : (tensor<8x16xf32>, tensor<8x32xf32>, tensor<8xi64>) -> tensor<4x16x32xf32>
  return
}

// CHECK-LABEL: @deal(
func.func @deal(%g: tensor<16xi64>, %r: tensor<i64>) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = nn.deal_rows %{{.*}}, %{{.*}} num_groups 8 ranks 2 room 12 : (tensor<16xi64>, tensor<i64>) -> (tensor<12xi64>, tensor<12xi64>, tensor<8xi64>)
  %0:3 = nn.deal_rows %g, %r num_groups 8 ranks 2 room 12 : (tensor<16xi64>, tensor<i64>) -> (tensor<12xi64>, tensor<12xi64>, tensor<8xi64>)
  return
}

// CHECK-LABEL: @newton_schulz(
func.func @newton_schulz(%x: tensor<2x8x16xbf16>) {
  // CHECK: nn.newton_schulz %{{.*}} steps 5 coefficients [3.444500e+00, -4.775000e+00, 2.031500e+00] : tensor<2x8x16xbf16>
  %0 = nn.newton_schulz %x steps 5 coefficients [3.4445, -4.775, 2.0315] : tensor<2x8x16xbf16>
  return
}
