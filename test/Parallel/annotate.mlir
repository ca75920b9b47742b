// RUN: acc-opt %s --dist-annotate="mesh=tp=2,dp=4,dp_shard=1 batch-dim=past=1 batch-dim=table=none" | FileCheck %s
// RUN: acc-opt %s --dist-annotate="batch-dim=past=1" | FileCheck %s --check-prefix=ONE
// RUN: not acc-opt %s --dist-annotate="mesh=dp=3" 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: not acc-opt %s --dist-annotate="mesh=dp=2,xp=2" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not acc-opt %s --dist-annotate="mesh=dp=two" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not acc-opt %s --dist-annotate="mesh=dp=2,dp_replicate=2" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not acc-opt %s --dist-annotate="mesh=dp=4 batch-dim=past=4" 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: acc-opt %s --dist-annotate="mesh=dp=2 micro-batches=2 batch-dim=past=1 batch-dim=table=none" | FileCheck %s --check-prefix=MICRO
// RUN: not acc-opt %s --dist-annotate="mesh=dp=2 micro-batches=3 batch-dim=past=1 batch-dim=table=none" 2>&1 | FileCheck %s --check-prefix=THIRDS
// RUN: not acc-opt %s --dist-annotate="micro-batches=0" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not acc-opt %s --dist-annotate="batch-dim=pest=1" 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: acc-opt %s --dist-annotate="mesh=dp=2 batch-dim=table=none" | not acc-opt --dist-annotate 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: acc-opt %s --dist-annotate="mesh=dp=2 batch-dim=table=none" | sed 's/, accel.established = \["dist-annotate"\]//' | not acc-opt --dist-annotate="mesh=dp=4" 2>&1 | FileCheck %s --check-prefix=OTHER

// RUN: acc-opt %s --dist-annotate="mesh=dp=8 dp-axis=dp_shard secondary=4 batch-dim=past=1 batch-dim=table=none" | FileCheck %s --check-prefix=GROUPS
// RUN: acc-opt %s --dist-annotate="mesh=dp=4,cp=2 dp-axis=dp_shard secondary=4 batch-dim=past=1 batch-dim=table=none" | FileCheck %s --check-prefix=POSITIONS
// RUN: acc-opt %s --dist-annotate="mesh=dp=8 dp-axis=dp_shard secondary=8 batch-dim=past=1 batch-dim=table=none" | FileCheck %s --check-prefix=ONEGROUP
// RUN: not acc-opt %s --dist-annotate="mesh=dp=8 dp-axis=dp_shard secondary=3" 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: not acc-opt %s --dist-annotate="mesh=dp=2,cp=4 dp-axis=dp_shard secondary=2" 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: not acc-opt %s --dist-annotate="mesh=dp_groups=2,dp_shard=2" 2>&1 | FileCheck %s --check-prefix=OWN

// DIVIDE: error: input 'ids': dimension 0 of size 8 cannot be split over a mesh of 3
// AXIS: error: expected a mesh axis (dp_replicate, dp_shard, cp, sp, tp, ep, pp, or dp for dp_replicate), found 'xp'
// SIZE: error: expected a size of at least 1 for mesh axis 'dp', found 'two'
// TWICE: error: expected mesh axis 'dp_replicate' once, found it twice
// DIM: error: expected 'none' or a dimension in [0, 3) as batch dimension of input 'past', found '4'
// INPUT: error: no input named 'pest', for which 'pest=1' gives the batch dimension
// MICRO: dist.mesh @mesh ["mb" = 2, "dp_replicate" = 2]
// MICRO: dist.constraint {{.*}} to #mb_dp_replicate-any
// THIRDS: error: input 'ids': dimension 0 of size 8 cannot be split over a mesh of 2 and into 3 micro-batches
// NONE: error: expected at least one micro-batch, found 0
// GROUPS: dist.mesh @mesh ["dp_groups" = 2, "dp_shard" = 4]
// GROUPS: dist.constraint {{.*}} to #dp_groups_dp_shard-any
// POSITIONS: dist.mesh @mesh ["dp_groups" = 2, "dp_shard" = 2, "cp" = 2]
// ONEGROUP: dist.mesh @mesh ["dp_shard" = 8]
// UNEVEN: error: expected groups that keep a second copy of the parameters to divide the 8 ranks that share states, found groups of 3
// CUT: error: expected groups that keep a second copy of the parameters to divide the 8 ranks that share states, and whole groups of the 4 that share sequences in each, found groups of 2
// OWN: error: expected a mesh axis (dp_replicate, dp_shard, cp, sp, tp, ep, pp, or dp for dp_replicate), found 'dp_groups'
// AGAIN: error: dist-annotate has run: what it establishes (the mesh, and what splits the batch) is there: run it once
// OTHER: error: the module has a mesh already, found 'dp=4' for another

// The executable learns where samples are.
// CHECK: accel.batch_dims = {past = 1 : i64, table = -1 : i64}
// Axes stand in the order in which ranks are numbered, whatever the option's.
// CHECK: dist.mesh @mesh ["dp_replicate" = 4, "dp_shard" = 1, "tp" = 2]
// ONE: dist.mesh @mesh []
nn.state @w : tensor<16x8xf32> = dense<1.0>

// The batch of every input is split, axes of size 1 aside; states are whole.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[IDS:.*]]: tensor<8x6xi64>
// CHECK-SAME: %[[PAST:.*]]: tensor<2x8x4xf32>
// CHECK-SAME: %[[TABLE:.*]]: tensor<3x4xf32>
// CHECK-SAME: %[[RATE:.*]]: tensor<f32>
// CHECK-SAME: %[[W:.*]]: tensor<16x8xf32>
// CHECK-NEXT: %[[C0:.*]] = dist.constraint %[[IDS]] to #dp_replicate-any : tensor<8x6xi64>
// CHECK-NEXT: %[[C1:.*]] = dist.constraint %[[PAST]] to #any-dp_replicate-any
// CHECK-NEXT: %[[C2:.*]] = dist.constraint %[[TABLE]] to #any-any
// CHECK-NEXT: %[[C3:.*]] = dist.constraint %[[RATE]] to #scalar
// CHECK-NEXT: %[[C4:.*]] = dist.constraint %[[W]] to #all-all
// CHECK-NOT: dist.constraint
// CHECK: return %[[C0]], %[[C1]], %[[C2]], %[[C3]], %[[C4]]
// ONE: dist.constraint %{{.*}} to #all-any : tensor<8x6xi64>
func.func @main(%ids: tensor<8x6xi64> {nn.input = "ids"}, %past: tensor<2x8x4xf32> {nn.input = "past"},
                %table: tensor<3x4xf32> {nn.input = "table"}, %rate: tensor<f32> {nn.input = "rate"},
                %w: tensor<16x8xf32> {nn.state = @w})
    -> (tensor<8x6xi64>, tensor<2x8x4xf32>, tensor<3x4xf32>, tensor<f32>, tensor<16x8xf32>) attributes {nn.entry} {
  return %ids, %past, %table, %rate, %w : tensor<8x6xi64>, tensor<2x8x4xf32>, tensor<3x4xf32>, tensor<f32>, tensor<16x8xf32>
}
