// RUN: acc-opt %s -split-input-file --pass-pipeline='builtin.module(local-form-kernels,local-lower-to-plan)' | FileCheck %s

// The gradients of query, key and value are written where the gradient of the
// projection wants them; no command joins them.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.attention_grad {{.*}} -> [[C:@[a-z0-9_]+]][2x2x4x8xf32 strides [128, 8, 32, 1]], [[C]][2x1x4x8xf32 at 64 strides [128, 32, 32, 1]], [[C]][2x1x4x8xf32 at 96 strides [128, 32, 32, 1]] scale
// CHECK-NEXT: }
func.func @main(%q: tensor<2x2x4x8xf32> {nn.input = "q"}, %k: tensor<2x1x4x8xf32> {nn.input = "k"}, %l: tensor<2x2x4xf32> {nn.input = "l"}) -> (tensor<2x4x32xf32> {nn.output = "y"}) attributes {nn.entry} {
  %d:3 = nn.attention_grad %q, %k, %k output %q, %l gradient %q {causal, scale = 0.5} : (tensor<2x2x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>)
  %q0 = nn.transpose %d#0 [0, 2, 1, 3] : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %q1 = nn.reshape %q0 : (tensor<2x4x2x8xf32>) -> tensor<2x4x16xf32>
  %k0 = nn.transpose %d#1 [0, 2, 1, 3] : (tensor<2x1x4x8xf32>) -> tensor<2x4x1x8xf32>
  %k1 = nn.reshape %k0 : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>
  %v0 = nn.transpose %d#2 [0, 2, 1, 3] : (tensor<2x1x4x8xf32>) -> tensor<2x4x1x8xf32>
  %v1 = nn.reshape %v0 : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>
  %y = nn.concat %q1, %k1, %v1 dim 2 : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  return %y : tensor<2x4x32xf32>
}

// -----

// One piece is read elsewhere, another is no command's result, a third would
// have rows with gaps: a kernel joins them.
// CHECK-LABEL: plan.program @main
// CHECK-COUNT-3: plan.kernel @kernel_
// CHECK-NOT: plan.kernel @
func.func @main(%q: tensor<2x2x4x8xf32> {nn.input = "q"}, %l: tensor<2x2x4xf32> {nn.input = "l"}) -> (tensor<2x4x2x16xf32> {nn.output = "read"}, tensor<2x2x4x8xf32> {nn.output = "v"}, tensor<2x2x4x16xf32> {nn.output = "other"}, tensor<2x2x8x8xf32> {nn.output = "gaps"}) attributes {nn.entry} {
  %d:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {scale = 0.5} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
  %e:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {scale = 1.0} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
  %f:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {scale = 2.0} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
  %q0 = nn.transpose %d#0 [0, 2, 1, 3] : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %v0 = nn.transpose %d#2 [0, 2, 1, 3] : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %read = nn.concat %q0, %v0 dim 3 : (tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>) -> tensor<2x4x2x16xf32>
  %other = nn.concat %e#0, %q dim 3 : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> tensor<2x2x4x16xf32>
  %t0 = nn.transpose %f#0 [0, 1, 3, 2] : (tensor<2x2x4x8xf32>) -> tensor<2x2x8x4xf32>
  %t1 = nn.transpose %f#1 [0, 1, 3, 2] : (tensor<2x2x4x8xf32>) -> tensor<2x2x8x4xf32>
  %gaps = nn.concat %t0, %t1 dim 3 : (tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x2x8x8xf32>
  return %read, %d#2, %other, %gaps : tensor<2x4x2x16xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x16xf32>, tensor<2x2x8x8xf32>
}

// -----

// What another task reads beside, it reads in the same order.
// CHECK-LABEL: plan.program @main
// CHECK: plan.attention {{.*}} -> [[O:@[a-z0-9_]+]][2x2x4x8xf32 strides [64, 8, 16, 1]]
// CHECK-NEXT: plan.gemm [[O]][8x16xf32]
// CHECK: plan.gemm [[O]][16x8xf32 strides [1, 16]]
func.func private @f(%q: tensor<2x2x4x8xf32> {nn.input = "q"}, %w: tensor<16x16xf32> {nn.input = "w"}) -> (tensor<8x16xf32>, tensor<2x2x4x8xf32>) attributes {dist.task = #dist.task<forward stage 0>} {
  %o:2 = nn.attention %q, %q, %q {scale = 0.5} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
  %t = nn.transpose %o#0 [0, 2, 1, 3] : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %r = nn.reshape %t : (tensor<2x4x2x8xf32>) -> tensor<8x16xf32>
  %y = nn.matmul %r, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %y, %o#0 : tensor<8x16xf32>, tensor<2x2x4x8xf32>
}
func.func private @b(%y: tensor<8x16xf32>, %o: tensor<2x2x4x8xf32>) -> (tensor<16x16xf32> {nn.output = "z"}) attributes {dist.task = #dist.task<backward stage 0>} {
  %t = nn.transpose %o [0, 2, 1, 3] : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %r = nn.reshape %t : (tensor<2x4x2x8xf32>) -> tensor<8x16xf32>
  %z = nn.matmul %r, %y {transpose_lhs} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  return %z : tensor<16x16xf32>
}
func.func private @main(%q: tensor<2x2x4x8xf32> {nn.input = "q"}, %w: tensor<16x16xf32> {nn.input = "w"}) -> (tensor<16x16xf32> {nn.output = "z"}) attributes {nn.entry}
dist.schedule @main_schedule entry @main micro_batches 1 {
  dist.stage 0 {
    dist.run @f[0]
    dist.run @b[0]
  }
  dist.edge @f 0 -> @b 0
  dist.edge @f 1 -> @b 1
}
