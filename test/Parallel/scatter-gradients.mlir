// RUN: rm -rf %t && split-file %s %t
// RUN: not acc-opt %t/plain.mlir --dist-scatter-gradients 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: acc-opt %t/steps.mlir --dist-scatter-gradients -split-input-file | FileCheck %s
// RUN: acc-opt %t/steps.mlir --dist-verify -split-input-file -o /dev/null
// RUN: acc-opt %t/steps.mlir --dist-scatter-gradients --dist-verify -split-input-file -o /dev/null

//--- plain.mlir
// PLAIN: error: expected tensors with shardings, found {{.?}}tensor<4xf32>
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
func.func @step() attributes {nn.entry = #nn<entry step>} {
  %0 = nn.constant dense<0.0> : tensor<4xf32>
  return
}
}

//--- steps.mlir
!table = tensor<6x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<6x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!pieces = tensor<6x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!rows = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!out = tensor<8x6xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!w_terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!w_pieces = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// A table that is looked up first and multiplied with last, two blocks between.
// What the head makes of its gradient is scattered before the blocks' gradients
// are made, what the embedding makes after them; pieces are added.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @embed.table : !table = dense<0.0>
nn.state @h.0.w : !w = dense<0.0>
nn.state @h.1.w : !w = dense<0.0>
// CHECK-LABEL: func.func @tied(
// CHECK: %[[D1:.*]] = nn.matmul %{{.*}}, %{{.*}} {transpose_lhs} {{.*}} -> tensor<6x4xf32, #{{.*}}sum_over
// CHECK-NEXT: %[[S1:.*]] = dist.reshard %[[D1]] {dist.inserted_by = "dist-materialize", dist.unit = "embed/1"} : {{.*}} -> tensor<6x4xf32, #dp_shard-all>
// CHECK: nn.matmul
// CHECK: %[[H1:.*]] = nn.matmul %{{.*}} {transpose_lhs} {{.*}} -> tensor<4x4xf32, #{{.*}}sum_over
// CHECK-NEXT: %[[P1:.*]] = dist.reshard %[[H1]] {dist.inserted_by = "dist-materialize", dist.unit = "h.1"}
// CHECK: nn.matmul
// CHECK: %[[H0:.*]] = nn.matmul %{{.*}} {transpose_lhs} {{.*}} -> tensor<4x4xf32, #{{.*}}sum_over
// CHECK-NEXT: %[[P0:.*]] = dist.reshard %[[H0]] {dist.inserted_by = "dist-materialize", dist.unit = "h.0"}
// CHECK: %[[D0:.*]] = nn.scatter_add
// CHECK-NEXT: %[[S0:.*]] = dist.reshard %[[D0]] {dist.inserted_by = "dist-materialize", dist.unit = "embed"}
// CHECK-NEXT: %[[S:.*]] = nn.add %[[S1]], %[[S0]] : {{.*}}tensor<6x4xf32, #dp_shard-all>
// CHECK-NEXT: nn.gradient %[[S]] of @embed.table
// CHECK-NEXT: nn.gradient %[[P0]] of @h.0.w
// CHECK-NEXT: nn.gradient %[[P1]] of @h.1.w
// CHECK-NOT: dist.reshard
func.func @tied(%ids: tensor<8xi64, #dist.sharding<@mesh, [{dp_shard}]>> {nn.input = "ids"}, %table: !table {nn.state = @embed.table},
    %w0: !w {nn.state = @h.0.w}, %w1: !w {nn.state = @h.1.w}) -> (!out {nn.output = "y"}, !pieces, !w_pieces, !w_pieces) attributes {nn.entry = #nn<entry step>} {
  %x0 = nn.gather %table, %ids dim 0 : (!table, tensor<8xi64, #dist.sharding<@mesh, [{dp_shard}]>>) -> !rows
  %x1 = nn.matmul %x0, %w0 : (!rows, !w) -> !rows
  %x2 = nn.matmul %x1, %w1 : (!rows, !w) -> !rows
  %y = nn.matmul %x2, %table {transpose_rhs} : (!rows, !table) -> !out
  %d1 = nn.matmul %y, %x2 {transpose_lhs} : (!out, !rows) -> !terms
  %dx2 = nn.matmul %y, %table : (!out, !table) -> !rows
  %h1 = nn.matmul %x1, %dx2 {transpose_lhs} : (!rows, !rows) -> !w_terms
  %dx1 = nn.matmul %dx2, %w1 {transpose_rhs} : (!rows, !w) -> !rows
  %h0 = nn.matmul %x0, %dx1 {transpose_lhs} : (!rows, !rows) -> !w_terms
  %dx0 = nn.matmul %dx1, %w0 {transpose_rhs} : (!rows, !w) -> !rows
  %zero = nn.constant dense<0.0> : !table
  %d0 = nn.scatter_add %zero, %ids, %dx0 dim 0 : (!table, tensor<8xi64, #dist.sharding<@mesh, [{dp_shard}]>>, !rows) -> !terms
  %d = nn.add %d1, %d0 : (!terms, !terms) -> !terms
  %s = dist.reshard %d {dist.inserted_by = "dist-materialize"} : !terms -> !pieces
  %s0 = dist.reshard %h0 {dist.inserted_by = "dist-materialize"} : !w_terms -> !w_pieces
  %s1 = dist.reshard %h1 {dist.inserted_by = "dist-materialize"} : !w_terms -> !w_pieces
  %g = nn.gradient %s of @embed.table : (!pieces) -> !pieces
  %g0 = nn.gradient %s0 of @h.0.w : (!w_pieces) -> !w_pieces
  %g1 = nn.gradient %s1 of @h.1.w : (!w_pieces) -> !w_pieces
  return %y, %g, %g0, %g1 : !out, !pieces, !w_pieces, !w_pieces
}
}

// -----
!rows = tensor<8x4xbf16, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!half = tensor<4x4xbf16, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!half_terms = tensor<4x4xbf16, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!pieces = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// A weight is used where what is rounded of it is read. Two terms of one unit
// are one scatter, of their sum; what views and widens a term comes along.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @w : !w = dense<0.0>
// CHECK-LABEL: func.func @unit(
// CHECK: %[[A:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[A]]
// CHECK-NEXT: %[[WA:.*]] = nn.cast %[[T]]
// CHECK: %[[B:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK-NEXT: %[[WB:.*]] = nn.cast %[[B]]
// CHECK-NEXT: nn.tanh
// CHECK-NEXT: %[[D:.*]] = nn.add %[[WB]], %[[WA]] {kept}
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[D]] {dist.unit = "model"}
// CHECK-NEXT: nn.gradient %[[S]]
func.func @unit(%x: !rows {nn.input = "x"}, %w: !w {nn.state = @w}) -> (!rows {nn.output = "y"}, !pieces) attributes {nn.entry = #nn<entry step>} {
  %h = nn.cast %w : (!w) -> !half
  %y = nn.matmul %x, %h : (!rows, !half) -> !rows
  %a = nn.matmul %x, %y {transpose_lhs} : (!rows, !rows) -> !half_terms
  %b = nn.matmul %y, %x {transpose_lhs} : (!rows, !rows) -> !half_terms
  %other = nn.tanh %y : (!rows) -> !rows
  %wb = nn.cast %b : (!half_terms) -> !terms
  %t = nn.transpose %a [1, 0] : (!half_terms) -> !half_terms
  %wa = nn.cast %t : (!half_terms) -> !terms
  %d = nn.add %wb, %wa {kept} : (!terms, !terms) -> !terms
  %s = dist.reshard %d : !terms -> !pieces
  %g = nn.gradient %s of @w : (!pieces) -> !pieces
  return %other, %g : !rows, !pieces
}
}

// -----
!rows = tensor<8x4xf32, #dist.sharding<@mesh, [{mb, dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!number = tensor<f32, #dist.sharding<@mesh, []>>
!number_terms = tensor<f32, #dist.sharding<@mesh, [], partial = {mb, dp_shard}>>
!terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {mb, dp_shard}>>
!of_ranks = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}], partial = {mb}>>
!pieces = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// Ranks are summed behind the term, micro-batches where they were. What two
// weights share is scattered once; a sum that something else reads whole is a
// term as it is, and a number stays one.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
dist.mesh @mesh ["mb" = 2, "dp_shard" = 2]
nn.state accumulator @accumulator : !pieces = dense<0.0>
nn.state accumulator @other_accumulator : !pieces = dense<0.0>
nn.state @a.w : !w = dense<0.0>
nn.state @b.w : !w = dense<0.0>
nn.state @c.w : !w = dense<0.0>
nn.state @scale : !number = dense<0.0>
// CHECK-LABEL: func.func @shared(
// CHECK: %[[D:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK-NEXT: %[[R:.*]] = dist.reshard %[[D]] {dist.unit = "{{.*}}"} : {{.*}} -> tensor<4x4xf32, #dp_shard-all-sum_over_mb
// CHECK-NEXT: %[[E:.*]] = nn.add %[[D]], %[[D]]
// CHECK-NEXT: dist.reshard %[[E]] {dist.unit = "{{.*}}"} : {{.*}} -> tensor<4x4xf32, #dp_shard-all-sum_over_mb
// CHECK-NEXT: %[[N:.*]] = nn.reduce sum %[[E]]
// CHECK-NEXT: nn.tanh
// CHECK-NEXT: %[[M:.*]] = dist.accumulate sum %[[R]]
// CHECK-NEXT: dist.accumulate
// CHECK-NEXT: %[[NS:.*]] = dist.reshard %[[N]] : tensor<f32
// CHECK-NEXT: nn.gradient %[[M]] of @a.w
// CHECK-NEXT: nn.gradient %[[M]] of @b.w
// CHECK: nn.gradient %[[NS]] of @scale
func.func @shared(%x: !rows {nn.input = "x"}, %a: !w {nn.state = @a.w}, %b: !w {nn.state = @b.w}, %c: !w {nn.state = @c.w}, %scale: !number {nn.state = @scale})
    -> (!rows {nn.output = "y"}, !pieces, !pieces, !pieces, !number) attributes {nn.entry = #nn<entry step>} {
  %s = nn.add %a, %b : (!w, !w) -> !w
  %m = nn.matmul %s, %c : (!w, !w) -> !w
  %y = nn.matmul %x, %m : (!rows, !w) -> !rows
  %d = nn.matmul %x, %y {transpose_lhs} : (!rows, !rows) -> !terms
  %e = nn.add %d, %d : (!terms, !terms) -> !terms
  %n = nn.reduce sum %e dims [0, 1] : (!terms) -> !number_terms
  %other = nn.tanh %y : (!rows) -> !rows
  %r = dist.reshard %d : !terms -> !of_ranks
  %p = dist.accumulate sum %r in @accumulator : !of_ranks -> !pieces
  %er = dist.reshard %e : !terms -> !of_ranks
  %ep = dist.accumulate sum %er in @other_accumulator : !of_ranks -> !pieces
  %ns = dist.reshard %n : !number_terms -> !number
  %ga = nn.gradient %p of @a.w : (!pieces) -> !pieces
  %gb = nn.gradient %p of @b.w : (!pieces) -> !pieces
  %gc = nn.gradient %ep of @c.w : (!pieces) -> !pieces
  %gs = nn.gradient %ns of @scale : (!number) -> !number
  return %other, %ga, %gb, %gc, %gs : !rows, !pieces, !pieces, !pieces, !number
}
}

// -----
!rows = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!pieces = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// The sum stands among what is added to it in pieces. Without gradients, and
// without an entry, nothing moves.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @w : !w = dense<0.0>
// CHECK-LABEL: func.func @penalty(
// CHECK: %[[D:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[D]] {dist.unit = "model"}
// CHECK-NEXT: nn.tanh
// CHECK-NEXT: %[[P:.*]] = dist.reshard %arg1
// CHECK-NEXT: nn.add %[[P]], %[[S]]
func.func @penalty(%x: !rows {nn.input = "x"}, %w: !w {nn.state = @w}) -> (!rows {nn.output = "y"}, !pieces) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (!rows, !w) -> !rows
  %d = nn.matmul %x, %y {transpose_lhs} : (!rows, !rows) -> !terms
  %other = nn.tanh %y : (!rows) -> !rows
  %p = dist.reshard %w : !w -> !pieces
  %s = dist.reshard %d : !terms -> !pieces
  %a = nn.add %p, %s : (!pieces, !pieces) -> !pieces
  %g = nn.gradient %a of @w : (!pieces) -> !pieces
  return %other, %g : !rows, !pieces
}
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: dist.unit
func.func @forward(%x: !rows {nn.input = "x"}, %w: !w {nn.state = @w}) -> (!pieces {nn.output = "y"}) attributes {nn.entry} {
  %d = nn.matmul %x, %x {transpose_lhs} : (!rows, !rows) -> !terms
  %s = dist.reshard %d : !terms -> !pieces
  return %s : !pieces
}
// CHECK-LABEL: func.func private @part(
// CHECK-NOT: dist.unit
func.func private @part(%x: !rows, %w: !w) -> !pieces {
  %d = nn.matmul %x, %x {transpose_lhs} : (!rows, !rows) -> !terms
  %s = dist.reshard %d : !terms -> !pieces
  %g = nn.gradient %s of @w : (!pieces) -> !pieces
  return %g : !pieces
}
}

// -----
!rows = tensor<8x4xf32, #dist.sharding<@mesh, [{mb, dp_replicate, dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {mb, dp_replicate, dp_shard}>>
!of_both = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}], partial = {mb, dp_replicate}>>
!of_replicas = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}], partial = {dp_replicate}>>
!pieces = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// Replicas are summed behind the micro-batches, once: what is scattered stands in front of both.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
dist.mesh @mesh ["mb" = 2, "dp_replicate" = 2, "dp_shard" = 2]
nn.state @w : !w = dense<0.0>
nn.state accumulator @accumulator : !of_replicas = dense<0.0>
// CHECK-LABEL: func.func @replicas(
// CHECK: %[[D:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[D]] {dist.unit = "model"}
// CHECK-NEXT: nn.tanh
// CHECK-NEXT: %[[A:.*]] = dist.accumulate sum %[[S]]
// CHECK-NEXT: dist.reshard %[[A]] :
func.func @replicas(%x: !rows {nn.input = "x"}, %w: !w {nn.state = @w}) -> (!rows {nn.output = "y"}, !pieces) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (!rows, !w) -> !rows
  %d = nn.matmul %x, %y {transpose_lhs} : (!rows, !rows) -> !terms
  %other = nn.tanh %y : (!rows) -> !rows
  %s = dist.reshard %d : !terms -> !of_both
  %a = dist.accumulate sum %s in @accumulator : !of_both -> !of_replicas
  %p = dist.reshard %a : !of_replicas -> !pieces
  %g = nn.gradient %p of @w : (!pieces) -> !pieces
  return %other, %g : !rows, !pieces
}
}

// -----
!rows = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
!pieces = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>

// In stage 1 gradients are scattered once a step, where the update begins.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 1 : i64} {
dist.mesh @mesh ["dp_shard" = 2]
nn.state @w : !w = dense<0.0>
// CHECK-LABEL: func.func @once(
// CHECK: nn.tanh
// CHECK-NEXT: dist.reshard
// CHECK-NOT: dist.unit
func.func @once(%x: !rows {nn.input = "x"}, %w: !w {nn.state = @w}) -> (!rows {nn.output = "y"}, !pieces) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (!rows, !w) -> !rows
  %d = nn.matmul %x, %y {transpose_lhs} : (!rows, !rows) -> !terms
  %other = nn.tanh %y : (!rows) -> !rows
  %s = dist.reshard %d : !terms -> !pieces
  %g = nn.gradient %s of @w : (!pieces) -> !pieces
  return %other, %g : !rows, !pieces
}
}

// -----
!rows = tensor<8x4xf32, #dist.sharding<@mesh, [{mb}, {}]>>
!columns = tensor<8x4xf32, #dist.sharding<@mesh, [{mb}, {tp}]>>
!row_terms = tensor<8x4xf32, #dist.sharding<@mesh, [{mb}, {}], partial = {tp}>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>
!terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}], partial = {mb}>>

// A sum that a term is made of is none of the gradient's, though ranks have pieces of both.
module attributes {accel.decisions = {}, accel.phase = "decided", accel.zero_stage = 2 : i64} {
dist.mesh @mesh ["mb" = 2, "tp" = 2]
nn.state @w : !w = dense<0.0>
nn.state accumulator @accumulator : !w = dense<0.0>
// CHECK-LABEL: func.func @made(
// CHECK-NOT: dist.unit
func.func @made(%x: !rows {nn.input = "x"}, %w: !w {nn.state = @w}) -> (!columns {nn.output = "y"}, !w) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (!rows, !w) -> !columns
  %t = nn.matmul %y, %w {transpose_rhs} : (!columns, !w) -> !row_terms
  %s = dist.reshard %t : !row_terms -> !columns
  %d = nn.matmul %x, %s {transpose_lhs} : (!rows, !columns) -> !terms
  %a = dist.accumulate sum %d in @accumulator : !terms -> !w
  %g = nn.gradient %a of @w : (!w) -> !w
  return %y, %g : !columns, !w
}
}
