// RUN: acc-opt %s --nn-cut-forward=chunks=2 | FileCheck %s

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
  %5 = nn.exp %4 : tensor<4096x8xf32>
  %6 = nn.exp %5 : tensor<4096x8xf32>
  %7 = nn.exp %6 : tensor<4096x8xf32>
  %8 = nn.exp %7 : tensor<4096x8xf32>
  %9 = nn.exp %8 : tensor<4096x8xf32>
  %10 = nn.exp %9 : tensor<4096x8xf32>
  %11 = nn.exp %10 : tensor<4096x8xf32>
  %12 = nn.exp %11 : tensor<4096x8xf32>
  %13 = nn.exp %12 : tensor<4096x8xf32>
  %14 = nn.exp %13 : tensor<4096x8xf32>
  %15 = nn.exp %14 : tensor<4096x8xf32>
  %16 = nn.exp %15 : tensor<4096x8xf32>
  %17 = nn.exp %16 : tensor<4096x8xf32>
  %18 = nn.exp %17 : tensor<4096x8xf32>
  %19 = nn.exp %18 : tensor<4096x8xf32>
  %20 = nn.exp %19 : tensor<4096x8xf32>
  %21 = nn.exp %20 : tensor<4096x8xf32>
  %22 = nn.exp %21 : tensor<4096x8xf32>
  %23 = nn.exp %22 : tensor<4096x8xf32>
  %24 = nn.exp %23 : tensor<4096x8xf32>
  %25 = nn.add %24, %3 : tensor<4096x8xf32>
  return %25 : tensor<4096x8xf32>
}
