// Recognised attention gives the numbers of its parts, rows that are masked
// altogether included.
// RUN: acc-opt %s --nn-recognize-attention -o %t
// RUN: FileCheck %s < %t
// RUN: acc-eval %t --compare %s --own-types --tolerance 1e-6
// RUN: acc-eval %t --compare %s --tolerance 1e-12

// CHECK-COUNT-2: nn.attention
// CHECK-NOT: nn.softmax
func.func @main(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %keep: tensor<2x3xi64>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) attributes {nn.entry} {
  %triangle = nn.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %lowest = nn.constant dense<-3.40282347E+38> : tensor<2x2x3x3xf32>
  %lowest_row = nn.constant dense<-3.40282347E+38> : tensor<2x1x1x3xf32>
  %one = nn.constant dense<1.0> : tensor<2x1x1x3xf32>
  %half = nn.constant dense<0.5> : tensor<2x2x3x3xf32>
  %some = nn.constant dense<[[[[-1.0e30, -1.0e30, -1.0e30], [0.0, 0.5, -1.0e30], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>

  // The mask of a run that GPT-2 makes of `keep`, under the triangle.
  %0 = nn.reshape %keep : (tensor<2x3xi64>) -> tensor<2x1x1x3xi64>
  %1 = nn.cast %0 : (tensor<2x1x1x3xi64>) -> tensor<2x1x1x3xf32>
  %2 = nn.sub %one, %1 : tensor<2x1x1x3xf32>
  %3 = nn.mul %2, %lowest_row : tensor<2x1x1x3xf32>
  %4 = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %5 = nn.mul %4, %half : tensor<2x2x3x3xf32>
  %6 = nn.broadcast %triangle : (tensor<1x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %7 = nn.select %6, %5, %lowest : tensor<2x2x3x3xf32>
  %8 = nn.broadcast %3 : (tensor<2x1x1x3xf32>) -> tensor<2x2x3x3xf32>
  %9 = nn.add %7, %8 : tensor<2x2x3x3xf32>
  %10 = nn.softmax %9 dim 3 : tensor<2x2x3x3xf32>
  %11 = nn.matmul %10, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>

  // A mask known now that hides a whole row.
  %12 = nn.broadcast %some : (tensor<1x1x3x3xf32>) -> tensor<2x2x3x3xf32>
  %13 = nn.add %5, %12 : tensor<2x2x3x3xf32>
  %14 = nn.softmax %13 dim 3 : tensor<2x2x3x3xf32>
  %15 = nn.matmul %14, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %11, %15 : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>
}
