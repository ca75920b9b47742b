// MS-AMP's gradients are sums before they are rounded. That a value is needed as a sum is said of it where a vocabulary is
// padded, too: it is the value itself.
//
// RUN: accel-fuzz-programs --seed 1 --check %s | FileCheck %s
// RUN: sed 's/tp=2/tp=4/' %s > %t.mlir && accel-fuzz-programs --seed 1 --check %t.mlir | FileCheck %s
// flags: --optimizer adamw --mixed-precision fp8 --set optimizer.eps=0.01 --set fp8.recipe=msamp_o2 --set fp8.blocks=2 --set fp8.gradient_parts=1 --mesh tp=2
// rows: apart
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<16x48xf64> = dense<0.125>
  nn.state @head : tensor<11x16xf64> = dense<[[0.25, -0.5, 0.5, -1.0, -0.75, 1.0, -0.75, 0.25, -1.0, 1.0, -0.25, -1.0, -0.75, 0.5, 0.5, -0.75], [-0.25, -0.75, 1.0, 0.5, -1.0, -0.75, -0.25, -1.0, 0.5, -1.0, -0.25, -1.0, 1.0, -0.5, 0.125, 0.5], [-0.5, 1.0, -0.75, 0.125, 1.0, -0.5, -0.75, -0.25, 0.25, -0.75, 1.0, -0.75, -1.0, -0.25, 0.75, 1.0], [0.5, 0.25, 0.75, 0.75, 0.25, 0.125, -0.25, -0.5, -0.25, -0.75, 0.125, 1.0, 0.75, 0.25, 0.75, 0.125], [-0.75, -0.75, 1.0, 0.5, -0.5, 0.25, -0.5, 0.75, 0.5, -1.0, -0.75, 1.0, 0.25, 0.25, 0.25, 0.75], [0.75, -0.75, -0.75, 0.125, 0.75, -0.75, -1.0, 0.125, 0.75, 0.125, 0.5, 0.25, -1.0, 0.75, 0.25, -0.5], [-0.75, 0.75, -1.0, -0.25, 0.125, -0.5, -0.25, 0.5, 0.5, 0.75, -0.75, -0.5, 0.75, 0.5, 1.0, 0.125], [-0.5, 0.5, 1.0, 0.125, 0.5, 0.25, 0.5, -0.25, -0.5, -0.75, -0.5, -0.5, -0.25, -0.25, -1.0, 0.75], [-0.5, 0.125, 0.125, -1.0, -0.5, 0.5, 1.0, 0.25, 0.25, -0.5, 1.0, -1.0, 0.75, 1.0, 0.5, 0.5], [0.5, 0.5, -0.75, 0.75, 0.5, -1.0, -0.25, -0.75, -0.25, 0.75, -0.5, -0.75, 0.25, -1.0, -0.75, -1.0], [-0.5, 1.0, -0.75, 0.25, -1.0, -0.75, -0.25, 0.5, -0.5, 0.125, 0.25, 0.25, 0.75, -0.75, -0.75, 0.75]]>
  func.func @main(%x: tensor<2x3x16xf64> {nn.input = "x"}, %ids: tensor<2x3xi64> {nn.input = "ids1"}, %w: tensor<16x48xf64> {nn.state = @w}, %head: tensor<11x16xf64> {nn.state = @head}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w : (tensor<2x3x16xf64>, tensor<16x48xf64>) -> tensor<2x3x48xf64>
    %last = nn.slice %0 starts [0, 0, 32] sizes [2, 3, 16] steps [1, 1, 1] : (tensor<2x3x48xf64>) -> tensor<2x3x16xf64>
    %1 = nn.add %last, %last : tensor<2x3x16xf64>
    %2 = nn.matmul %1, %head {transpose_rhs} : (tensor<2x3x16xf64>, tensor<11x16xf64>) -> tensor<2x3x11xf64>
    %3 = nn.cross_entropy %2, %ids : (tensor<2x3x11xf64>, tensor<2x3xi64>) -> tensor<2x3xf64>
    %4 = nn.reduce sum %3 dims [1] : (tensor<2x3xf64>) -> tensor<2xf64>
    %5 = nn.reduce sum %4 dims [0] : (tensor<2xf64>) -> tensor<f64>
    return %5 : tensor<f64>
  }
}
