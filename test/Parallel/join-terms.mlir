// Terms of sums over ranks come first where values are added up; what somebody else
// reads, and sums that are needed in between, stay.
// RUN: acc-opt %s --dist-join-terms | FileCheck %s
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<8x8xf32> = dense<1.0>

// CHECK-LABEL: @main
func.func @main(%r: tensor<4x8xf32> {nn.input = "r"}, %x: tensor<4x8xf32> {nn.input = "x"}, %w: tensor<8x8xf32> {nn.state = @w}) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) attributes {nn.entry} {
  %0 = dist.constraint %w to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  // CHECK: %[[A:.*]] = nn.matmul %arg1
  // CHECK: %[[B:.*]] = nn.matmul %arg0
  %a = nn.matmul %x, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b = nn.matmul %r, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %c = nn.neg %b : tensor<4x8xf32>
  // CHECK: %[[T0:.*]] = nn.add %[[A]], %[[B]]
  // CHECK-NEXT: %[[T1:.*]] = nn.add %[[T0]], %
  // CHECK-NEXT: %[[O:.*]] = nn.add %arg0, %arg1
  // CHECK-NEXT: %[[S:.*]] = nn.add %[[O]], %[[T1]]
  %s0 = nn.add %r, %a : tensor<4x8xf32>
  %s1 = nn.add %s0, %b : tensor<4x8xf32>
  %s2 = nn.add %x, %c : tensor<4x8xf32>
  %s3 = nn.add %s1, %s2 : tensor<4x8xf32>
  // What is read twice is a sum of its own.
  // CHECK: %[[U:.*]] = nn.add %arg0, %[[A]]
  // CHECK-NEXT: nn.add %[[U]], %[[B]]
  %u = nn.add %r, %a : tensor<4x8xf32>
  %v = nn.add %u, %b : tensor<4x8xf32>
  // CHECK: return %[[S]], %[[U]]
  return %s3, %u, %v : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Numbers are exchanged in buckets: a norm's chain stays as it is.
// CHECK-LABEL: @norm
func.func @norm(%r: tensor<f32> {nn.input = "r"}, %w: tensor<8x8xf32> {nn.state = @w}) -> tensor<f32> attributes {nn.entry} {
  %0 = dist.constraint %w to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  // CHECK: %[[A:.*]] = nn.reduce
  %a = nn.reduce sum %0 dims [0, 1] : (tensor<8x8xf32>) -> tensor<f32>
  %b = nn.neg %a : tensor<f32>
  // CHECK: %[[S:.*]] = nn.add %arg0, %[[A]]
  // CHECK-NEXT: nn.add %[[S]]
  %s = nn.add %r, %a : tensor<f32>
  %t = nn.add %s, %b : tensor<f32>
  return %t : tensor<f32>
}
