// What exporters make of attention, and what it must not be taken for.
// RUN: acc-opt %s --nn-recognize-attention | FileCheck %s
// RUN: acc-opt %s --nn-recognize-attention --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// CHECK-LABEL: @plain(
// CHECK-SAME: %[[Q:.*]]: {{.*}}, %[[K:.*]]: {{.*}}, %[[V:.*]]: tensor
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = nn.attention %[[Q]], %[[K]], %[[V]] {scale = 5.000000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
// LOC-LABEL: @plain(
// LOC: nn.attention {{.*}} loc(fused["scores", "softmax", "product"])
func.func @plain(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32> loc("scores")
  %h = nn.constant dense<0.5> : tensor<2x2x3x3xf32>
  %t = nn.mul %s, %h : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32> loc("softmax")
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> loc("product")
  return %y : tensor<2x2x3x4xf32>
}

// Scales on both sides and as a quotient multiply up.
// CHECK-LABEL: @scales(
// CHECK: nn.attention {{.*}} {scale = 1.250000e-01 : f64}
func.func @scales(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %hq = nn.constant dense<0.5> : tensor<2x2x3x4xf32>
  %two = nn.constant dense<2.0> : tensor<2x2x3x3xf32>
  %q1 = nn.mul %q, %hq : tensor<2x2x3x4xf32>
  %k1 = nn.mul %hq, %k : tensor<2x2x3x4xf32>
  %s = nn.matmul %q1, %k1 {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %t = nn.div %s, %two : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// A key that comes transposed.
// CHECK-LABEL: @transposed_key(
// CHECK: %[[K:.*]] = nn.transpose %{{.*}} [0, 1, 3, 2]
// CHECK-NEXT: nn.attention %{{.*}}, %[[K]], %{{.*}} {scale = 1.000000e+00 : f64}
func.func @transposed_key(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x4x3xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k : (tensor<2x2x3x4xf32>, tensor<2x2x4x3xf32>) -> tensor<2x2x3x3xf32>
  %p = nn.softmax %s dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// The most negative number where the triangle is false: no row is masked
// altogether, so it is causal.
// CHECK-LABEL: @causal_select(
// CHECK-NOT: mask
// CHECK: nn.attention {{.*}} {causal, scale = 5.000000e-01 : f64}
func.func @causal_select(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %h = nn.constant dense<0.5> : tensor<2x2x3x3xf32>
  %t = nn.mul %s, %h : tensor<2x2x3x3xf32>
  %c = nn.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %m = nn.constant dense<-3.40282347E+38> : tensor<2x2x3x3xf32>
  %u = nn.select %cw, %t, %m : tensor<2x2x3x3xf32>
  %p = nn.softmax %u dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// The same triangle as numbers to add, made wide over the batch.
// CHECK-LABEL: @causal_add(
// CHECK: nn.attention {{.*}} {causal, scale = 1.000000e+00 : f64}
func.func @causal_add(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %c = nn.constant dense<[[[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xf32>) -> tensor<2x2x3x3xf32>
  %t = nn.add %cw, %s : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// A triangle that begins further on: queries behind two keys, and before the last.
// CHECK-LABEL: @wide_triangle(
// CHECK: nn.attention {{.*}} {causal, row_offset = 1 : i64, scale = 1.000000e+00 : f64}
func.func @wide_triangle(%q: tensor<2x2x2x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>) -> tensor<2x2x2x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x2x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x2x4xf32>
  %c = nn.constant dense<[[[[0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000]]]]> : tensor<1x1x2x4xf32>
  %cw = nn.broadcast %c : (tensor<1x1x2x4xf32>) -> tensor<2x2x2x4xf32>
  %t = nn.add %cw, %s : tensor<2x2x2x4xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x2x4xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x2x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x2x4xf32>
  return %y : tensor<2x2x2x4xf32>
}

// A known mask that is no triangle, open in every row, is a mask of i1 without
// the dimensions it repeats itself along.
// CHECK-LABEL: @known_mask(
// CHECK: %[[M:.*]] = nn.constant dense<{{.*}}true, true, false{{.*}}> : tensor<1x1x1x3xi1>
// CHECK-NEXT: nn.attention {{.*}} mask %[[M]] {scale = 1.000000e+00 : f64}
func.func @known_mask(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %c = nn.constant dense<[[[[0.0, 0.0, -1.0e30], [0.0, 0.0, -1.0e30], [0.0, 0.0, -1.0e30]]]]> : tensor<1x1x3x3xf32>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xf32>) -> tensor<2x2x3x3xf32>
  %t = nn.add %s, %cw : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// A row is masked altogether: with a finite number its weights are uniform, so
// the mask stays one of numbers.
// CHECK-LABEL: @masked_row(
// CHECK: %[[M:.*]] = nn.constant {{.*}} : tensor<1x1x3x3xf32>
// CHECK-NEXT: nn.attention {{.*}} mask %[[M]] {scale
func.func @masked_row(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %c = nn.constant dense<[[[[-1.0e30, -1.0e30, -1.0e30], [0.0, 0.0, -1.0e30], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xf32>) -> tensor<2x2x3x3xf32>
  %t = nn.add %s, %cw : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// Numbers to add that are neither 0 nor far down, as ALiBi's, stay numbers.
// CHECK-LABEL: @bias(
// CHECK: nn.attention {{.*}} mask %{{.*}} {{.*}}tensor<1x1x3x3xf32>) ->
func.func @bias(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %c = nn.constant dense<[[[[0.0, -1.0, -2.0], [1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xf32>) -> tensor<2x2x3x3xf32>
  %t = nn.add %s, %cw : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// GPT-2 with padding: the triangle is selected, the padding of the run added.
// Both add up to one mask, and the triangle stays narrow.
// CHECK-LABEL: @causal_and_padding(
// CHECK-SAME: %[[PAD:[a-z0-9]+]]: tensor<2x1x1x3xf32>
// CHECK: %[[TRIANGLE:.*]] = nn.constant {{.*}} : tensor<1x1x3x3xf32>
// CHECK: %[[A:.*]] = nn.broadcast %[[TRIANGLE]] : (tensor<1x1x3x3xf32>) -> tensor<2x1x3x3xf32>
// CHECK: %[[B:.*]] = nn.broadcast %[[PAD]] : (tensor<2x1x1x3xf32>) -> tensor<2x1x3x3xf32>
// CHECK: %[[M:.*]] = nn.add %[[A]], %[[B]]
// CHECK: nn.attention {{.*}} mask %[[M]] {scale
func.func @causal_and_padding(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %pad: tensor<2x1x1x3xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %c = nn.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %m = nn.constant dense<-3.40282347E+38> : tensor<2x2x3x3xf32>
  %u = nn.select %cw, %s, %m : tensor<2x2x3x3xf32>
  %padw = nn.broadcast %pad : (tensor<2x1x1x3xf32>) -> tensor<2x2x3x3xf32>
  %t = nn.add %u, %padw : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// -inf where a condition of the run does not hold: the condition is the mask, and
// weights that are not numbers become zero.
// CHECK-LABEL: @condition(
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<2x1x3x3xi1>
// CHECK: nn.attention {{.*}} mask %[[C]] {scale = 1.000000e+00 : f64, zero_masked_rows}
func.func @condition(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %c: tensor<2x1x3x3xi1>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %cw = nn.broadcast %c : (tensor<2x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %m = nn.constant dense<0xFF800000> : tensor<2x2x3x3xf32>
  %u = nn.select %cw, %s, %m : tensor<2x2x3x3xf32>
  %w = nn.softmax %u dim 3 : tensor<2x2x3x3xf32>
  %n = nn.is_nan %w : tensor<2x2x3x3xf32>
  %z = nn.constant dense<0.0> : tensor<2x2x3x3xf32>
  %p = nn.select %n, %z, %w : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// The condition says what to hide.
// CHECK-LABEL: @hidden(
// CHECK: %[[M:.*]] = nn.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x1x3x3xf32>
// CHECK-NEXT: nn.attention {{.*}} mask %[[M]] {scale
func.func @hidden(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %c: tensor<2x1x3x3xi1>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %cw = nn.broadcast %c : (tensor<2x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %m = nn.constant dense<0xFF800000> : tensor<2x2x3x3xf32>
  %u = nn.select %cw, %m, %s : tensor<2x2x3x3xf32>
  %p = nn.softmax %u dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// Batch and heads in one dimension, apart only for the mask.
// CHECK-LABEL: @rank_3(
// CHECK-DAG: %[[Q:.*]] = nn.reshape %{{.*}} : (tensor<4x3x4xf32>) -> tensor<2x2x3x4xf32>
// CHECK: %[[Y:.*]], %{{.*}} = nn.attention {{.*}} mask %{{.*}}tensor<2x1x1x3xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
// CHECK-NEXT: nn.reshape %[[Y]] : (tensor<2x2x3x4xf32>) -> tensor<4x3x4xf32>
func.func @rank_3(%q: tensor<4x3x4xf32>, %k: tensor<4x3x4xf32>, %v: tensor<4x3x4xf32>, %m: tensor<2x1x1x3xf32>) -> tensor<4x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> tensor<4x3x3xf32>
  %a = nn.reshape %s : (tensor<4x3x3xf32>) -> tensor<2x2x3x3xf32>
  %mw = nn.broadcast %m : (tensor<2x1x1x3xf32>) -> tensor<2x2x3x3xf32>
  %b = nn.add %a, %mw : tensor<2x2x3x3xf32>
  %c = nn.reshape %b : (tensor<2x2x3x3xf32>) -> tensor<4x3x3xf32>
  %p = nn.softmax %c dim 2 : tensor<4x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<4x3x3xf32>, tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  return %y : tensor<4x3x4xf32>
}

// A number that a score would not vanish beside: its weight is not 0.
// CHECK-LABEL: @not_far_down(
// CHECK-NOT: nn.attention
// CHECK: return
func.func @not_far_down(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %c: tensor<2x1x3x3xi1>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %cw = nn.broadcast %c : (tensor<2x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %m = nn.constant dense<-1.0e4> : tensor<2x2x3x3xf32>
  %u = nn.select %cw, %s, %m : tensor<2x2x3x3xf32>
  %p = nn.softmax %u dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// The mask is added before the scale, and would be scaled as well.
// CHECK-LABEL: @mask_before_scale(
// CHECK-NOT: nn.attention
// CHECK: return
func.func @mask_before_scale(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %m: tensor<2x2x3x3xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %u = nn.add %s, %m : tensor<2x2x3x3xf32>
  %h = nn.constant dense<0.5> : tensor<2x2x3x3xf32>
  %t = nn.mul %u, %h : tensor<2x2x3x3xf32>
  %p = nn.softmax %t dim 3 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// Softmax over the queries.
// CHECK-LABEL: @softmax_of_columns(
// CHECK-NOT: nn.attention
// CHECK: return
func.func @softmax_of_columns(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %p = nn.softmax %s dim 2 : tensor<2x2x3x3xf32>
  %y = nn.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// A known mask of attention that was whole in the file.
// CHECK-LABEL: @whole(
// CHECK-NOT: mask
// CHECK: nn.attention {{.*}} {causal, scale
func.func @whole(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %c = nn.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %cw = nn.broadcast %c : (tensor<1x1x3x3xi1>) -> tensor<2x1x3x3xi1>
  %y:2 = nn.attention %q, %k, %v mask %cw {scale = 1.0 : f64} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x1x3x3xi1>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3xf32>)
  return %y#0 : tensor<2x2x3x4xf32>
}

// The importer's own zeros and the exporter's: one behind the other.
// CHECK-LABEL: @zeroed_twice(
// CHECK-NOT: nn.is_nan
// CHECK: nn.attention %
func.func @zeroed_twice(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %p = nn.softmax %s dim 3 : tensor<2x2x3x3xf32>
  %zero = nn.constant dense<0.0> : tensor<2x2x3x3xf32>
  %n = nn.is_nan %p : tensor<2x2x3x3xf32>
  %once = nn.select %n, %zero, %p : tensor<2x2x3x3xf32>
  %m = nn.is_nan %once : tensor<2x2x3x3xf32>
  %twice = nn.select %m, %zero, %once : tensor<2x2x3x3xf32>
  %y = nn.matmul %twice, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}
