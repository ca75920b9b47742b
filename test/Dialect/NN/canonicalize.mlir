// What canonicalization makes of nn, group by group, and what it leaves alone.
// RUN: acc-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @neutral(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @neutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = nn.constant dense<0.0> : tensor<2xf32>
  %one = nn.constant dense<1.0> : tensor<2xf32>
  %0 = nn.add %x, %zero : tensor<2xf32>
  %1 = nn.add %zero, %x : tensor<2xf32>
  %2 = nn.sub %x, %zero : tensor<2xf32>
  %3 = nn.mul %x, %one : tensor<2xf32>
  %4 = nn.mul %one, %x : tensor<2xf32>
  %5 = nn.div %x, %one : tensor<2xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @not_neutral(
// CHECK: nn.sub
// CHECK: nn.div
// CHECK: nn.add
func.func @not_neutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = nn.constant dense<0.0> : tensor<2xf32>
  %one = nn.constant dense<1.0> : tensor<2xf32>
  %some = nn.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %0 = nn.sub %zero, %x : tensor<2xf32>
  %1 = nn.div %one, %x : tensor<2xf32>
  %2 = nn.add %x, %some : tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @select(
// CHECK-SAME: %[[C:.*]]: tensor<2xi1>, %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>
// CHECK-NEXT: %[[KEPT:.*]] = nn.select
// CHECK-NEXT: return %[[X]], %[[Y]], %[[X]], %[[KEPT]]
func.func @select(%c: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %true = nn.constant dense<true> : tensor<2xi1>
  %false = nn.constant dense<false> : tensor<2xi1>
  %0 = nn.select %true, %x, %y : tensor<2xf32>
  %1 = nn.select %false, %x, %y : tensor<2xf32>
  %2 = nn.select %c, %x, %x : tensor<2xf32>
  %3 = nn.select %c, %x, %y : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @powers(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
// CHECK: %[[FOUR:.*]] = nn.constant dense<4.0{{.*}}> : tensor<2xf32>
// CHECK-NEXT: %[[SQUARE:.*]] = nn.mul %[[X]], %[[X]]
// CHECK-NEXT: %[[AGAIN:.*]] = nn.mul %[[X]], %[[X]]
// CHECK-NEXT: %[[CUBE:.*]] = nn.mul %[[AGAIN]], %[[X]]
// CHECK-NEXT: %[[ROOT:.*]] = nn.sqrt %[[X]]
// CHECK-NEXT: %[[FOURTH:.*]] = nn.pow %[[X]], %[[FOUR]]
// CHECK-NEXT: return %[[X]], %[[SQUARE]], %[[CUBE]], %[[ROOT]], %[[FOURTH]]
func.func @powers(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %one = nn.constant dense<1.0> : tensor<2xf32>
  %two = nn.constant dense<2.0> : tensor<2xf32>
  %three = nn.constant dense<3.0> : tensor<2xf32>
  %half = nn.constant dense<0.5> : tensor<2xf32>
  %four = nn.constant dense<4.0> : tensor<2xf32>
  %0 = nn.pow %x, %one : tensor<2xf32>
  %1 = nn.pow %x, %two : tensor<2xf32>
  %2 = nn.pow %x, %three : tensor<2xf32>
  %3 = nn.pow %x, %half : tensor<2xf32>
  %4 = nn.pow %x, %four : tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @cast(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
// CHECK-NEXT: return %[[X]]
func.func @cast(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.cast %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @reshapes(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK-NEXT: %[[FLAT:.*]] = nn.reshape %[[X]] : (tensor<2x3xf32>) -> tensor<6x1xf32>
// CHECK-NEXT: return %[[X]], %[[FLAT]]
func.func @reshapes(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<6x1xf32>) {
  %0 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = nn.reshape %0 : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = nn.reshape %0 : (tensor<6xf32>) -> tensor<6x1xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<6x1xf32>
}

// CHECK-LABEL: @transposes(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
// CHECK-NEXT: %[[ONCE:.*]] = nn.transpose %[[X]] [1, 0, 2]
// CHECK-NEXT: return %[[X]], %[[ONCE]]
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<3x2x4xf32>) {
  %0 = nn.transpose %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = nn.transpose %0 [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %2 = nn.transpose %0 [2, 1, 0] : (tensor<4x2x3xf32>) -> tensor<3x2x4xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<3x2x4xf32>
}

// The last two dimensions are swapped behind a merge of batch and heads.
// CHECK-LABEL: @batched_transpose(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4x5xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[X]] [0, 1, 3, 2]
// CHECK-NEXT: return %[[T]]
func.func @batched_transpose(%x: tensor<2x3x4x5xf32>) -> tensor<2x3x5x4xf32> {
  %0 = nn.reshape %x : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %1 = nn.transpose %0 [0, 2, 1] : (tensor<6x4x5xf32>) -> tensor<6x5x4xf32>
  %2 = nn.reshape %1 : (tensor<6x5x4xf32>) -> tensor<2x3x5x4xf32>
  return %2 : tensor<2x3x5x4xf32>
}

// Here the batch dimension moves, or is split otherwise than it was merged.
// CHECK-LABEL: @other_batched_transposes(
// CHECK-COUNT-2: nn.reshape
// CHECK: nn.reshape
// CHECK: nn.reshape
func.func @other_batched_transposes(%x: tensor<2x3x4x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<3x2x4x4xf32>) {
  %0 = nn.reshape %x : (tensor<2x3x4x4xf32>) -> tensor<6x4x4xf32>
  %1 = nn.transpose %0 [1, 0, 2] : (tensor<6x4x4xf32>) -> tensor<4x6x4xf32>
  %2 = nn.reshape %1 : (tensor<4x6x4xf32>) -> tensor<8x3x4xf32>
  %3 = nn.slice %2 starts [0, 0, 0] sizes [4, 3, 4] steps [1, 1, 1] : (tensor<8x3x4xf32>) -> tensor<4x3x4xf32>
  %4 = nn.reshape %3 : (tensor<4x3x4xf32>) -> tensor<2x2x3x4xf32>
  %5 = nn.transpose %0 [0, 2, 1] : (tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %6 = nn.reshape %5 : (tensor<6x4x4xf32>) -> tensor<3x2x4x4xf32>
  return %4, %6 : tensor<2x2x3x4xf32>, tensor<3x2x4x4xf32>
}

// CHECK-LABEL: @broadcasts(
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>
// CHECK: %[[SPLAT:.*]] = nn.constant dense<2.0{{.*}}> : tensor<4x3xf32>
// CHECK-NEXT: %[[WIDE:.*]] = nn.broadcast %[[X]] : (tensor<3xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: return %[[X]], %[[WIDE]], %[[SPLAT]]
func.func @broadcasts(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<2x4x3xf32>, tensor<4x3xf32>) {
  %0 = nn.broadcast %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = nn.broadcast %x : (tensor<3xf32>) -> tensor<4x3xf32>
  %2 = nn.broadcast %1 : (tensor<4x3xf32>) -> tensor<2x4x3xf32>
  %3 = nn.constant dense<2.0> : tensor<f32>
  %4 = nn.broadcast %3 : (tensor<f32>) -> tensor<4x3xf32>
  return %0, %2, %4 : tensor<3xf32>, tensor<2x4x3xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: @slices(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[BACK:.*]] = nn.slice %[[X]] starts [3] sizes [4] steps [-1]
// CHECK-NEXT: return %[[X]], %[[BACK]]
func.func @slices(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.slice %x starts [0] sizes [4] steps [1] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.slice %x starts [3] sizes [4] steps [-1] : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Every n-th of one element is that one.
// CHECK-LABEL: @slice_of_one(
// CHECK-SAME: %[[X:.*]]: tensor<1x4xf32>
// CHECK-NEXT: return %[[X]]
func.func @slice_of_one(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = nn.slice %x starts [0, 0] sizes [1, 4] steps [2, 1] : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// CHECK-LABEL: @concat(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[X]]
func.func @concat(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.concat %x dim 0 : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @concat_with_nothing(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2xf32>, %[[NONE:.*]]: tensor<0xf32>
// CHECK: %[[NOTHING:.*]] = nn.constant dense<> : tensor<0xf32>
// CHECK: %[[BOTH:.*]] = nn.concat %[[X]], %[[Y]] dim 0
// CHECK: return %[[X]], %[[BOTH]], %[[NOTHING]]
func.func @concat_with_nothing(%x: tensor<4xf32>, %y: tensor<2xf32>, %none: tensor<0xf32>) -> (tensor<4xf32>, tensor<6xf32>, tensor<0xf32>) {
  %0 = nn.concat %none, %x, %none dim 0 : (tensor<0xf32>, tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
  %1 = nn.concat %x, %none, %y dim 0 : (tensor<4xf32>, tensor<0xf32>, tensor<2xf32>) -> tensor<6xf32>
  %2 = nn.concat %none, %none dim 0 : (tensor<0xf32>, tensor<0xf32>) -> tensor<0xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<6xf32>, tensor<0xf32>
}

// CHECK-LABEL: @matmul_takes_transposes(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[W:.*]]: tensor<6x8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[X]], %[[W]] {transpose_lhs, transpose_rhs}
// CHECK-NEXT: return %[[Y]]
func.func @matmul_takes_transposes(%x: tensor<8x4xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %0 = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = nn.transpose %w [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %2 = nn.matmul %0, %1 : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// CHECK-LABEL: @matmul_flag_and_transpose_cancel(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x6xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[X]], %[[W]] : (tensor<4x8xf32>, tensor<8x6xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @matmul_flag_and_transpose_cancel(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.transpose %w [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = nn.matmul %x, %0 {transpose_rhs} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: @matmul_leaves_batch_transposes(
// CHECK-NEXT: nn.transpose
// CHECK-NEXT: nn.matmul
func.func @matmul_leaves_batch_transposes(%x: tensor<4x2x8xf32>, %y: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  %0 = nn.transpose %x [1, 0, 2] : (tensor<4x2x8xf32>) -> tensor<2x4x8xf32>
  %1 = nn.matmul %0, %y : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  return %1 : tensor<2x4x6xf32>
}

// A lookup of one place that is known is a slice of the table.
// CHECK-LABEL: @one_place(
// CHECK-SAME: %[[X:.*]]: tensor<6x4x8xf32>
// CHECK: %[[A:.*]] = nn.slice %[[X]] starts [0, 3, 0] sizes [6, 1, 8] steps [1, 1, 1]
// CHECK: %[[B:.*]] = nn.reshape %[[A]] : (tensor<6x1x8xf32>) -> tensor<6x8xf32>
// CHECK: %[[C:.*]] = nn.slice %[[X]] starts [4, 0, 0] sizes [1, 4, 8] steps [1, 1, 1]
// CHECK: %[[D:.*]] = nn.slice %[[X]] starts [5, 2, 0] sizes [1, 1, 8] steps [1, 1, 1]
// CHECK: %[[E:.*]] = nn.reshape %[[D]] : (tensor<1x1x8xf32>) -> tensor<8xf32>
// CHECK: return %[[B]], %[[C]], %[[E]]
func.func @one_place(%x: tensor<6x4x8xf32>) -> (tensor<6x8xf32>, tensor<1x4x8xf32>, tensor<8xf32>) {
  %three = nn.constant dense<3> : tensor<i64>
  %last = nn.constant dense<-2> : tensor<1x1xi64>
  %pair = nn.constant dense<[-1, 2]> : tensor<2xi64>
  %0 = nn.gather %x, %three dim 1 : (tensor<6x4x8xf32>, tensor<i64>) -> tensor<6x8xf32>
  %1 = nn.gather_nd %x, %last : (tensor<6x4x8xf32>, tensor<1x1xi64>) -> tensor<1x4x8xf32>
  %2 = nn.gather_nd %x, %pair : (tensor<6x4x8xf32>, tensor<2xi64>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<6x8xf32>, tensor<1x4x8xf32>, tensor<8xf32>
}

// What is in no place stops the run; an embedding may leave its padding untrained; batches have
// indices of their own; several places are no slice.
// CHECK-LABEL: @not_one_place(
// CHECK-COUNT-2: nn.gather %
// CHECK-COUNT-2: nn.gather_nd %
// CHECK: nn.gather %
// CHECK-NOT: nn.slice
func.func @not_one_place(%x: tensor<6x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<1x4xf32>, tensor<2x4xf32>) {
  %beyond = nn.constant dense<6> : tensor<i64>
  %one = nn.constant dense<1> : tensor<i64>
  %deep = nn.constant dense<-7> : tensor<1x1xi64>
  %batch = nn.constant dense<1> : tensor<6x1xi64>
  %two = nn.constant dense<[1, 3]> : tensor<2xi64>
  %0 = nn.gather %x, %beyond dim 0 : (tensor<6x4xf32>, tensor<i64>) -> tensor<4xf32>
  %1 = nn.gather %x, %one dim 0 padding 1 : (tensor<6x4xf32>, tensor<i64>) -> tensor<4xf32>
  %2 = nn.gather_nd %x, %deep : (tensor<6x4xf32>, tensor<1x1xi64>) -> tensor<1x4xf32>
  %3 = nn.gather_nd %x, %batch {batch_dims = 1 : i64} : (tensor<6x4xf32>, tensor<6x1xi64>) -> tensor<6xf32>
  %4 = nn.gather %x, %two dim 0 : (tensor<6x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %0, %1, %3, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<1x4xf32>, tensor<2x4xf32>
}
