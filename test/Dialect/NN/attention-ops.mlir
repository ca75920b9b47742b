// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @attention(
func.func @attention(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>,
                     %bool: tensor<1x1x3x5xi1>, %float: tensor<2x4x1x5xf32>, %wide: tensor<2x4x3x8xf64>, %narrow: tensor<2x4x3x8xbf16>) {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 1.250000e-01 : f64} : {{.*}} -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  %0:2 = nn.attention %q, %k, %v {causal, scale = 0.125 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {scale = {{.*}}, zero_masked_rows} :
  %1:2 = nn.attention %q, %k, %v mask %bool {scale = 1.0 : f64, zero_masked_rows} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  // CHECK: nn.attention {{.*}} mask {{.*}} tensor<2x4x1x5xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  %2:2 = nn.attention %q, %k, %v mask %float {scale = 1.0 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x1x5xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}} output %result, %log_sum_exp gradient %result_0 {causal, scale = 1.250000e-01 : f64} : {{.*}} -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  %3:3 = nn.attention_grad %q, %k, %v output %0#0, %0#1 gradient %1#0 {causal, scale = 0.125 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}} output %result_0, %log_sum_exp_1 gradient %result, %log_sum_exp mask %{{.*}} {scale = {{.*}}, zero_masked_rows} :
  %4:3 = nn.attention_grad %q, %k, %v output %1#0, %1#1 gradient %0#0, %0#1 mask %bool {scale = 1.0 : f64, zero_masked_rows} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  // Offsets of 0 are not written; the log-sum-exp is a sum's type.
  // CHECK: nn.attention {{.*}} {causal, column_offset = 5 : i64, row_offset = 7 : i64, scale
  %5:2 = nn.attention %wide, %wide, %wide {causal, row_offset = 7, column_offset = 5, scale = 1.0} : (tensor<2x4x3x8xf64>, tensor<2x4x3x8xf64>, tensor<2x4x3x8xf64>) -> (tensor<2x4x3x8xf64>, tensor<2x4x3xf64>)
  // CHECK: nn.attention {{.*}} {causal, scale = {{[^,]*}}} {{.*}} -> (tensor<2x4x3x8xbf16>, tensor<2x4x3xf32>)
  %6:2 = nn.attention %narrow, %narrow, %narrow {causal, row_offset = 0, column_offset = 0, scale = 1.0} : (tensor<2x4x3x8xbf16>, tensor<2x4x3x8xbf16>, tensor<2x4x3x8xbf16>) -> (tensor<2x4x3x8xbf16>, tensor<2x4x3xf32>)
  return
}
