// RUN: acc-opt %s --dist-place-gathers | FileCheck %s
// RUN: acc-opt %s --dist-place-gathers --dist-verify -o /dev/null
// RUN: sed 's/accel.decisions = {}/accel.decisions = {gathers = "once"}/' %s | acc-opt - --dist-place-gathers | FileCheck %s --check-prefix=ONCE

// Two blocks whose forward the backward computes again, up to the activation that it reads
// (`dist.instance` keeps the copies from being merged with the first). Each block is gathered twice and not three
// times: what is computed again reads what the backward gathers. The last is gathered once.
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
// CHECK: func.func @step(%[[X:.*]]: tensor<8x4xf32, {{.*}}, %[[P0:.*]]: tensor<4x4xf32, {{.*}}, %[[P1:.*]]: tensor<4x4xf32,
// CHECK: %[[F0:.*]] = dist.reshard %[[P0]] {{.*}}dist.instance = 0 : i64, dist.unit = "h.0"}
// CHECK-NEXT: nn.matmul %[[X]], %[[F0]]
// CHECK: %[[F1:.*]] = dist.reshard %[[P1]] {{.*}}dist.instance = 1 : i64, dist.unit = "h.1"}
// CHECK-NEXT: nn.matmul %{{.*}}, %[[F1]]
// CHECK: nn.matmul %{{.*}}, %[[F1]] {dist.instance = 11 : i64}
// CHECK: nn.matmul %{{.*}}, %[[F1]] {transpose_rhs}
// CHECK: %[[B0:.*]] = dist.reshard %[[P0]] {{.*}}dist.instance = 2 : i64, dist.unit = "h.0"}
// CHECK-NEXT: nn.matmul %[[X]], %[[B0]] {dist.instance = 10 : i64}
// CHECK: nn.matmul %{{.*}}, %[[B0]] {transpose_rhs}
// CHECK-NOT: dist.unit

// ONCE-COUNT-1: dist.reshard %arg1
// ONCE-COUNT-1: dist.reshard %arg2
// ONCE-NOT: dist.unit
func.func @step(%x: !x {nn.input = "x"}, %w0: !w {nn.state = @h.0.w}, %w1: !w {nn.state = @h.1.w})
    -> (!l {nn.output = "loss"}, !w {nn.state = @h.0.w}, !w {nn.state = @h.1.w}) attributes {nn.entry = #nn<entry step>} {
  %g0 = dist.reshard %w0 {dist.inserted_by = "dist-materialize"} : !w -> !whole
  %g1 = dist.reshard %w1 {dist.inserted_by = "dist-materialize"} : !w -> !whole
  %y0 = nn.matmul %x, %g0 : (!x, !whole) -> !x
  %a0 = nn.tanh %y0 : (!x) -> !x
  %y1 = nn.matmul %a0, %g1 : (!x, !whole) -> !x
  %a1 = nn.tanh %y1 : (!x) -> !x
  %s = nn.reduce sum %a1 dims [0, 1] : (!x) -> !l_terms
  %loss = dist.reshard %s {dist.inserted_by = "dist-materialize"} : !l_terms -> !l
  // Again, from a0, which is kept.
  %again1 = nn.matmul %a0, %g1 {dist.instance = 11 : i64} : (!x, !whole) -> !x
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
