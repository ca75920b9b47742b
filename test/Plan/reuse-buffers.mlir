// RUN: acc-opt %s -split-input-file --plan-reuse-buffers | FileCheck %s

func.func private @negate(%a: tensor<2x4xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<2x4xf32>
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
  %b = nn.softmax %a dim 0 : tensor<8xf32>
  return %b : tensor<8xf32>
}
func.func private @run(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.cumsum %a dim 0 {reverse} : tensor<8xf32>
  return %b : tensor<8xf32>
}

// @b takes @a's bytes, and @b's readers follow; rows are normalised in place;
// inputs, transposed readers, rows read elsewhere and buffers read later stay as
// they are.
// CHECK-LABEL: plan.program @p
// CHECK-NOT: plan.buffer @b
// CHECK: plan.body @f
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @negate {{.*}}@a {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @turn {{.*}}@a {{.*}} -> {{.*}}@c
// CHECK-NEXT: plan.kernel @normalise {{.*}}@c {{.*}} -> {{.*}}@c
// CHECK-NEXT: plan.kernel @run {{.*}}@c {{.*}} -> {{.*}}@d
// CHECK-NEXT: plan.kernel @negate {{.*}}@d {{.*}} -> {{.*}}@e
// CHECK-NEXT: plan.kernel @negate {{.*}}@d {{.*}} -> {{.*}}@d
plan.program @p stage 0 ranks 1 {
  plan.buffer @x role input space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @a role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @b role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @c role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @n role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @d role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @e role activation space device offset -1 bytes 32 slots 1 stride 32
  // CHECK-NOT: plan.buffer @negate
  plan.buffer @negate role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.body @f engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@a + 0 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @turn [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @normalise [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@n + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @run [#plan.view<@n + 0 : f32 [8] strides [1]>] -> [#plan.view<@d + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@d + 0 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@e + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@d + 0 : f32 [2, 4] strides [4, 1]>] -> [#plan.view<@negate + 0 : f32 [8] strides [1]>] rows 1 grid 1
  }
  plan.entry @main {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----

// New values of states are written where the old ones lay; not where another
// result has loops of its own, or where the old value is read afterwards.
func.func private @update(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.add %m, %g : tensor<8xf32>
  %q = nn.sub %p, %n : tensor<8xf32>
  return %n, %q : tensor<8xf32>, tensor<8xf32>
}
func.func private @two_nests(%p: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.neg %p : tensor<8xf32>
  %s = nn.reduce sum %p dims [0] : (tensor<8xf32>) -> tensor<f32>
  return %n, %s : tensor<8xf32>, tensor<f32>
}
func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// CHECK-LABEL: plan.program @states
// CHECK: plan.body @f
// CHECK-NEXT: plan.kernel @update {{.*}}@p {{.*}}@m {{.*}}@g {{.*}} -> {{.*}}@m {{.*}}@p
// CHECK-NEXT: plan.kernel @two_nests {{.*}}@q {{.*}} -> {{.*}}@t
// CHECK-NEXT: plan.kernel @negate {{.*}}@r {{.*}} -> {{.*}}@u
// CHECK-NEXT: plan.kernel @negate {{.*}}@r {{.*}} -> {{.*}}@v
// CHECK-NEXT: plan.copy <@t {{.*}} -> <@q
// CHECK-NEXT: plan.copy <@u {{.*}} -> <@r
// CHECK-NEXT: }
plan.program @states stage 0 ranks 1 {
  plan.buffer @p role state space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @m role state space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @q role state space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @r role state space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @g role input space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @m1 role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @p1 role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @t role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @s role activation space device offset -1 bytes 4 slots 1 stride 4
  plan.buffer @u role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @v role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.body @f engine cpu {
    plan.kernel @update [#plan.view<@p + 0 : f32 [8] strides [1]>, #plan.view<@m + 0 : f32 [8] strides [1]>, #plan.view<@g + 0 : f32 [8] strides [1]>] -> [#plan.view<@m1 + 0 : f32 [8] strides [1]>, #plan.view<@p1 + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @two_nests [#plan.view<@q + 0 : f32 [8] strides [1]>] -> [#plan.view<@t + 0 : f32 [8] strides [1]>, #plan.view<@s + 0 : f32 [] strides []>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@r + 0 : f32 [8] strides [1]>] -> [#plan.view<@u + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@r + 0 : f32 [8] strides [1]>] -> [#plan.view<@v + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.copy <@m1 + 0 : f32 [8] strides [1]> -> <@m + 0 : f32 [8] strides [1]>
    plan.copy <@p1 + 0 : f32 [8] strides [1]> -> <@p + 0 : f32 [8] strides [1]>
    plan.copy <@t + 0 : f32 [8] strides [1]> -> <@q + 0 : f32 [8] strides [1]>
    plan.copy <@u + 0 : f32 [8] strides [1]> -> <@r + 0 : f32 [8] strides [1]>
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----
func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// What other ranks read later is written, and changed, where they can: in space
// shared. What they do not read goes nowhere else.
// CHECK-LABEL: plan.program @shared
// CHECK: plan.buffer @a role activation space shared
// CHECK-NOT: plan.buffer @b
// CHECK: plan.buffer @c role activation space shared
// CHECK: plan.buffer @d role activation space device
// CHECK: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @negate {{.*}}@a {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.collective all_reduce {{.*}}@a {{.*}} -> {{.*}}@c
// CHECK-NEXT: plan.kernel @negate {{.*}}@c {{.*}} -> {{.*}}@d
plan.program @shared stage 0 ranks 2 {
  plan.buffer @x role input space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @a role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @b role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @c role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @d role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.body @f engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.kernel @negate [#plan.view<@a + 0 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@b + 0 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@c + 0 : f32 [8] strides [1]>] -> [#plan.view<@d + 0 : f32 [8] strides [1]>] rows 1 grid 1
  }
  plan.entry @main {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}

// -----
func.func private @negate(%a: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @read(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// A gather writes the new value of @p into it; that of @q goes to a buffer first,
// since the old value is read after it began.
// CHECK-LABEL: plan.program @gathered
// CHECK: plan.body @f
// CHECK: plan.collective all_gather {{.*}}@s {{.*}} -> {{.*}}@p
// CHECK-NEXT: plan.collective all_gather {{.*}}@s {{.*}} -> {{.*}}@v
// CHECK-NEXT: plan.kernel @read {{.*}}@q
// CHECK-NEXT: plan.copy <@v {{.*}} -> <@q
// CHECK-NEXT: }
plan.program @gathered stage 0 ranks 2 {
  plan.buffer @p role state space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @q role state space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @x role input space device offset -1 bytes 16 slots 1 stride 16
  plan.buffer @s role activation space shared offset -1 bytes 16 slots 1 stride 16
  plan.buffer @u role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @v role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @w role activation space device offset -1 bytes 32 slots 1 stride 32
  plan.body @f engine cpu {
    plan.kernel @negate [#plan.view<@x + 0 : f32 [4] strides [1]>] -> [#plan.view<@s + 0 : f32 [4] strides [1]>] rows 1 grid 1
    plan.collective all_gather ["dp"] [#plan.view<@s + 0 : f32 [4] strides [1]>] -> [#plan.view<@u + 0 : f32 [8] strides [1]>]
    plan.collective all_gather ["dp"] [#plan.view<@s + 0 : f32 [4] strides [1]>] -> [#plan.view<@v + 0 : f32 [8] strides [1]>]
    plan.kernel @read [#plan.view<@q + 0 : f32 [8] strides [1]>] -> [#plan.view<@w + 0 : f32 [8] strides [1]>] rows 1 grid 1
    plan.copy <@u + 0 : f32 [8] strides [1]> -> <@p + 0 : f32 [8] strides [1]>
    plan.copy <@v + 0 : f32 [8] strides [1]> -> <@q + 0 : f32 [8] strides [1]>
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @f micro_batch 0
    }
  }
}
