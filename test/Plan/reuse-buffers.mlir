// RUN: acc-opt %s -split-input-file --plan-reuse-buffers | FileCheck %s

func.func private @negate(%a: tensor<2x4xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = nn.reshape %b : (tensor<2x4xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
func.func private @turn(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.reshape %a : (tensor<8xf32>) -> tensor<2x4xf32>
  %c = nn.transpose %b [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %d = nn.reshape %c : (tensor<4x2xf32>) -> tensor<8xf32>
  return %d : tensor<8xf32>
}
func.func private @normalise(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.softmax %a dim 0 : (tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// @b takes @a's bytes, and @b's readers follow; inputs, transposed readers, rows
// read twice and buffers read later stay as they are.
// CHECK-LABEL: plan.program @p
// CHECK-NOT: plan.buffer @b
// CHECK: plan.body @f
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @negate {{.*}}@a {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @turn {{.*}}@a {{.*}} -> {{.*}}@c
// CHECK-NEXT: plan.kernel @normalise {{.*}}@c {{.*}} -> {{.*}}@d
// CHECK-NEXT: plan.kernel @negate {{.*}}@d {{.*}} -> {{.*}}@e
// CHECK-NEXT: plan.kernel @negate {{.*}}@d {{.*}} -> {{.*}}@d
plan.program @p stage 0 ranks 1 {
  plan.buffer @x role input space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @a role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @b role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @c role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @d role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @e role activation space device offset -1 bytes 32 slots 1 stride 32
  // CHECK-NOT: plan.buffer @negate
  plan.buffer @negate role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.body @f engine cpu slots 0 {
    plan.kernel @negate [#plan.view<@x + 0 slot -1 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@a + 0 slot -1 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @turn [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @normalise [#plan.view<@c + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@d + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@d + 0 slot -1 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@e + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@d + 0 slot -1 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@negate + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
  }
  plan.entry @main {
    plan.segment cpu {
      plan.run @f micro_batch 0 slots []
    }
  }
}
