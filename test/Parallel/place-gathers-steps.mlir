// RUN: acc-opt %s --dist-place-gathers | FileCheck %s

// A weight that its reader wants over tp as well: what is gathered over dp_shard is no copy that anybody
// keeps, and what its reader asks for stays where it is. Only over dp_groups a gather is a step of two.
!x = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {tp}]>>
!columns = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>
!whole = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!w_terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!l_terms = tensor<f32, #dist.sharding<@mesh, [], partial = {dp_shard}>>
!l = tensor<f32, #dist.sharding<@mesh, []>>
module attributes {accel.decisions = {}, accel.phase = "decided"} {
dist.mesh @mesh ["dp_shard" = 2, "tp" = 2]
nn.state @h.0.w : !w = dense<0.0>
func.func @step(%x: !x {nn.input = "x"}, %w: !w {nn.state = @h.0.w})
    -> (!l {nn.output = "loss"}, !w {nn.state = @h.0.w}) attributes {nn.entry = #nn<entry step>} {
  // CHECK: %[[G:.*]] = dist.reshard %arg1 {dist.inserted_by = "dist-place-gathers", {{.*}}-> tensor<4x4xf32, #all-tp>
  // CHECK-NEXT: %[[W:.*]] = dist.reshard %[[G]] {dist.inserted_by = "dist-materialize"} : {{.*}} -> tensor<4x4xf32, #all-all>
  // CHECK-NEXT: nn.matmul {{.*}}, %[[W]]
  %g = dist.reshard %w {dist.inserted_by = "dist-materialize"} : !w -> !columns
  %h = dist.reshard %g {dist.inserted_by = "dist-materialize"} : !columns -> !whole
  %y = nn.matmul %x, %h : (!x, !whole) -> !x
  %s = nn.reduce sum %y dims [0, 1] : (!x) -> !l_terms
  %loss = dist.reshard %s {dist.inserted_by = "dist-materialize"} : !l_terms -> !l
  %dt = nn.matmul %x, %y {transpose_lhs} : (!x, !x) -> !w_terms
  %dw = dist.reshard %dt {dist.inserted_by = "dist-materialize"} : !w_terms -> !w
  %gradient = nn.gradient %dw of @h.0.w : !w
  %new = nn.sub %w, %gradient : !w
  return %loss, %new : !l, !w
}
}
