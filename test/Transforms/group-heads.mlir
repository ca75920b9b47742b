// What exporters make of key heads that several query heads share, and what is
// no such repetition.
// RUN: acc-opt %s --nn-group-heads --canonicalize --cse | FileCheck %s

// transformers' repeat_kv: each head three times, one after another. Who else
// reads the repeated value keeps it.
// CHECK-LABEL: @repeat_kv(
// CHECK-SAME: %[[Q:.*]]: {{.*}}, %[[K:.*]]: {{.*}}, %[[V:.*]]: tensor
// CHECK: %[[WIDE:.*]] = nn.reshape {{.*}} -> tensor<2x6x3x4xf32>
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = nn.attention %[[Q]], %[[K]], %[[V]] {causal, scale = 5.000000e-01 : f64} : (tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>)
// CHECK-NEXT: return %[[Y]], %[[WIDE]]
func.func @repeat_kv(%q: tensor<2x6x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> (tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) {
  %0 = nn.reshape %k : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
  %1 = nn.broadcast %0 : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x3x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x2x3x3x4xf32>) -> tensor<2x6x3x4xf32>
  %3 = nn.reshape %v : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
  %4 = nn.broadcast %3 : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x3x3x4xf32>
  %5 = nn.reshape %4 : (tensor<2x2x3x3x4xf32>) -> tensor<2x6x3x4xf32>
  %y, %l = nn.attention %q, %2, %5 {causal, scale = 0.5} : (tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) -> (tensor<2x6x3x4xf32>, tensor<2x6x3xf32>)
  return %y, %5 : tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>
}

// A key that is turned after it was repeated (rotary embedding: a product, and
// halves that change places), and a value repeated before heads lead.
// CHECK-LABEL: @rotary_between(
// CHECK-SAME: %{{.*}}: tensor<2x4x3x4xf32>, %[[K:.*]]: tensor<2x2x3x4xf32>, %[[V:.*]]: tensor<2x3x2x4xf32>, %[[COS:.*]]: tensor
// CHECK-DAG: %[[C:.*]] = nn.broadcast %[[COS]] : (tensor<3x4xf32>) -> tensor<2x2x3x4xf32>
// CHECK-DAG: %[[LOW:.*]] = nn.slice %[[K]] starts [0, 0, 0, 0] sizes [2, 2, 3, 2]
// CHECK-DAG: %[[HIGH:.*]] = nn.slice %[[K]] starts [0, 0, 0, 2] sizes [2, 2, 3, 2]
// CHECK-DAG: %[[NEG:.*]] = nn.neg %[[HIGH]] : tensor<2x2x3x2xf32>
// CHECK-DAG: %[[TURNED:.*]] = nn.concat %[[NEG]], %[[LOW]] dim 3
// CHECK-DAG: %[[P:.*]] = nn.mul %[[K]], %[[C]]
// CHECK-DAG: %[[KEY:.*]] = nn.add %[[P]], %[[TURNED]] : tensor<2x2x3x4xf32>
// CHECK-DAG: %[[VALUE:.*]] = nn.transpose %[[V]] [0, 2, 1, 3] : (tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
// CHECK: nn.attention %{{.*}}, %[[KEY]], %[[VALUE]] {
func.func @rotary_between(%q: tensor<2x4x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x3x2x4xf32>, %cos: tensor<3x4xf32>) -> tensor<2x4x3x4xf32> {
  %0 = nn.reshape %k : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
  %1 = nn.broadcast %0 : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x2x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %c = nn.broadcast %cos : (tensor<3x4xf32>) -> tensor<2x4x3x4xf32>
  %3 = nn.mul %2, %c : tensor<2x4x3x4xf32>
  %4 = nn.slice %2 starts [0, 0, 0, 0] sizes [2, 4, 3, 2] steps [1, 1, 1, 1] : (tensor<2x4x3x4xf32>) -> tensor<2x4x3x2xf32>
  %5 = nn.slice %2 starts [0, 0, 0, 2] sizes [2, 4, 3, 2] steps [1, 1, 1, 1] : (tensor<2x4x3x4xf32>) -> tensor<2x4x3x2xf32>
  %6 = nn.neg %5 : tensor<2x4x3x2xf32>
  %7 = nn.concat %6, %4 dim 3 : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x4xf32>
  %8 = nn.add %3, %7 : tensor<2x4x3x4xf32>
  %9 = nn.reshape %v : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x1x4xf32>
  %10 = nn.broadcast %9 : (tensor<2x3x2x1x4xf32>) -> tensor<2x3x2x2x4xf32>
  %11 = nn.reshape %10 : (tensor<2x3x2x2x4xf32>) -> tensor<2x3x4x4xf32>
  %12 = nn.transpose %11 [0, 2, 1, 3] : (tensor<2x3x4x4xf32>) -> tensor<2x4x3x4xf32>
  %y, %l = nn.attention %q, %8, %12 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x4xf32>
}

// Batch and heads merged on the way, as exporters do to transpose a key; then
// one transpose undoes the other.
// CHECK-LABEL: @merged_with_batch(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x4xf32>, %[[K:.*]]: tensor<2x2x3x4xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[K]] {
func.func @merged_with_batch(%q: tensor<2x4x3x4xf32>, %k: tensor<2x2x3x4xf32>) -> tensor<2x4x3x4xf32> {
  %0 = nn.reshape %k : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
  %1 = nn.broadcast %0 : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x2x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x2x2x3x4xf32>) -> tensor<8x3x4xf32>
  %3 = nn.transpose %2 [0, 2, 1] : (tensor<8x3x4xf32>) -> tensor<8x4x3xf32>
  %4 = nn.reshape %3 : (tensor<8x4x3xf32>) -> tensor<2x4x4x3xf32>
  %5 = nn.transpose %4 [0, 1, 3, 2] : (tensor<2x4x4x3xf32>) -> tensor<2x4x3x4xf32>
  %6 = nn.reshape %1 : (tensor<2x2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %y, %l = nn.attention %q, %5, %6 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x4xf32>
}

// One key head for all (multi-query attention), repeated at once; and heads put
// together from repeated ones.
// CHECK-LABEL: @one_head_and_pieces(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x4xf32>, %[[A:.*]]: tensor<2x1x3x4xf32>, %[[B:.*]]: tensor<2x1x3x4xf32>
// CHECK-DAG: %[[HEADS:.*]] = nn.concat %[[A]], %[[B]] dim 1
// CHECK-DAG: nn.attention %[[Q]], %[[A]], %[[B]] {
// CHECK-DAG: nn.attention %[[Q]], %[[HEADS]], %[[HEADS]] {
func.func @one_head_and_pieces(%q: tensor<2x4x3x4xf32>, %a: tensor<2x1x3x4xf32>, %b: tensor<2x1x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) {
  %0 = nn.broadcast %a : (tensor<2x1x3x4xf32>) -> tensor<2x4x3x4xf32>
  %1 = nn.broadcast %b : (tensor<2x1x3x4xf32>) -> tensor<2x4x3x4xf32>
  %y, %l = nn.attention %q, %0, %1 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  %2 = nn.broadcast %a : (tensor<2x1x3x4xf32>) -> tensor<2x2x3x4xf32>
  %3 = nn.broadcast %b : (tensor<2x1x3x4xf32>) -> tensor<2x2x3x4xf32>
  %4 = nn.concat %2, %3 dim 1 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %z, %m = nn.attention %q, %4, %4 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  return %y, %z : tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>
}

// Four of a key's, two of a value's: what both repeat, twice, goes.
// CHECK-LABEL: @unequal(
// CHECK-SAME: %[[Q:.*]]: {{.*}}, %[[K:.*]]: tensor<2x1x3x4xf32>, %[[V:.*]]: tensor
// CHECK: %[[TWICE:.*]] = nn.broadcast %[[K]] : (tensor<2x1x3x4xf32>) -> tensor<2x2x3x4xf32>
// CHECK: nn.attention %[[Q]], %[[TWICE]], %[[V]] {
func.func @unequal(%q: tensor<2x4x3x4xf32>, %k: tensor<2x1x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x4x3x4xf32> {
  %0 = nn.broadcast %k : (tensor<2x1x3x4xf32>) -> tensor<2x4x3x4xf32>
  %1 = nn.reshape %v : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
  %2 = nn.broadcast %1 : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x2x3x4xf32>
  %3 = nn.reshape %2 : (tensor<2x2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %y, %l = nn.attention %q, %0, %3 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x4xf32>
}

// The heads as a list repeated (tile): neighbours differ. The same of a list
// put beside itself.
// CHECK-LABEL: @tiled(
// CHECK-COUNT-2: nn.attention {{.*}} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>)
func.func @tiled(%q: tensor<2x4x3x4xf32>, %k: tensor<2x2x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) {
  %0 = nn.reshape %k : (tensor<2x2x3x4xf32>) -> tensor<2x1x2x3x4xf32>
  %1 = nn.broadcast %0 : (tensor<2x1x2x3x4xf32>) -> tensor<2x2x2x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %3 = nn.concat %k, %k dim 1 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %y, %l = nn.attention %q, %2, %2 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  %z, %m = nn.attention %q, %3, %3 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  return %y, %z : tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>
}

// The value is not repeated; the key is, but only some of its heads are taken;
// each head gets a factor of its own; and heads that are split elsewhere than
// they were repeated.
// CHECK-LABEL: @not_repeated(
// CHECK-COUNT-4: nn.attention {{.*}} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>)
func.func @not_repeated(%q: tensor<2x4x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x4x3x4xf32>, %three: tensor<2x3x3x4xf32>, %flat: tensor<2x3x8xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) {
  %0 = nn.reshape %k : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
  %1 = nn.broadcast %0 : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x2x3x4xf32>
  %2 = nn.reshape %1 : (tensor<2x2x2x3x4xf32>) -> tensor<2x4x3x4xf32>
  %a, %l0 = nn.attention %q, %2, %v {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  %3 = nn.reshape %three : (tensor<2x3x3x4xf32>) -> tensor<2x3x1x3x4xf32>
  %4 = nn.broadcast %3 : (tensor<2x3x1x3x4xf32>) -> tensor<2x3x2x3x4xf32>
  %5 = nn.reshape %4 : (tensor<2x3x2x3x4xf32>) -> tensor<2x6x3x4xf32>
  %6 = nn.slice %5 starts [0, 1, 0, 0] sizes [2, 4, 3, 4] steps [1, 1, 1, 1] : (tensor<2x6x3x4xf32>) -> tensor<2x4x3x4xf32>
  %b, %l1 = nn.attention %q, %6, %6 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  %slopes = nn.constant dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]> : tensor<4x1x1xf32>
  %7 = nn.broadcast %slopes : (tensor<4x1x1xf32>) -> tensor<2x4x3x4xf32>
  %8 = nn.mul %2, %7 : tensor<2x4x3x4xf32>
  %c, %l2 = nn.attention %q, %8, %8 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  %9 = nn.reshape %flat : (tensor<2x3x8xf32>) -> tensor<2x3x8x1xf32>
  %10 = nn.broadcast %9 : (tensor<2x3x8x1xf32>) -> tensor<2x3x8x2xf32>
  %11 = nn.reshape %10 : (tensor<2x3x8x2xf32>) -> tensor<2x3x4x4xf32>
  %12 = nn.transpose %11 [0, 2, 1, 3] : (tensor<2x3x4x4xf32>) -> tensor<2x4x3x4xf32>
  %d, %l3 = nn.attention %q, %12, %12 {scale = 0.5} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3xf32>)
  return %a, %b, %c, %d : tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>
}
