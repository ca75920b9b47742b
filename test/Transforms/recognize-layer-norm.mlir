// RUN: acc-opt %s --nn-recognize-layer-norm | FileCheck %s
// RUN: acc-opt %s --nn-recognize-layer-norm -o %t && acc-eval %t --compare %s --tolerance 1e-12

// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]], %[[S]], %[[B]] dim 1 epsilon 9.9{{.*}}E-6
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> attributes {nn.entry} {
  %eighth = nn.constant dense<0.125> : tensor<4x1xf32>
  %epsilon = nn.constant dense<1.0e-5> : tensor<4x1xf32>
  %two = nn.constant dense<2.0> : tensor<4x8xf32>
  %0 = nn.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = nn.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = nn.mul %1, %eighth : tensor<4x1xf32>
  %3 = nn.broadcast %2 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = nn.sub %x, %3 : tensor<4x8xf32>
  %5 = nn.pow %4, %two : tensor<4x8xf32>
  %6 = nn.reduce sum %5 dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %7 = nn.reshape %6 : (tensor<4xf32>) -> tensor<4x1xf32>
  %8 = nn.mul %7, %eighth : tensor<4x1xf32>
  %9 = nn.add %8, %epsilon : tensor<4x1xf32>
  %10 = nn.sqrt %9 : tensor<4x1xf32>
  %11 = nn.broadcast %10 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %12 = nn.div %4, %11 : tensor<4x8xf32>
  %13 = nn.broadcast %s : (tensor<8xf32>) -> tensor<4x8xf32>
  %14 = nn.mul %12, %13 : tensor<4x8xf32>
  %15 = nn.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
  %16 = nn.add %14, %15 : tensor<4x8xf32>
  return %16 : tensor<4x8xf32>
}

// A product with the reciprocal of the root, the square as a product, no bias.
// CHECK-LABEL: @reciprocal_root(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]], %[[S]] dim 1 epsilon
// CHECK-NEXT: return %[[Y]]
func.func @reciprocal_root(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  %eighth = nn.constant dense<0.125> : tensor<4x1xf32>
  %epsilon = nn.constant dense<1.0e-5> : tensor<4x1xf32>
  %0 = nn.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = nn.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = nn.mul %1, %eighth : tensor<4x1xf32>
  %3 = nn.broadcast %2 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = nn.sub %x, %3 : tensor<4x8xf32>
  %5 = nn.mul %4, %4 : tensor<4x8xf32>
  %6 = nn.reduce sum %5 dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %7 = nn.reshape %6 : (tensor<4xf32>) -> tensor<4x1xf32>
  %8 = nn.mul %eighth, %7 : tensor<4x1xf32>
  %9 = nn.add %epsilon, %8 : tensor<4x1xf32>
  %10 = nn.rsqrt %9 : tensor<4x1xf32>
  %11 = nn.broadcast %10 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %12 = nn.mul %4, %11 : tensor<4x8xf32>
  %13 = nn.broadcast %s : (tensor<8xf32>) -> tensor<4x8xf32>
  %14 = nn.mul %13, %12 : tensor<4x8xf32>
  return %14 : tensor<4x8xf32>
}

// The divisor of the second mean is not the number of elements.
// CHECK-LABEL: @not_a_mean(
// CHECK-NOT: nn.layer_norm
// CHECK: return
func.func @not_a_mean(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  %eighth = nn.constant dense<0.125> : tensor<4x1xf32>
  %seventh = nn.constant dense<0.142857143> : tensor<4x1xf32>
  %epsilon = nn.constant dense<1.0e-5> : tensor<4x1xf32>
  %0 = nn.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = nn.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = nn.mul %1, %eighth : tensor<4x1xf32>
  %3 = nn.broadcast %2 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = nn.sub %x, %3 : tensor<4x8xf32>
  %5 = nn.mul %4, %4 : tensor<4x8xf32>
  %6 = nn.reduce sum %5 dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %7 = nn.reshape %6 : (tensor<4xf32>) -> tensor<4x1xf32>
  %8 = nn.mul %7, %seventh : tensor<4x1xf32>
  %9 = nn.add %8, %epsilon : tensor<4x1xf32>
  %10 = nn.rsqrt %9 : tensor<4x1xf32>
  %11 = nn.broadcast %10 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %12 = nn.mul %4, %11 : tensor<4x8xf32>
  %13 = nn.broadcast %s : (tensor<8xf32>) -> tensor<4x8xf32>
  %14 = nn.mul %12, %13 : tensor<4x8xf32>
  return %14 : tensor<4x8xf32>
}

// The scale is per row, not per column.
// CHECK-LABEL: @scale_of_rows(
// CHECK-NOT: nn.layer_norm
// CHECK: return
func.func @scale_of_rows(%x: tensor<4x8xf32>, %s: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %eighth = nn.constant dense<0.125> : tensor<4x1xf32>
  %epsilon = nn.constant dense<1.0e-5> : tensor<4x1xf32>
  %0 = nn.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = nn.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = nn.mul %1, %eighth : tensor<4x1xf32>
  %3 = nn.broadcast %2 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = nn.sub %x, %3 : tensor<4x8xf32>
  %5 = nn.mul %4, %4 : tensor<4x8xf32>
  %6 = nn.reduce sum %5 dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %7 = nn.reshape %6 : (tensor<4xf32>) -> tensor<4x1xf32>
  %8 = nn.mul %7, %eighth : tensor<4x1xf32>
  %9 = nn.add %8, %epsilon : tensor<4x1xf32>
  %10 = nn.rsqrt %9 : tensor<4x1xf32>
  %11 = nn.broadcast %10 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %12 = nn.mul %4, %11 : tensor<4x8xf32>
  %13 = nn.broadcast %s : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %14 = nn.mul %12, %13 : tensor<4x8xf32>
  return %14 : tensor<4x8xf32>
}
