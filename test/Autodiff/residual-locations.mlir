// RUN: acc-opt %s --nn-append-gradients --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A gradient goes through a sum to what it adds as it is. Where it meets another
// term the sum is for the node that made the value, not for all behind it.
// CHECK-LABEL: @stream(
// CHECK: nn.add {{.*}} loc(fused["b", "gradient"])
// CHECK: nn.add {{.*}} loc(fused["a", "gradient"])
func.func @stream(%x: tensor<2xf32>) -> tensor<f32> {
  %a = nn.neg %x : tensor<2xf32> loc("a")
  %h = nn.exp %a : tensor<2xf32> loc("h")
  %b = nn.add %a, %h : tensor<2xf32> loc("b")
  %k = nn.exp %b : tensor<2xf32> loc("k")
  %c = nn.add %b, %k : tensor<2xf32> loc("c")
  %l = nn.reduce sum %c dims [0] : (tensor<2xf32>) -> tensor<f32> loc("l")
  return %l : tensor<f32>
}
