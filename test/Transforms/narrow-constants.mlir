// RUN: acc-opt %s --nn-narrow-constants | FileCheck %s

// CHECK-LABEL: @repeats(
func.func @repeats() -> (tensor<2x2x3xi64>, tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xi64>) {
  // CHECK-NEXT: %[[A:.*]] = nn.constant dense<{{\[\[\[}}1, 2, 3]]]> : tensor<1x1x3xi64>
  // CHECK-NEXT: nn.broadcast %[[A]] : (tensor<1x1x3xi64>) -> tensor<2x2x3xi64>
  %0 = nn.constant dense<[[[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 2, 3]]]> : tensor<2x2x3xi64>
  // CHECK-NEXT: %[[B:.*]] = nn.constant dense<{{\[\[}}true], [false]]> : tensor<2x1xi1>
  // CHECK-NEXT: nn.broadcast %[[B]] : (tensor<2x1xi1>) -> tensor<2x2xi1>
  %1 = nn.constant dense<[[true, true], [false, false]]> : tensor<2x2xi1>
  // One value throughout, and no repetition at all, stay.
  // CHECK-NEXT: nn.constant dense<1.0{{.*}}> : tensor<2x2xf32>
  %2 = nn.constant dense<1.0> : tensor<2x2xf32>
  // CHECK-NEXT: nn.constant dense<{{\[\[}}1, 2], [2, 1]]> : tensor<2x2xi64>
  %3 = nn.constant dense<[[1, 2], [2, 1]]> : tensor<2x2xi64>
  // CHECK-NEXT: return
  return %0, %1, %2, %3 : tensor<2x2x3xi64>, tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xi64>
}
