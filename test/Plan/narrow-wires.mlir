// What a collective sends in a narrower type becomes casts, which are part of the kernels
// around it: ranks exchange the narrow bytes.
// RUN: acc-opt %s --local-narrow-wires | FileCheck %s
// RUN: acc-opt %s --pass-pipeline='builtin.module(local-narrow-wires,local-form-kernels,local-lower-to-plan)' | FileCheck %s --check-prefix=PLAN
// CHECK: func.func @main
// CHECK: %[[SENT:.*]] = nn.cast %{{.*}} : (tensor<8xf32>) -> tensor<8xf16>
// CHECK-NEXT: %[[SUM:.*]] = dist.reduce_scatter sum %[[SENT]] over @mesh {dp} dim 0 {dist.unit = "u"} : (tensor<8xf16>) -> tensor<4xf16>
// CHECK-NEXT: %[[BACK:.*]] = nn.cast %[[SUM]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: nn.neg %[[BACK]]
// CHECK: dist.all_reduce sum %{{.*}} over @mesh {dp} : tensor<f32>
// CHECK-NOT: wire
// PLAN: plan.kernel @[[EXP:.*]](@x[8xf32]) -> @{{.*}}[8xf16]
// PLAN-NEXT: plan.collective reduce_scatter {{.*}}[8xf16]{{.*}} -> {{.*}}[4xf16]
// PLAN-NEXT: plan.kernel @[[NEG:.*]](@{{.*}}[4xf16]) -> {{.*}}[4xf32]
module {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.input = "x"}, %z: tensor<f32> {dist.layout = #dist.layout<@mesh []>, nn.input = "z"}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {dp}]>, nn.output = "y"}, tensor<f32> {dist.layout = #dist.layout<@mesh []>, nn.output = "t"}) attributes {nn.entry} {
    %e = nn.exp %x : tensor<8xf32>
    %s = dist.reduce_scatter sum %e over @mesh {dp} dim 0 wire f16 {dist.unit = "u"} : (tensor<8xf32>) -> tensor<4xf32>
    %n = nn.neg %s : tensor<4xf32>
    %t = dist.all_reduce sum %z over @mesh {dp} : tensor<f32>
    return %n, %t : tensor<4xf32>, tensor<f32>
  }
}
