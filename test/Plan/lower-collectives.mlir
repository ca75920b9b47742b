// RUN: acc-opt %s --split-input-file --local-lower-to-plan | FileCheck %s

// What a command of the task writes is written where the other ranks read it;
// an all_reduce is reduced where its terms are if nothing else reads them.
// CHECK-LABEL: plan.program @reduce
// CHECK-SAME: ranks 2 mesh @m
// CHECK-DAG: plan.buffer @[[PRODUCT:matmul]] : output shared
// CHECK: plan.collective all_reduce sum over dp (@[[PRODUCT]][{{.*}}) -> @[[PRODUCT]][
dist.mesh @m ["dp" = 2]
func.func @reduce(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<8x4xf32> {nn.input = "y"})
    -> (tensor<4x4xf32> {nn.output = "z"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %y : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = dist.all_reduce sum %0 over @m {dp} : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// Terms that are read again stay, and the sum is shared beside them.
// CHECK-LABEL: plan.program @reduce_and_keep
// CHECK-DAG: plan.buffer @[[TERM:matmul]] : output shared
// CHECK-DAG: plan.buffer @[[SUM:collective]] : output shared
// CHECK: plan.collective all_reduce {{[a-z]+}} over dp (@[[TERM]][{{.*}}) -> @[[SUM]][
dist.mesh @m ["dp" = 2]
func.func @reduce_and_keep(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<8x4xf32> {nn.input = "y"})
    -> (tensor<4x4xf32> {nn.output = "z"}, tensor<4x4xf32> {nn.output = "term"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %y : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = dist.all_reduce sum %0 over @m {dp} : tensor<4x4xf32>
  return %1, %0 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// An input stays where it is: what others read of it is a copy. The gathered
// tensor is the rank's own.
// CHECK-LABEL: plan.program @gather
// CHECK-DAG: plan.buffer @x : input device
// CHECK-DAG: plan.buffer @x.copy : communication shared
// CHECK-DAG: plan.buffer @collective : output device
// CHECK: plan.copy @x[{{.*}} -> @x.copy[
// CHECK: plan.collective all_gather over dp dim 1 (@x.copy[{{.*}}) -> @collective[
dist.mesh @m ["dp" = 2]
func.func @gather(%x: tensor<4x2xf32> {nn.input = "x"}) -> (tensor<4x4xf32> {nn.output = "z"}) attributes {nn.entry} {
  %0 = dist.all_gather %x over @m {dp} dim 1 : (tensor<4x2xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// A slice of one's own is a view at an address that depends on the rank: chunk
// i of 2 rows of 4 floats begins 32·i bytes into the buffer, i = 2·a + b.
// CHECK-LABEL: plan.program @slice
// CHECK: plan.gemm @x[2x4xf32 at b*32 + a*64]
dist.mesh @m ["a" = 2, "b" = 2]
func.func @slice(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<4x4xf32> {nn.input = "y"})
    -> (tensor<2x4xf32> {nn.output = "z"}) attributes {nn.entry} {
  %0 = dist.all_slice %x over @m {a, b} dim 0 : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = nn.matmul %0, %y : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: plan.program @coordinate
// CHECK: plan.coordinate dp -> @coordinate[i64]
dist.mesh @m ["dp" = 2]
func.func @coordinate() -> (tensor<i64> {nn.output = "z"}) attributes {nn.entry} {
  %0 = dist.axis_index @m {dp} : tensor<i64>
  return %0 : tensor<i64>
}
