// RUN: acc-opt %s --pass-pipeline="builtin.module(nn-cut-forward{chunks=2},nn-build-step{loss=loss optimizer=sgd set=gradient_clipping=0.5 set=scheduler.type=linear set=scheduler.total_steps=8},canonicalize,cse,nn-cut-step,nn-verify-step)" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: acc-opt %s --pass-pipeline="builtin.module(nn-build-step{loss=loss optimizer=sgd set=gradient_clipping=0.5 set=scheduler.type=linear set=scheduler.total_steps=8},canonicalize,cse,nn-verify-step)" -o %t.whole.mlir
// RUN: acc-eval %t.mlir --compare %t.whole.mlir --tolerance 1e-15

// The backward is cut where the forward is. Each chunk adds up the squares of its
// own gradients; chunk 0 has all of them, and says what the others need: how to
// clip, whether to skip, the rate. Those cross as scalars, and are broadcast behind
// the cut. What is reported is chunk 0's.
// CHECK: nn.state @w1 : tensor<8x8xf32> = {{.*}} {chunk = 1 : i64}
// CHECK: nn.state counter @"counter/step" : tensor<i64> = dense<0>{{$}}
// CHECK: %[[H:.*]] = nn.cut %{{.*}} from 0 to 1 : tensor<4x8xf32>
// CHECK: nn.cut %{{.*}} from 1 to 0 : tensor<4x8xf32>
// CHECK-DAG: nn.cut %{{.*}} from 1 to 0 : tensor<f32>
// CHECK-DAG: nn.cut %{{.*}} from 1 to 0 : tensor<i1>
// CHECK-DAG: %[[CLIP:.*]] = nn.cut %{{.*}} from 0 to 1 : tensor<f32>
// CHECK-DAG: nn.broadcast %[[CLIP]] : (tensor<f32>) -> tensor<8x8xf32>
// CHECK-DAG: nn.cut %{{.*}} from 0 to 1 : tensor<i1>
// CHECK: %[[LOSS:.*]] = nn.cut %{{.*}} from 1 to 0 : tensor<f32>
// CHECK: return %[[LOSS]],
nn.state @w0 : tensor<8x8xf32> = dense<0.5>
nn.state @w1 : tensor<8x8xf32> = dense<0.25>
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %w0: tensor<8x8xf32> {nn.state = @w0},
                %w1: tensor<8x8xf32> {nn.state = @w1})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.tanh %0 : tensor<4x8xf32>
  %2 = nn.matmul %1, %w1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = nn.mul %2, %2 : tensor<4x8xf32>
  %4 = nn.reduce sum %3 dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
