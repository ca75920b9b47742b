// RUN: acc-opt %s --dist-localize --local-split-tasks --local-verify | FileCheck %s

dist.mesh @m ["one" = 1, "a" = 2, "b" = 4]
// CHECK: nn.state @w : tensor<16x8xf32> =
nn.state @w : tensor<16x8xf32, #dist.sharding<@m, [{a}, {}]>> = dense<1.0>

!sum = tensor<8x8xf32, #dist.sharding<@m, [{}, {}], partial = {a}>>
!max = tensor<8x8xf32, #dist.sharding<@m, [{}, {}], partial = {b}, reduce = max>>
!rows = tensor<8x8xf32, #dist.sharding<@m, [{a}, {}]>>
!columns = tensor<8x8xf32, #dist.sharding<@m, [{}, {a}]>>
!whole = tensor<8x8xf32, #dist.sharding<@m, [{}, {}]>>
!ab = tensor<8x8xf32, #dist.sharding<@m, [{a, b}, {}]>>
!ba = tensor<8x8xf32, #dist.sharding<@m, [{b, a}, {}]>>
!w = tensor<16x8xf32, #dist.sharding<@m, [{a}, {}]>>

// Every kind of collective, at the sharding it undoes; axes of size 1 vanish.
// CHECK-LABEL: @collectives(
// CHECK-SAME: %[[SUM:[^:]*]]: tensor<8x8xf32> {dist.layout = #dist.layout<@m [8, 8], partial = {a}>}
// CHECK-SAME: %[[MAX:[^:]*]]: tensor<8x8xf32> {dist.layout
// CHECK-SAME: %[[ROWS:[^:]*]]: tensor<4x8xf32> {dist.layout = #dist.layout<@m [8 by {a}, 8]>}
// CHECK-SAME: %[[AB:[^:]*]]: tensor<1x8xf32> {dist.layout = #dist.layout<@m [8 by {a, b}, 8]>}
// CHECK-SAME: %[[ONE:[^:]*]]: tensor<8x8xf32> {dist.layout = #dist.layout<@m [8, 8]>}
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x8xf32> {dist.layout = #dist.layout<@m [16 by {a}, 8]>, nn.state = @w}
// CHECK-SAME: -> (tensor<8x8xf32> {dist.layout = #dist.layout<@m [8, 8]>
// CHECK-SAME: attributes {dist.task = #dist.task<forward stage 0>, nn.entry}
func.func @collectives(%sum: !sum, %max: !max, %rows: !rows, %ab: !ab, %one: tensor<8x8xf32, #dist.sharding<@m, [{one}, {}]>>, %w: !w {nn.state = @w})
    -> (!whole, !rows, !whole, !whole, !rows, !columns, !ba, !whole) attributes {nn.entry} {
  // CHECK-NEXT: %[[R0:.*]] = dist.all_reduce sum %[[SUM]] over @m {a} {dist.inserted_by = "somebody"} : tensor<8x8xf32>
  %0 = dist.reshard %sum {dist.inserted_by = "somebody"} : !sum -> !whole
  // CHECK-NEXT: %[[R1:.*]] = dist.reduce_scatter sum %[[SUM]] over @m {a} dim 0 : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = dist.reshard %sum : !sum -> !rows
  // CHECK-NEXT: %[[R2:.*]] = dist.all_reduce max %[[MAX]] over @m {b} : tensor<8x8xf32>
  %2 = dist.reshard %max : !max -> !whole
  // CHECK-NEXT: %[[R3:.*]] = dist.all_gather %[[AB]] over @m {a, b} dim 0 : (tensor<1x8xf32>) -> tensor<8x8xf32>
  %3 = dist.reshard %ab : !ab -> !whole
  // CHECK-NEXT: %[[R4:.*]] = dist.all_slice %[[R0]] over @m {a} dim 0 : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %4 = dist.reshard %0 : !whole -> !rows
  // CHECK-NEXT: %[[R5:.*]] = dist.all_to_all %[[ROWS]] over @m {a} split 1 concat 0 : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %5 = dist.reshard %rows : !rows -> !columns
  // CHECK-NEXT: %[[R6:.*]] = dist.permute %[[AB]] over @m {a, b} sources [0, 2, 4, 6, 1, 3, 5, 7] : tensor<1x8xf32>
  %6 = dist.reshard %ab : !ab -> !ba
  %7 = dist.reshard %one : tensor<8x8xf32, #dist.sharding<@m, [{one}, {}]>> -> !whole
  // CHECK-NEXT: return %[[R0]], %[[R1]], %[[R2]], %[[R3]], %[[R4]], %[[R5]], %[[R6]], %[[ONE]]
  return %0, %1, %2, %3, %4, %5, %6, %7 : !whole, !rows, !whole, !whole, !rows, !columns, !ba, !whole
}
// CHECK: dist.schedule @collectives_schedule entry @collectives micro_batches 1 {
// CHECK-NEXT: dist.stage 0 {
// CHECK-NEXT: dist.run @collectives[0]

// What looks at indices does so with the rank's own offset.
// CHECK-LABEL: @indices(
func.func @indices() -> (tensor<8x4xi32, #dist.sharding<@m, [{a, b}, {}]>>, tensor<4xf32, #dist.sharding<@m, [{b}]>>, tensor<4xf32, #dist.sharding<@m, [{b}]>>) {
  // CHECK-NEXT: %[[I:.*]] = nn.iota {dim = 0 : i64, start = 5 : i64} : tensor<1x4xi32>
  // CHECK-NEXT: %[[R:.*]] = dist.axis_index @m {a, b} {dist.inserted_by = "dist-localize"} : tensor<i64>
  // CHECK-NEXT: %[[S:.*]] = nn.constant dense<1> : tensor<i64>
  // CHECK-NEXT: %[[O:.*]] = nn.mul %[[R]], %[[S]]
  // CHECK-NEXT: %[[C:.*]] = nn.cast %[[O]] : (tensor<i64>) -> tensor<i32>
  // CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[C]] : (tensor<i32>) -> tensor<1x4xi32>
  // CHECK-NEXT: nn.add %[[I]], %[[B]]
  %0 = nn.iota {dim = 0 : i64, start = 5 : i64} : tensor<8x4xi32, #dist.sharding<@m, [{a, b}, {}]>>
  // CHECK-NEXT: nn.constant dense<2.000000e+00> : tensor<1xf32>
  %1 = nn.constant dense<2.0> : tensor<4xf32, #dist.sharding<@m, [{b}]>>
  // CHECK-NEXT: %[[T:.*]] = nn.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
  // CHECK-NEXT: dist.all_slice %[[T]] over @m {b} dim 0 {dist.inserted_by = "dist-localize"} : (tensor<4xf32>) -> tensor<1xf32>
  %2 = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32, #dist.sharding<@m, [{b}]>>
  return %0, %1, %2 : tensor<8x4xi32, #dist.sharding<@m, [{a, b}, {}]>>, tensor<4xf32, #dist.sharding<@m, [{b}]>>, tensor<4xf32, #dist.sharding<@m, [{b}]>>
}

// CHECK-LABEL: @sliced(
// CHECK: nn.slice %{{.*}} starts [0, 2] sizes [4, 3] steps [1, 2] : (tensor<4x8xf32>) -> tensor<4x3xf32>
func.func @sliced(%x: !rows) -> tensor<8x3xf32, #dist.sharding<@m, [{a}, {}]>> {
  %0 = nn.slice %x starts [0, 2] sizes [8, 3] steps [1, 2] : (!rows) -> tensor<8x3xf32, #dist.sharding<@m, [{a}, {}]>>
  return %0 : tensor<8x3xf32, #dist.sharding<@m, [{a}, {}]>>
}
