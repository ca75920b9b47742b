// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp_replicate=2,dp_shard=2,cp=2,sp=2" --dist-pad-states --dist-shard-states=stage=1 | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp_replicate=2,dp_shard=2,cp=2,sp=2" --dist-pad-states --dist-shard-states=stage=3 | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp_replicate=2,cp=2" --dist-pad-states --dist-shard-states=stage=3 | FileCheck %s --check-prefix=ALONE
// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp_shard=2,cp=2,tp=2" --dist-place-named="stage=3 shard=w=1:tp shard=b=0:cp shard=v=1:tp" --dist-shard-states=stage=3 | FileCheck %s --check-prefix=NAMED

// Ranks of cp and sp share states with those of dp_shard, along one dimension, which all of them
// together divide; those of dp_replicate do not. Padding is by all of them. Where a user has placed an
// axis the others follow; where tp has left no dimension that all divide, each goes where it can.

nn.state @w : tensor<12x8xf32> = dense<0.0>
nn.state moment @m : tensor<12x8xf32> = dense<0.0>
nn.state @b : tensor<4xf32> = dense<0.0>
nn.state moment @v : tensor<6x4xf32> = dense<0.0>

// ONE: nn.state @b : tensor<8xf32> logical [4]
// ALONE: nn.state @b : tensor<4xf32> =
// CHECK-LABEL: func.func @step
// ALONE-LABEL: func.func @step
// NAMED-LABEL: func.func @step
func.func @step(%x: tensor<4x12xf32> {nn.input = "x"}, %w: tensor<12x8xf32> {nn.state = @w},
                %m: tensor<12x8xf32> {nn.state = @m}, %b: tensor<4xf32> {nn.state = @b}, %v: tensor<6x4xf32> {nn.state = @v})
    -> (tensor<4x8xf32> {nn.output = "y"}, tensor<12x8xf32> {nn.state = @w}, tensor<12x8xf32> {nn.state = @m},
        tensor<4xf32> {nn.state = @b}, tensor<6x4xf32> {nn.state = @v}) attributes {nn.entry = #nn<entry step>} {
  // ONE: dist.constraint %arg1 to #all-all
  // THREE: %[[PIECES:.*]] = dist.constraint %arg1 to #all-dp_shard_cp_sp
  // THREE: dist.constraint %[[PIECES]] to #all-all
  // CHECK: dist.constraint %arg2 to #all-dp_shard_cp_sp
  // CHECK: nn.gradient {{.*}} of @w
  // CHECK: dist.constraint {{.*}} to #all-dp_shard_cp_sp
  // CHECK: nn.gradient {{.*}} of @b : tensor<8xf32>
  // CHECK: dist.constraint {{.*}} to #dp_shard_cp_sp
  // ALONE: %[[PIECES:.*]] = dist.constraint %arg1 to #cp-all
  // ALONE: dist.constraint %[[PIECES]] to #all-all
  // NAMED: %[[PIECES:.*]] = dist.constraint %arg1 to #dp_shard_cp-tp
  // NAMED: dist.constraint %[[PIECES]] to #all-tp
  // NAMED: dist.constraint %arg3 to #cp_dp_shard
  // NAMED: dist.constraint %arg4 to #dp_shard-tp_cp
  %y = nn.matmul %x, %w : (tensor<4x12xf32>, tensor<12x8xf32>) -> tensor<4x8xf32>
  %t = nn.transpose %x [1, 0] : (tensor<4x12xf32>) -> tensor<12x4xf32>
  %dw = nn.matmul %t, %y : (tensor<12x4xf32>, tensor<4x8xf32>) -> tensor<12x8xf32>
  %s = nn.reduce sum %y dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %db = nn.mul %s, %b : tensor<4xf32>
  %g = nn.gradient %dw of @w : tensor<12x8xf32>
  %gb = nn.gradient %db of @b : tensor<4xf32>
  %m1 = nn.add %m, %g : tensor<12x8xf32>
  %w1 = nn.sub %w, %m1 : tensor<12x8xf32>
  %b1 = nn.sub %b, %gb : tensor<4xf32>
  %v1 = nn.neg %v : tensor<6x4xf32>
  return %y, %w1, %m1, %b1, %v1 : tensor<4x8xf32>, tensor<12x8xf32>, tensor<12x8xf32>, tensor<4xf32>, tensor<6x4xf32>
}
