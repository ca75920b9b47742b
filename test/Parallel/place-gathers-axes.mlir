// RUN: acc-opt %s --dist-place-gathers | FileCheck %s
// RUN: acc-opt %s --dist-place-gathers --dist-verify -o /dev/null

!x = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!y = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {tp}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {tp}]>>
!columns = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>
!rows = tensor<4x4xf32, #dist.sharding<@mesh, [{tp}, {}]>>
!terms = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}], partial = {tp}>>
!w_terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}], partial = {dp_shard}>>
!l_terms = tensor<f32, #dist.sharding<@mesh, [], partial = {dp_shard}>>
!l = tensor<f32, #dist.sharding<@mesh, []>>

// A weight of the ranks of two axes is gathered over the one that its reader does not split it over, by
// unit. What moves a weight to another dimension is no gather, and stays where it is.
module attributes {accel.decisions = {}, accel.phase = "decided"} {
dist.mesh @mesh ["dp_shard" = 2, "tp" = 2]
nn.state @h.0.w : !w = dense<0.0>
nn.state @h.0.v : !columns = dense<0.0>
// CHECK-LABEL: func.func @step(
func.func @step(%x: !x {nn.input = "x"}, %w: !w {nn.state = @h.0.w}, %v: !columns {nn.state = @h.0.v})
    -> (!l {nn.output = "loss"}, !w {nn.state = @h.0.w}) attributes {nn.entry = #nn<entry step>} {
  // CHECK: dist.reshard %{{.*}} {dist.inserted_by = "dist-materialize"} : {{.*}}#all-tp> -> tensor<4x4xf32, #tp-all>
  // CHECK-NEXT: nn.mul
  // CHECK: dist.reshard %{{.*}} {dist.inserted_by = "dist-place-gathers", dist.instance = 0 : i64, dist.unit = "h.0"} : {{.*}}#dp_shard-tp> -> tensor<4x4xf32, #all-tp>
  // CHECK-NEXT: nn.matmul
  // CHECK-NOT: dist-place-gathers
  %g = dist.reshard %w {dist.inserted_by = "dist-materialize"} : !w -> !columns
  %m = dist.reshard %v {dist.inserted_by = "dist-materialize"} : !columns -> !rows
  %m2 = nn.mul %m, %m : !rows
  %y = nn.matmul %x, %g : (!x, !columns) -> !y
  %t = nn.matmul %y, %m2 : (!y, !rows) -> !terms
  %z = dist.reshard %t {dist.inserted_by = "dist-materialize"} : !terms -> !x
  %s = nn.reduce sum %z dims [0, 1] : (!x) -> !l_terms
  %loss = dist.reshard %s {dist.inserted_by = "dist-materialize"} : !l_terms -> !l
  %dt = nn.matmul %x, %y {transpose_lhs} : (!x, !y) -> !w_terms
  %dw = dist.reshard %dt {dist.inserted_by = "dist-materialize"} : !w_terms -> !w
  %gradient = nn.gradient %dw of @h.0.w : !w
  %new = nn.sub %w, %gradient : !w
  return %loss, %new : !l, !w
}
}
