// RUN: acc-opt %s --local-merge-scatter-adds --split-input-file | FileCheck %s

// The gradient of a tied table: the slices are added to the product.
// CHECK-LABEL: func.func @tied
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[S:.*]] = nn.scatter_add %[[P]], %{{.*}}, %{{.*}} dim 0
// CHECK-NEXT: return %[[S]]
func.func @tied(%a: tensor<8x2xf32>, %b: tensor<2x4xf32>, %i: tensor<3xi64>, %u: tensor<3x4xf32>) -> tensor<8x4xf32> {
  %zeros = nn.constant dense<0.0> : tensor<8x4xf32>
  %s = nn.scatter_add %zeros, %i, %u dim 0 : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %p = nn.matmul %a, %b : (tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %r = nn.add %s, %p : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// Two scatters into an accumulator.
// CHECK-LABEL: func.func @accumulated
// CHECK-SAME: (%[[A:[^:]*]]: tensor<8x4xf32>, %[[I:[^:]*]]: tensor<3xi64>, %[[U:[^:]*]]: tensor<3x4xf32>, %[[V:[^:]*]]: tensor<3x4xf32>)
// CHECK: %[[F:.*]] = nn.scatter_add %[[A]]
// CHECK-NEXT: %[[S:.*]] = nn.scatter_add %[[F]]
// CHECK-NEXT: return %[[S]]
func.func @accumulated(%a: tensor<8x4xf32>, %i: tensor<3xi64>, %u: tensor<3x4xf32>, %v: tensor<3x4xf32>) -> tensor<8x4xf32> {
  %zeros = nn.constant dense<0.0> : tensor<8x4xf32>
  %s = nn.scatter_add %zeros, %i, %u dim 0 : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %t = nn.scatter_add %zeros, %i, %v dim 0 : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %p = nn.add %a, %s : tensor<8x4xf32>
  %r = nn.add %p, %t : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// What does not start at zero would count twice.
// CHECK-LABEL: func.func @onto_ones
// CHECK: nn.add
func.func @onto_ones(%a: tensor<8x4xf32>, %i: tensor<3xi64>, %u: tensor<3x4xf32>) -> tensor<8x4xf32> {
  %ones = nn.constant dense<1.0> : tensor<8x4xf32>
  %s = nn.scatter_add %ones, %i, %u dim 0 : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %r = nn.add %a, %s : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func.func @read_twice
// CHECK: nn.add
func.func @read_twice(%a: tensor<8x4xf32>, %i: tensor<3xi64>, %u: tensor<3x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zeros = nn.constant dense<0.0> : tensor<8x4xf32>
  %s = nn.scatter_add %zeros, %i, %u dim 0 : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  %r = nn.add %a, %s : tensor<8x4xf32>
  return %r, %s : tensor<8x4xf32>, tensor<8x4xf32>
}
