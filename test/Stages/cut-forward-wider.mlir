// RUN: acc-opt %s --nn-cut-forward="chunks=2 cut=later" | FileCheck %s

// Of %3, which both chunks read, the narrow value that it is made of crosses: its
// cast and its broadcast are made again.
// CHECK: %[[SUM:.*]] = nn.reduce sum
// CHECK: nn.mul
// CHECK: %[[FLOW:.*]] = nn.cut %{{.*}} from 0 to 1 : tensor<4096x8xf32>
// CHECK-NEXT: nn.exp %[[FLOW]]
// CHECK: %[[CUT:.*]] = nn.cut %[[SUM]] from 0 to 1 : tensor<8xf16>
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[CUT]] : (tensor<8xf16>) -> tensor<8xf32>
// CHECK-NEXT: %[[WIDE:.*]] = nn.broadcast %[[CAST]] : (tensor<8xf32>) -> tensor<4096x8xf32>
// CHECK-NEXT: nn.add %{{.*}}, %[[WIDE]]
nn.state @w : tensor<64x64xf16> = dense<0.5>
nn.state @v : tensor<4096x8xf32> = dense<0.25>
func.func @main(%x: tensor<8x64xf16> {nn.input = "x"}, %w: tensor<64x64xf16> {nn.state = @w},
                %v: tensor<4096x8xf32> {nn.state = @v})
    -> (tensor<4096x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w : (tensor<8x64xf16>, tensor<64x64xf16>) -> tensor<8x64xf16>
  %1 = nn.reduce sum %0 dims [1] : (tensor<8x64xf16>) -> tensor<8xf16>
  %2 = nn.cast %1 : (tensor<8xf16>) -> tensor<8xf32>
  %3 = nn.broadcast %2 : (tensor<8xf32>) -> tensor<4096x8xf32>
  %4 = nn.mul %3, %v : tensor<4096x8xf32>
  %later = nn.exp %4 : tensor<4096x8xf32> loc("later")
  %5 = nn.add %later, %3 : tensor<4096x8xf32>
  return %5 : tensor<4096x8xf32>
}
