// RUN: acc-opt %s --nn-narrow-products --canonicalize | FileCheck %s

// A weight is cast once for both products; between them everything is f32; a
// cast back that is cast again is none.
// CHECK-LABEL: @chain(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>)
// CHECK-DAG: %[[WN:.*]] = nn.cast %[[W]] {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// CHECK-DAG: %[[XN:.*]] = nn.cast %[[X]] {nn.reason
// CHECK: %[[Y:.*]] = nn.matmul %[[XN]], %[[WN]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
// CHECK-NEXT: %[[Z:.*]] = nn.matmul %[[Y]], %[[WN]]
// CHECK-NEXT: %[[ZW:.*]] = nn.cast %[[Z]] {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[E:.*]] = nn.exp %[[ZW]] : tensor<4x8xf32>
// CHECK-NEXT: return %[[E]]
func.func @chain(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = nn.matmul %y, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = nn.exp %z : tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}

// Query, key and value share the cast of what they are slices of; a mask of
// booleans stays.
// CHECK-LABEL: @views(
// CHECK-SAME: %[[QKV:.*]]: tensor<1x1x3x12xf32>, %[[M:.*]]: tensor<1x1x3x3xi1>)
// CHECK: nn.cast %[[QKV]] {nn.reason = "attention: bf16 operands, f32 scores and sums"}
// CHECK-NOT: nn.cast
// CHECK: nn.attention {{.*}} mask %[[M]] {{.*}}(tensor<1x1x3x4xbf16>, tensor<1x1x3x4xbf16>, tensor<1x1x3x4xbf16>, tensor<1x1x3x3xi1>) -> (tensor<1x1x3x4xbf16>, tensor<1x1x3xf32>)
// CHECK-NEXT: nn.cast
// CHECK-NEXT: return
func.func @views(%qkv: tensor<1x1x3x12xf32>, %m: tensor<1x1x3x3xi1>) -> tensor<1x1x3x4xf32> {
  %q = nn.slice %qkv starts [0, 0, 0, 0] sizes [1, 1, 3, 4] steps [1, 1, 1, 1] : (tensor<1x1x3x12xf32>) -> tensor<1x1x3x4xf32>
  %k = nn.slice %qkv starts [0, 0, 0, 4] sizes [1, 1, 3, 4] steps [1, 1, 1, 1] : (tensor<1x1x3x12xf32>) -> tensor<1x1x3x4xf32>
  %v = nn.slice %qkv starts [0, 0, 0, 8] sizes [1, 1, 3, 4] steps [1, 1, 1, 1] : (tensor<1x1x3x12xf32>) -> tensor<1x1x3x4xf32>
  %y:2 = nn.attention %q, %k, %v mask %m {scale = 0.5} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xi1>) -> (tensor<1x1x3x4xf32>, tensor<1x1x3xf32>)
  return %y#0 : tensor<1x1x3x4xf32>
}

// Other types are the model's own.
// CHECK-LABEL: @halves(
// CHECK-NOT: nn.cast
// CHECK: return
func.func @halves(%x: tensor<4x8xf16>, %w: tensor<8x8xf16>) -> tensor<4x8xf16> {
  %y = nn.matmul %x, %w : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}

// One number throughout is rounded here.
// CHECK-LABEL: @ones(
// CHECK: %[[C:.*]] = nn.constant dense<1.000980e-01> : tensor<4x8xbf16>
// CHECK: nn.matmul %[[C]], %{{.*}} : (tensor<4x8xbf16>, tensor<8x8xbf16>)
func.func @ones(%w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %x = nn.constant dense<0.1> : tensor<4x8xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Only casts that lose nothing fold.
// CHECK-LABEL: @rounds(
// CHECK-COUNT-2: nn.cast
// CHECK: return
func.func @rounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = nn.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
  %w = nn.cast %n : (tensor<4xbf16>) -> tensor<4xf32>
  return %w : tensor<4xf32>
}
