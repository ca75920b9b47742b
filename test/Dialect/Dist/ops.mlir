// Every op and attribute of dist parses, and prints the same text again.
// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK: dist.mesh @m ["mb" = 1, "dp_replicate" = 2, "tp" = 4]
dist.mesh @m ["mb" = 1, "dp_replicate" = 2, "tp" = 4]
// CHECK: dist.mesh @placed ["dp" = 2] device_ids [1, 0] links [#dist.link<alpha = 1.500000e-06 : f64, beta = 1.000000e-10 : f64>]
dist.mesh @placed ["dp" = 2] device_ids [1, 0] links [#dist.link<alpha = 1.5e-6 : f64, beta = 1.0e-10 : f64>]
dist.mesh @one []

!global = tensor<8x64xf32, #dist.sharding<@m, [{mb, dp_replicate}, {}], partial = {tp}, reduce = max>>
!whole = tensor<8x64xf32, #dist.sharding<@m, [{}, {}]>>

// CHECK-LABEL: @whole_tensors(
// CHECK-SAME: tensor<8x64xf32, #mb_dp_replicate-all-max_over_tp>
func.func @whole_tensors(%x: !global) -> !whole {
  // CHECK: dist.constraint %{{.*}} to #dp_replicate_any-any : tensor<8x64xf32
  %0 = dist.constraint %x to <@m, [{dp_replicate, ?}, {?}]> : !global
  // CHECK: dist.reshard %{{.*}} : tensor<8x64xf32, #mb_dp_replicate-all-max_over_tp> -> tensor<8x64xf32, #all-all>
  %1 = dist.reshard %0 : !global -> !whole
  return %1 : !whole
}

// CHECK-LABEL: @collectives(
func.func @collectives(%x: tensor<8x64xf32>) -> tensor<i64> {
  // CHECK: dist.all_reduce sum %{{.*}} over @m {dp_replicate, tp} : tensor<8x64xf32>
  %0 = dist.all_reduce sum %x over @m {dp_replicate, tp} : tensor<8x64xf32>
  // CHECK: dist.all_reduce max %{{.*}} over @m {tp} wire bf16 : tensor<8x64xf32>
  %1 = dist.all_reduce max %0 over @m {tp} wire bf16 : tensor<8x64xf32>
  // CHECK: dist.reduce_scatter sum %{{.*}} over @m {tp} dim 1 : (tensor<8x64xf32>) -> tensor<8x16xf32>
  %2 = dist.reduce_scatter sum %1 over @m {tp} dim 1 : (tensor<8x64xf32>) -> tensor<8x16xf32>
  // CHECK: dist.all_gather %{{.*}} over @m {dp_replicate} dim 0 wire f16 : (tensor<8x16xf32>) -> tensor<16x16xf32>
  %3 = dist.all_gather %2 over @m {dp_replicate} dim 0 wire f16 : (tensor<8x16xf32>) -> tensor<16x16xf32>
  // CHECK: dist.all_slice %{{.*}} over @m {dp_replicate} dim 0 : (tensor<16x16xf32>) -> tensor<8x16xf32>
  %4 = dist.all_slice %3 over @m {dp_replicate} dim 0 : (tensor<16x16xf32>) -> tensor<8x16xf32>
  // CHECK: dist.all_to_all %{{.*}} over @m {tp} split 0 concat 1 : (tensor<8x16xf32>) -> tensor<2x64xf32>
  %5 = dist.all_to_all %4 over @m {tp} split 0 concat 1 : (tensor<8x16xf32>) -> tensor<2x64xf32>
  %index = nn.constant dense<[0, -1, 7]> : tensor<3xi64>
  // CHECK: dist.fetch_rows %{{.*}}, %{{.*}} over @m {tp} wire bf16 : (tensor<2x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
  %rows = dist.fetch_rows %5, %index over @m {tp} wire bf16 : (tensor<2x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
  // CHECK: dist.permute %{{.*}} over @m {tp} sources [3, 0, 1, 2] : tensor<2x64xf32>
  %6 = dist.permute %5 over @m {tp} sources [3, 0, 1, 2] : tensor<2x64xf32>
  // CHECK: dist.broadcast %{{.*}} over @m {tp} root 2 : tensor<2x64xf32>
  %7 = dist.broadcast %6 over @m {tp} root 2 : tensor<2x64xf32>
  // CHECK: dist.axis_index @m {dp_replicate, tp} : tensor<i64>
  %8 = dist.axis_index @m {dp_replicate, tp} : tensor<i64>
  return %8 : tensor<i64>
}

// CHECK-LABEL: @layouts(
// CHECK-SAME: tensor<4x64xf32> {dist.layout = #dist.layout<@m [8 by {dp_replicate}, 64]>}
// CHECK-SAME: -> (tensor<4x64xf32> {dist.layout = #dist.layout<@m [8 by {dp_replicate}, 64]>})
// CHECK-SAME: attributes {dist.task = #dist.task<forward stage 0>}
func.func @layouts(%x: tensor<4x64xf32> {dist.layout = #dist.layout<@m [8 by {dp_replicate}, 64]>})
    -> (tensor<4x64xf32> {dist.layout = #dist.layout<@m [8 by {dp_replicate}, 64]>})
    attributes {dist.task = #dist.task<forward stage 0>} {
  return %x : tensor<4x64xf32>
}
func.func private @second(%x: tensor<4x64xf32>) attributes {dist.task = #dist.task<backward_input stage 1>}
// CHECK: #dist.task<backward_input stage 1 chunk 1>
func.func private @third(%x: tensor<4x64xf32>) attributes {dist.task = #dist.task<backward_input stage 1 chunk 1>}
// A chunk that is written and 0 is not printed.
// CHECK: #dist.task<backward_weight stage 1>
func.func private @fourth(%x: tensor<4x64xf32>) attributes {dist.task = #dist.task<backward_weight stage 1 chunk 0>}

// CHECK: dist.schedule @infer entry @layouts micro_batches 2 {
// CHECK-NEXT: dist.stage 0 {
// CHECK-NEXT: dist.run @layouts[0]
// CHECK-NEXT: dist.run @layouts[1]
// CHECK: dist.stage 1 {
// CHECK-NEXT: dist.loop 2 {
// CHECK-NEXT: dist.run @second[turn]
// CHECK-NEXT: }
// CHECK: dist.edge @layouts 0 -> @second 0
dist.schedule @infer entry @layouts micro_batches 2 {
  dist.stage 0 {
    dist.run @layouts[0]
    dist.run @layouts[1]
  }
  dist.stage 1 {
    dist.loop 2 {
      dist.run @second[turn]
    }
  }
  dist.edge @layouts 0 -> @second 0
}
