// RUN: acc-opt %s --dist-place-gathers | FileCheck %s

// What is computed again may stand before the forward's last block, which shares its gather: the gather comes
// before both.
// CHECK: func.func @step(%{{.*}}: tensor<8x4xf32, {{.*}}, %{{.*}}: tensor<4x4xf32, {{.*}}, %[[P1:.*]]: tensor<4x4xf32,
// CHECK: %[[F1:.*]] = dist.reshard %[[P1]] {{.*}}dist.unit = "h.1"}
// CHECK-NEXT: nn.matmul %{{.*}}, %[[F1]] {dist.instance = 11 : i64}
// CHECK-NEXT: nn.matmul %{{.*}}, %[[F1]] :
// CHECK-NOT: dist.reshard %[[P1]]
!x = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!whole = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!w_terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!l_terms = tensor<f32, #dist.sharding<@mesh, [], partial = {dp_shard}>>
!l = tensor<f32, #dist.sharding<@mesh, []>>
module attributes {accel.phase = "decided", accel.decisions = {}} {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @h.0.w : !w = dense<0.0>
nn.state @h.1.w : !w = dense<0.0>

func.func @step(%x: !x {nn.input = "x"}, %w0: !w {nn.state = @h.0.w}, %w1: !w {nn.state = @h.1.w})
    -> (!l {nn.output = "loss"}, !w {nn.state = @h.0.w}, !w {nn.state = @h.1.w}) attributes {nn.entry = #nn<entry step>} {
  %g0 = dist.reshard %w0 {dist.inserted_by = "dist-materialize"} : !w -> !whole
  %g1 = dist.reshard %w1 {dist.inserted_by = "dist-materialize"} : !w -> !whole
  %y0 = nn.matmul %x, %g0 : (!x, !whole) -> !x
  %a0 = nn.tanh %y0 : (!x) -> !x
  %again1 = nn.matmul %a0, %g1 {dist.instance = 11 : i64} : (!x, !whole) -> !x
  %y1 = nn.matmul %a0, %g1 : (!x, !whole) -> !x
  %a1 = nn.tanh %y1 : (!x) -> !x
  %s = nn.reduce sum %a1 dims [0, 1] : (!x) -> !l_terms
  %loss = dist.reshard %s {dist.inserted_by = "dist-materialize"} : !l_terms -> !l
  %d1 = nn.mul %again1, %again1 : (!x, !x) -> !x
  %t1 = nn.matmul %a0, %d1 {transpose_lhs} : (!x, !x) -> !w_terms
  %e1 = nn.matmul %d1, %g1 {transpose_rhs} : (!x, !whole) -> !x
  %again0 = nn.matmul %x, %g0 {dist.instance = 10 : i64} : (!x, !whole) -> !x
  %d0 = nn.mul %e1, %again0 : (!x, !x) -> !x
  %e0 = nn.matmul %d0, %g0 {transpose_rhs} : (!x, !whole) -> !x
  %f0 = nn.mul %e0, %d0 : (!x, !x) -> !x
  %t0 = nn.matmul %x, %f0 {transpose_lhs} : (!x, !x) -> !w_terms
  %dw0 = dist.reshard %t0 {dist.inserted_by = "dist-materialize"} : !w_terms -> !w
  %dw1 = dist.reshard %t1 {dist.inserted_by = "dist-materialize"} : !w_terms -> !w
  %gradient0 = nn.gradient %dw0 of @h.0.w : !w
  %gradient1 = nn.gradient %dw1 of @h.1.w : !w
  %new0 = nn.sub %w0, %gradient0 : !w
  %new1 = nn.sub %w1, %gradient1 : !w
  return %loss, %new0, %new1 : !l, !w, !w
}
}
