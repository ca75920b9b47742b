// RUN: acc-opt %s --plan-bucket-collectives="bytes=64" | FileCheck %s

func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : (tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}
dist.mesh @m ["dp" = 2]

// Two reductions of 32 bytes fill a bucket, the last one is one of its own; none
// is read here, so they go on beside the computation.
// CHECK-LABEL: plan.program @p
// CHECK: plan.body @backward
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@b
// CHECK-NEXT: plan.record "bucket_0"
// CHECK-NEXT: plan.wait "bucket_0" {stream = "comm"}
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@a {{.*}}@b {{.*}}] -> [{{.*}}@a {{.*}}@b {{.*}}] {combine = #plan<combine sum>, stream = "comm"}
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@c
// CHECK-NEXT: plan.record "bucket_1"
// CHECK-NEXT: plan.wait "bucket_1" {stream = "comm"}
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@c {{.*}}] -> [{{.*}}@c {{.*}}] {combine = #plan<combine sum>, stream = "comm"}
// CHECK-NEXT: plan.record "buckets" {stream = "comm"}
// CHECK-NEXT: plan.wait "buckets"
// CHECK-NEXT: }
// A bucket is reduced before its sums are read, and other ways of combining do
// not join it. What is read here stays on the stream of what reads it.
// CHECK: plan.body @reads
// CHECK-NEXT: plan.kernel @negate {{.*}}@x {{.*}} -> {{.*}}@a
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@a {{.*}}] -> [{{.*}}@a {{.*}}] {combine = #plan<combine sum>}
// CHECK-NEXT: plan.kernel @negate {{.*}}@a {{.*}} -> {{.*}}@b
// CHECK-NEXT: plan.collective all_reduce ["dp"] [{{.*}}@b {{.*}}] -> [{{.*}}@b {{.*}}] {combine = #plan<combine max>}
// CHECK-NEXT: }
plan.program @p stage 0 ranks 2 mesh @m {
  plan.buffer @x role input space device offset -1 bytes 32 slots 1 stride 32
  plan.buffer @a role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @b role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.buffer @c role activation space shared offset -1 bytes 32 slots 1 stride 32
  plan.body @backward engine cpu slots 0 {
    plan.kernel @negate [#plan.view<@x + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@x + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@x + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@c + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@c + 0 slot -1 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
  }
  plan.body @reads engine cpu slots 0 {
    plan.kernel @negate [#plan.view<@x + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] {combine = #plan<combine sum>}
    plan.kernel @negate [#plan.view<@a + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] rows 1 grid 1
    plan.collective all_reduce ["dp"] [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] -> [#plan.view<@b + 0 slot -1 : f32 [8] strides [1]>] {combine = #plan<combine max>}
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @backward micro_batch 0 slots []
      plan.run @reads micro_batch 0 slots []
    }
  }
}
