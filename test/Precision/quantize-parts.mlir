// Parts of a batch that have scales of their own are parts of what a product multiplies, and not
// of what that is a transpose of.
// RUN: acc-opt %s --train-quantize-products="recipe=current blocks=2" | FileCheck %s
// RUN: acc-opt %s --train-quantize-products="recipe=current blocks=1" | FileCheck %s --check-prefix=WHOLE
// CHECK: nn.transpose %{{.*}} [1, 0, 2] : (tensor<6x4x16xf64>) -> tensor<4x6x16xf64>
// CHECK: nn.abs %{{.*}} : tensor<4x6x16xf64>
// CHECK: nn.reshape %{{.*}} : (tensor<4xf64>) -> tensor<2x2xf64>
// CHECK: nn.cast %{{.*}} {saturate} : (tensor<4x6x16xf64>)
// WHOLE: nn.abs %{{.*}} : tensor<6x4x16xf64>
module attributes {accel.reports = ["loss", "verdict"]} {
  nn.state @w : tensor<32x16xf64> = dense<0.0>
  func.func @step(%x: tensor<6x4x16xf64> {nn.input = "x"}, %w: tensor<32x16xf64> {nn.state = @w}) -> (tensor<4x6x32xf64> {nn.output = "y"}) attributes {nn.entry = #nn<entry step>} {
    %t = nn.transpose %x [1, 0, 2] : (tensor<6x4x16xf64>) -> tensor<4x6x16xf64>
    %y = nn.matmul %t, %w {nn.product = #nn.product<"w", fprop>, transpose_rhs} : (tensor<4x6x16xf64>, tensor<32x16xf64>) -> tensor<4x6x32xf64>
    return %y : tensor<4x6x32xf64>
  }
}
