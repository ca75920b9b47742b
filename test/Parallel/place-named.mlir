// RUN: acc-opt %s --dist-annotate="mesh=dp_shard=2,tp=2,cp=2" --dist-place-named="stage=3 shard=up=1:tp,l?okup=1:dp_shard,ids=1:cp" | FileCheck %s
// RUN: acc-opt %s --dist-annotate="mesh=dp_shard=2,tp=2" --dist-place-named="stage=3 shard=table.weight=0:tp,table.weight=0:dp_shard" | FileCheck %s --check-prefix=BOTH
// RUN: acc-opt %s --dist-annotate="mesh=dp_shard=2,tp=2" --dist-place-named="stage=3 shard=up=0:tp" --dist-split-weights --dist-shard-states=stage=3 | FileCheck %s --check-prefix=AFTER
// RUN: acc-opt %s --dist-annotate="mesh=dp_shard=2" --dist-place-named="stage=3 shard=table*=1:dp_shard" --dist-shard-states=stage=3 | FileCheck %s --check-prefix=THREE
// RUN: acc-opt %s --dist-annotate="mesh=dp_shard=2" --dist-place-named="stage=1 shard=table*=1:dp_shard" --dist-shard-states=stage=1 | FileCheck %s --check-prefix=ONE

// A state and its moment by the state's name, or by another that it has; an input behind its batch.
// CHECK-DAG: dist.constraint %arg0 to #dp_shard-cp
// CHECK-DAG: dist.constraint %arg1 to #all-dp_shard
// CHECK-DAG: dist.constraint %arg2 to #all-dp_shard
// CHECK-DAG: dist.constraint %arg3 to #all-tp

// Several axes of one dimension come in the order in which they are said.
// BOTH-DAG: dist.constraint %arg1 to #tp_dp_shard-all
// BOTH-DAG: dist.constraint %arg2 to #tp_dp_shard-all

// Tensor parallelism keeps what is placed, though it would have chosen otherwise, and ZeRO goes behind it.
// AFTER: dist.constraint %arg3 to #tp_dp_shard-all

// In stage 3 the pieces are along the dimension that was said, for the update; others read the whole. In stage 1
// they are only the moments'.
// THREE: %[[PIECES:.*]] = dist.constraint %arg1 to #all-dp_shard
// THREE: %[[WHOLE:.*]] = dist.constraint %[[PIECES]] to #all-all
// THREE: dist.constraint %arg2 to #all-dp_shard
// THREE: nn.gather %[[WHOLE]]
// ONE: dist.constraint %arg1 to #all-all
// ONE: dist.constraint %arg2 to #all-dp_shard
module {
nn.state @table.weight : tensor<16x8xf32> = dense<0.5> {aliases = ["lookup"]}
nn.state moment @"exp_avg/table.weight" : tensor<16x8xf32> = dense<0.0>
nn.state @up : tensor<8x32xf32> = dense<0.5>
func.func @step(%ids: tensor<4x6xi64> {nn.input = "ids"}, %table: tensor<16x8xf32> {nn.state = @table.weight}, %moment: tensor<16x8xf32> {nn.state = @"exp_avg/table.weight"}, %up: tensor<8x32xf32> {nn.state = @up}) -> (tensor<4x6x32xf32> {nn.output = "y"}, tensor<16x8xf32> {nn.state = @table.weight}, tensor<16x8xf32> {nn.state = @"exp_avg/table.weight"}) attributes {nn.entry} {
  %x = nn.gather %table, %ids dim 0 : (tensor<16x8xf32>, tensor<4x6xi64>) -> tensor<4x6x8xf32>
  %y = nn.matmul %x, %up : (tensor<4x6x8xf32>, tensor<8x32xf32>) -> tensor<4x6x32xf32>
  %u = nn.gelu erf %up : tensor<8x32xf32>
  %d = nn.gelu erf %table : tensor<16x8xf32>
  %g = nn.gradient %d of @table.weight : tensor<16x8xf32>
  %e = nn.gradient %u of @up : tensor<8x32xf32>
  %m = nn.add %moment, %g : tensor<16x8xf32>
  %n = nn.sub %table, %m : tensor<16x8xf32>
  return %y, %n, %m : tensor<4x6x32xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}
}
