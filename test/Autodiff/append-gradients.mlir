// RUN: acc-opt %s --nn-append-gradients --canonicalize --cse --split-input-file | FileCheck %s
// RUN: acc-opt %s --nn-append-gradients --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// Every reader's part counts, and so does the value's own.
// CHECK-LABEL: func.func @several_readers
// CHECK-SAME: (%[[X:.*]]: tensor<f32>)
// CHECK: %[[E:.*]] = nn.exp %[[X]]
// CHECK: %[[T:.*]] = nn.mul %{{.*}}, %[[E]]
// CHECK: %[[S:.*]] = nn.add %{{.*}}, %{{.*}}
// CHECK: return %{{.*}}, %[[S]]
func.func @several_readers(%x: tensor<f32>) -> tensor<f32> {
  %e = nn.exp %x : tensor<f32>
  %y = nn.mul %e, %x : tensor<f32>
  return %y : tensor<f32>
}

// -----

// What stands on no way from an argument to the loss is not asked: nn.dropout
// has no rule, and integers no gradient.
// CHECK-LABEL: func.func @off_the_way
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2xi64>)
// CHECK-DAG: %[[ONE:.*]] = nn.constant dense<1.0{{.*}}> : tensor<2xf32>
// CHECK-DAG: %[[ZERO:.*]] = nn.constant dense<0.0{{.*}}> : tensor<2xf32>
// CHECK: return %{{.*}}, %[[ONE]], %[[ZERO]] : tensor<f32>, tensor<2xf32>, tensor<2xf32>
func.func @off_the_way(%x: tensor<2xf32>, %unused: tensor<2xf32>, %n: tensor<2xi64>) -> tensor<f32> {
  %c = nn.constant dense<1.0> : tensor<2xf32>
  %d = nn.dropout %c ratio 0.5 site 0 : tensor<2xf32>
  %e = nn.dropout %x ratio 0.5 site 1 : tensor<2xf32>
  %i = nn.cast %x : (tensor<2xf32>) -> tensor<2xi64>
  %f = nn.cast %i : (tensor<2xi64>) -> tensor<2xf32>
  %0 = nn.add %x, %d : tensor<2xf32>
  %1 = nn.add %0, %f : tensor<2xf32>
  %y = nn.reduce sum %1 dims [0] : (tensor<2xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// The parts of a whole, in whatever order: one concatenation, no zeros.
// CHECK-LABEL: func.func @tiles
// CHECK-NOT: nn.pad
// CHECK: %[[G:.*]] = nn.concat %[[A:.*]], %[[B:.*]], %[[C:.*]] dim 1 : (tensor<2x1xf32>, tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NOT: nn.pad
// CHECK: return %{{.*}}, %[[G]]
func.func @tiles(%x: tensor<2x6xf32>) -> tensor<f32> {
  %b = nn.slice %x starts [0, 1] sizes [2, 2] steps [1, 1] : (tensor<2x6xf32>) -> tensor<2x2xf32>
  %a = nn.slice %x starts [0, 0] sizes [2, 1] steps [1, 1] : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %c = nn.slice %x starts [0, 3] sizes [2, 3] steps [1, 1] : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %ae = nn.exp %a : tensor<2x1xf32>
  %bt = nn.tanh %b : tensor<2x2xf32>
  %as = nn.reduce sum %ae dims [0, 1] : (tensor<2x1xf32>) -> tensor<f32>
  %bs = nn.reduce sum %bt dims [0, 1] : (tensor<2x2xf32>) -> tensor<f32>
  %cq = nn.mul %c, %c : tensor<2x3xf32>
  %cs = nn.reduce sum %cq dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  %0 = nn.add %as, %bs : tensor<f32>
  %y = nn.add %0, %cs : tensor<f32>
  return %y : tensor<f32>
}

// -----

// So with a reader of the whole beside them.
// CHECK-LABEL: func.func @tiles_and_whole
// CHECK-NOT: nn.pad
// CHECK: %[[C:.*]] = nn.concat {{.*}} dim 0 : (tensor<2xf32>, tensor<4xf32>) -> tensor<6xf32>
// CHECK: nn.add %{{.*}}, %[[C]]
// CHECK-NOT: nn.pad
func.func @tiles_and_whole(%x: tensor<6xf32>) -> tensor<f32> {
  %a = nn.slice %x starts [0] sizes [2] steps [1] : (tensor<6xf32>) -> tensor<2xf32>
  %b = nn.slice %x starts [2] sizes [4] steps [1] : (tensor<6xf32>) -> tensor<4xf32>
  %e = nn.exp %x : tensor<6xf32>
  %as = nn.reduce prod %a dims [0] : (tensor<2xf32>) -> tensor<f32>
  %bs = nn.reduce max %b dims [0] : (tensor<4xf32>) -> tensor<f32>
  %es = nn.reduce sum %e dims [0] : (tensor<6xf32>) -> tensor<f32>
  %0 = nn.add %as, %bs : tensor<f32>
  %y = nn.add %0, %es : tensor<f32>
  return %y : tensor<f32>
}

// -----

// Parts that overlap, or leave something out, are padded and added.
// CHECK-LABEL: func.func @no_tiles
// CHECK: nn.pad
// CHECK: nn.pad
// CHECK: nn.add {{.*}} tensor<2x6xf32>
func.func @no_tiles(%x: tensor<2x6xf32>) -> tensor<f32> {
  %a = nn.slice %x starts [0, 0] sizes [2, 4] steps [1, 1] : (tensor<2x6xf32>) -> tensor<2x4xf32>
  %b = nn.slice %x starts [0, 2] sizes [2, 4] steps [1, 1] : (tensor<2x6xf32>) -> tensor<2x4xf32>
  %p = nn.mul %a, %b : tensor<2x4xf32>
  %y = nn.reduce sum %p dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// A weight's gradient is one product over all rows of the batch.
// CHECK-LABEL: func.func @shared_weight
// CHECK-SAME: (%[[X:.*]]: tensor<4x8x16xf32>, %[[W:.*]]: tensor<16x32xf32>)
// CHECK: nn.matmul %[[X]], %[[W]]
// CHECK-DAG: %[[ROWS:.*]] = nn.reshape %[[X]] : (tensor<4x8x16xf32>) -> tensor<32x16xf32>
// CHECK-DAG: nn.matmul %[[ROWS]], %{{.*}} {transpose_lhs} : (tensor<32x16xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
// CHECK-DAG: nn.matmul %{{.*}}, %[[W]] {transpose_rhs}
func.func @shared_weight(%x: tensor<4x8x16xf32>, %w: tensor<16x32xf32>) -> tensor<f32> {
  %m = nn.matmul %x, %w : (tensor<4x8x16xf32>, tensor<16x32xf32>) -> tensor<4x8x32xf32>
  %s = nn.mul %m, %m : tensor<4x8x32xf32>
  %y = nn.reduce sum %s dims [0, 1, 2] : (tensor<4x8x32xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// A cast's gradient is cast back.
// CHECK-LABEL: func.func @casts
// CHECK: nn.cast %{{.*}} : (tensor<2xbf16>) -> tensor<2xf32>
// CHECK: %[[E:.*]] = nn.exp
// CHECK: %[[B:.*]] = nn.cast %[[E]] : (tensor<2xf32>) -> tensor<2xbf16>
// CHECK: return %{{.*}}, %[[B]] : tensor<f32>, tensor<2xbf16>
func.func @casts(%x: tensor<2xbf16>) -> tensor<f32> {
  %f = nn.cast %x : (tensor<2xbf16>) -> tensor<2xf32>
  %e = nn.exp %f : tensor<2xf32>
  %y = nn.reduce sum %e dims [0] : (tensor<2xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// The forward node's name, marked, is what errors in its gradient say.
// LOC-LABEL: func.func @locations
// LOC: nn.tanh {{.*}} loc("tanh_7")
// LOC: nn.mul {{.*}} loc(fused["tanh_7", "gradient"])
func.func @locations(%x: tensor<f32>) -> tensor<f32> {
  %y = nn.tanh %x : tensor<f32> loc("tanh_7")
  return %y : tensor<f32>
}
