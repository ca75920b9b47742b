// What the forward widens the backward widens again: kept is what is narrow. The
// update has gradients wide, as they are summed. What is rounded is kept.
// RUN: acc-opt %s --accel-run-phases="to=local mesh=dp=2" | FileCheck %s
// RUN: acc-opt %s --accel-run-phases="to=local mesh=dp=2 micro-batches=2" | FileCheck %s

// CHECK: func.func private @forward({{.*}}) -> ({{.*}}tensor<{{[24]}}x4xbf16>{{.*}})
// CHECK: %[[H:.*]] = nn.matmul
// CHECK: nn.cast %[[H]] : {{.*}} -> tensor<{{[24]}}x4xf32>
// CHECK: %[[R:.*]] = nn.cast %{{.*}} -> tensor<{{[24]}}x4xbf16>
// CHECK: return %{{.*}}%[[R]]
// CHECK: func.func private @backward(
// CHECK: nn.cast %{{.*}} : {{.*}}xbf16>) -> tensor<{{[24]}}x4xf32>
// CHECK-NEXT: nn.tanh
// CHECK: %[[D:.*]] = nn.matmul
// CHECK-NEXT: %[[DW:.*]] = nn.cast %[[D]] : {{.*}} -> tensor<4x4xf32>
// CHECK: func.func private @update(
// CHECK-NOT: nn.cast

module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf32> = dense<0.5>
func.func @main(%x: tensor<8x4xbf16> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}, tensor<4x4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %h = nn.cast %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %y = nn.matmul %x, %h : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %wide = nn.cast %y : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %e = nn.exp %wide : tensor<8x4xf32>
  %loss = nn.reduce sum %e dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %r = nn.cast %e : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %z = nn.reduce sum %r dims [0, 1] : (tensor<8x4xbf16>) -> tensor<bf16>
  %zw = nn.cast %z : (tensor<bf16>) -> tensor<f32>
  %all = nn.add %loss, %zw : tensor<f32>
  %t = nn.tanh %wide : tensor<8x4xf32>
  %tr = nn.cast %t : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %m = nn.mul %tr, %r : tensor<8x4xbf16>
  %d = nn.matmul %x, %m {transpose_lhs} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>
  %dw = nn.cast %d : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %g = nn.gradient %dw of @w : tensor<4x4xf32>
  %w1 = nn.sub %w, %g : tensor<4x4xf32>
  return %all, %w1 : tensor<f32>, tensor<4x4xf32>
}
}
