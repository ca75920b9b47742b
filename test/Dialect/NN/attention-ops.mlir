// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @attention(
func.func @attention(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>,
                     %bool: tensor<1x1x3x5xi1>, %float: tensor<2x4x1x5xf32>) {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 1.250000e-01 : f64} : {{.*}} -> tensor<2x4x3x6xf32>
  %0 = nn.attention %q, %k, %v {causal, scale = 0.125 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> tensor<2x4x3x6xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {scale = {{.*}}, zero_masked_rows} :
  %1 = nn.attention %q, %k, %v mask %bool {scale = 1.0 : f64, zero_masked_rows} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x1x3x5xi1>) -> tensor<2x4x3x6xf32>
  // CHECK: nn.attention {{.*}} mask {{.*}} tensor<2x4x1x5xf32>) -> tensor<2x4x3x6xf32>
  %2 = nn.attention %q, %k, %v mask %float {scale = 1.0 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x1x5xf32>) -> tensor<2x4x3x6xf32>
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 1.250000e-01 : f64} : {{.*}} -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  %3:3 = nn.attention_grad %q, %k, %v, %0 {causal, scale = 0.125 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {scale = {{.*}}, zero_masked_rows} :
  %4:3 = nn.attention_grad %q, %k, %v, %0 mask %bool {scale = 1.0 : f64, zero_masked_rows} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  return
}
