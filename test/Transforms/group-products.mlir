// RUN: acc-opt %s --split-input-file --nn-group-products --canonicalize | FileCheck %s

// Rows as columns behind their matrices, as torch.bmm(weight[index], x[:, :, None])
// is exported. What is chosen is never negative.
// CHECK-LABEL: @columns(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x16xf32>, %[[W:[^:]*]]: tensor<4x32x16xf32>, %[[S:[^:]*]]: tensor<4x4xf32>
func.func @columns(%x: tensor<8x16xf32>, %w: tensor<4x32x16xf32>, %s: tensor<4x4xf32>) -> tensor<8x32x1xf32> {
  // CHECK: %[[T:.*]] = nn.top_k %[[S]] k 2
  // CHECK: %[[G:.*]] = nn.reshape %[[T]] : (tensor<4x2xi64>) -> tensor<8xi64>
  // CHECK: %[[Y:.*]] = nn.grouped_matmul %[[X]], %[[W]], %[[G]] {transpose_rhs} : (tensor<8x16xf32>, tensor<4x32x16xf32>, tensor<8xi64>) -> tensor<8x32xf32>
  // CHECK: nn.reshape %[[Y]] : (tensor<8x32xf32>) -> tensor<8x32x1xf32>
  %t = nn.top_k %s k 2 : (tensor<4x4xf32>) -> tensor<4x2xi64>
  %i = nn.reshape %t : (tensor<4x2xi64>) -> tensor<8x1xi64>
  %m = nn.gather_nd %w, %i : (tensor<4x32x16xf32>, tensor<8x1xi64>) -> tensor<8x32x16xf32>
  %c = nn.reshape %x : (tensor<8x16xf32>) -> tensor<8x16x1xf32>
  %y = nn.matmul %m, %c : (tensor<8x32x16xf32>, tensor<8x16x1xf32>) -> tensor<8x32x1xf32>
  return %y : tensor<8x32x1xf32>
}

// -----

// Rows before their matrices, in two dimensions; an index from the end counts from the begin
// after it, and one outside stays outside: -5 is no group of 4, and not none.
// CHECK-LABEL: @rows(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x1x16xf32>, %[[W:[^:]*]]: tensor<4x16x32xf32>, %[[I:[^:]*]]: tensor<2x4xi32>
func.func @rows(%x: tensor<2x4x1x16xf32>, %w: tensor<4x16x32xf32>, %i: tensor<2x4xi32>) -> tensor<2x4x1x32xf32> {
  // CHECK-DAG: %[[FOUR:.*]] = nn.constant dense<4>
  // CHECK-DAG: %[[LEAST:.*]] = nn.constant dense<-4>
  // CHECK-DAG: %[[ZERO:.*]] = nn.constant dense<0>
  // CHECK-DAG: %[[ROWS:.*]] = nn.reshape %[[X]] : (tensor<2x4x1x16xf32>) -> tensor<8x16xf32>
  // CHECK-DAG: %[[C:.*]] = nn.cast %[[I]]
  // CHECK-DAG: %[[R:.*]] = nn.reshape %[[C]] : (tensor<2x4xi64>) -> tensor<8xi64>
  // CHECK-DAG: %[[LT:.*]] = nn.compare lt %[[R]], %[[ZERO]]
  // CHECK-DAG: %[[GE:.*]] = nn.compare ge %[[R]], %[[LEAST]]
  // CHECK: %[[AND:.*]] = nn.and
  // CHECK: %[[ADD:.*]] = nn.add %[[R]], %[[FOUR]]
  // CHECK: %[[G:.*]] = nn.select %[[AND]], %[[ADD]], %[[R]]
  // CHECK: nn.grouped_matmul %[[ROWS]], %[[W]], %[[G]] : (tensor<8x16xf32>, tensor<4x16x32xf32>, tensor<8xi64>) -> tensor<8x32xf32>
  %m = nn.gather %w, %i dim 0 : (tensor<4x16x32xf32>, tensor<2x4xi32>) -> tensor<2x4x16x32xf32>
  %y = nn.matmul %x, %m : (tensor<2x4x1x16xf32>, tensor<2x4x16x32xf32>) -> tensor<2x4x1x32xf32>
  return %y : tensor<2x4x1x32xf32>
}

// -----

// Transposed once between, and once by the product.
// CHECK-LABEL: @transposed(
func.func @transposed(%x: tensor<8x1x16xf32>, %w: tensor<4x16x32xf32>, %i: tensor<8x1xi64>) -> tensor<8x1x32xf32> {
  // CHECK: nn.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x16xf32>, tensor<4x16x32xf32>, tensor<8xi64>)
  %m = nn.gather_nd %w, %i : (tensor<4x16x32xf32>, tensor<8x1xi64>) -> tensor<8x16x32xf32>
  %t = nn.transpose %m [0, 2, 1] : (tensor<8x16x32xf32>) -> tensor<8x32x16xf32>
  %y = nn.matmul %x, %t {transpose_rhs} : (tensor<8x1x16xf32>, tensor<8x32x16xf32>) -> tensor<8x1x32xf32>
  return %y : tensor<8x1x32xf32>
}

// -----

// Two rows for each index are no grouped product of rows, nor is a look-up of vectors.
// CHECK-LABEL: @others(
// CHECK-NOT: grouped
func.func @others(%x: tensor<8x2x16xf32>, %w: tensor<4x16x32xf32>, %i: tensor<8x1xi64>,
                  %table: tensor<4x16xf32>, %v: tensor<8x16x1xf32>) -> (tensor<8x2x32xf32>, tensor<8x1x1xf32>) {
  %m = nn.gather_nd %w, %i : (tensor<4x16x32xf32>, tensor<8x1xi64>) -> tensor<8x16x32xf32>
  %y = nn.matmul %x, %m : (tensor<8x2x16xf32>, tensor<8x16x32xf32>) -> tensor<8x2x32xf32>
  %p = nn.gather %table, %i dim 0 : (tensor<4x16xf32>, tensor<8x1xi64>) -> tensor<8x1x16xf32>
  %z = nn.matmul %p, %v : (tensor<8x1x16xf32>, tensor<8x16x1xf32>) -> tensor<8x1x1xf32>
  return %y, %z : tensor<8x2x32xf32>, tensor<8x1x1xf32>
}
