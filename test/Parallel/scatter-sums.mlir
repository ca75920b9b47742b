// Sequence parallelism: a sum over `tp` becomes rows of it on each rank; what works on
// rows goes on with them, and products with split weights gather them again, once.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/step.mlir --dist-scatter-sums="enabled=true" | FileCheck %s
// RUN: acc-opt %t/step.mlir --dist-scatter-sums | FileCheck %s --check-prefix=OFF
// RUN: acc-opt %t/step.mlir --dist-scatter-sums="enabled=true" --dist-materialize --dist-verify --dist-plan-reshards --dist-localize | FileCheck %s --check-prefix=LOCAL
// RUN: not acc-opt %t/alone.mlir --dist-scatter-sums="enabled=true" 2>&1 | FileCheck %s --check-prefix=ALONE

// The first sum is of rows of the batch; a number and a single row stay whole.
// CHECK-LABEL: @main
// CHECK-COUNT-2: nn.matmul
// CHECK-NEXT: %[[ROWS:.*]] = dist.constraint %{{.*}} to #tp_any-any-any :
// CHECK: nn.add %{{.*}}, %[[ROWS]]
// CHECK-COUNT-1: dist.constraint
// CHECK-NOT: dist.constraint
// OFF-COUNT-3: dist.constraint
// OFF-NOT: dist.constraint

// LOCAL-LABEL: @main
// LOCAL: %[[SUM:.*]] = dist.reduce_scatter sum %{{.*}} {tp} dim 0 {{.*}}: (tensor<4x6x8xf32>) -> tensor<2x6x8xf32>
// LOCAL: nn.tanh {{.*}} : tensor<2x6x8xf32>
// LOCAL: dist.all_gather {{.*}} {tp} dim 0 {{.*}}: (tensor<2x6x8xf32>) -> tensor<4x6x8xf32>
// LOCAL-NOT: dist.all_gather
// A row of terms that several products make is one sum.
// LOCAL: nn.add {{.*}} : tensor<4x6x8xf32>
// LOCAL: dist.reduce_scatter sum
// LOCAL-NOT: dist.reduce_scatter

// ALONE: error: expected an axis 'tp' of several ranks on the mesh with 'sequence_parallelism': they share rows

//--- step.mlir
dist.mesh @mesh ["tp" = 2]
nn.state @up : tensor<8x16xf32> = dense<1.0>
nn.state @down : tensor<16x8xf32> = dense<1.0>
func.func @main(%x: tensor<4x6x8xf32> {nn.input = "x"}, %v: tensor<1x16xf32> {nn.input = "v"}, %a0: tensor<8x16xf32> {nn.state = @up}, %a1: tensor<16x8xf32> {nn.state = @down}) -> (tensor<4x6x8xf32>, tensor<1x8xf32>) attributes {nn.entry} {
  %i = dist.constraint %x to <@mesh, [{}, {}, {}]> : tensor<4x6x8xf32>
  %up = dist.constraint %a0 to <@mesh, [{}, {tp}]> : tensor<8x16xf32>
  %down = dist.constraint %a1 to <@mesh, [{tp}, {}]> : tensor<16x8xf32>
  %h = nn.matmul %i, %up : (tensor<4x6x8xf32>, tensor<8x16xf32>) -> tensor<4x6x16xf32>
  %y = nn.matmul %h, %down : (tensor<4x6x16xf32>, tensor<16x8xf32>) -> tensor<4x6x8xf32>
  %z = nn.add %i, %y : tensor<4x6x8xf32>
  %t = nn.tanh %z : tensor<4x6x8xf32>
  %h1 = nn.matmul %t, %up : (tensor<4x6x8xf32>, tensor<8x16xf32>) -> tensor<4x6x16xf32>
  %h2 = nn.exp %h1 : tensor<4x6x16xf32>
  %y1 = nn.matmul %h1, %down : (tensor<4x6x16xf32>, tensor<16x8xf32>) -> tensor<4x6x8xf32>
  %y2 = nn.matmul %h2, %down : (tensor<4x6x16xf32>, tensor<16x8xf32>) -> tensor<4x6x8xf32>
  %both = nn.add %y1, %y2 : tensor<4x6x8xf32>
  %out = nn.add %z, %both : tensor<4x6x8xf32>
  %row = nn.matmul %v, %down : (tensor<1x16xf32>, tensor<16x8xf32>) -> tensor<1x8xf32>
  %e = nn.exp %row : tensor<1x8xf32>
  return %out, %e : tensor<4x6x8xf32>, tensor<1x8xf32>
}

//--- alone.mlir
dist.mesh @mesh ["dp_replicate" = 2]
func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> tensor<4xf32> attributes {nn.entry} {
  return %x : tensor<4xf32>
}
