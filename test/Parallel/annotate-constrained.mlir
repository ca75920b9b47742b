// A module that has a mesh keeps it, and a state that has a constraint keeps that.
// RUN: acc-opt %s --dist-annotate | FileCheck %s

// CHECK: dist.mesh @own ["dp_replicate" = 2, "tp" = 2]
// CHECK-NOT: dist.mesh
dist.mesh @own ["dp_replicate" = 2, "tp" = 2]
nn.state @w : tensor<8x8xf32> = dense<1.0>

// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32> {nn.input = "x"}, %[[W:.*]]: tensor
// CHECK-NEXT: %[[CX:.*]] = dist.constraint %[[X]] to #dp_replicate-any
// CHECK-NEXT: %[[CW:.*]] = dist.constraint %[[W]] to #any-tp
// CHECK-NEXT: nn.matmul %[[CX]], %[[CW]]
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %w: tensor<8x8xf32> {nn.state = @w}) -> tensor<4x8xf32> attributes {nn.entry} {
  %0 = dist.constraint %w to <@own, [{?}, {tp}]> : tensor<8x8xf32>
  %1 = nn.matmul %x, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
