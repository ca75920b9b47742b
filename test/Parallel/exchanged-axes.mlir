// Groups' matrices may be on the ranks that split rows, whose rows go there; but not on those that
// split another dimension of the matrices: one tensor has an axis once.
// RUN: acc-opt %s --dist-propagate --dist-materialize -split-input-file | FileCheck %s

// CHECK: dist.reshard %arg0 {{.*}}tensor<8x16xf32, #all-tp> -> tensor<8x16xf32, #all-all>
// CHECK: nn.grouped_matmul {{.*}} (tensor<8x16xf32, #all-all>, tensor<2x16x8xf32, #tp-all-all>, tensor<8xi64, #all>) -> tensor<8x8xf32, #all-all>
dist.mesh @mesh ["tp" = 2]
func.func @inner(%x: tensor<8x16xf32>, %w: tensor<2x16x8xf32>, %g: tensor<8xi64>) -> tensor<8x8xf32> {
  %a = dist.constraint %x to <@mesh, [{}, {tp}]> : tensor<8x16xf32>
  %b = dist.constraint %w to <@mesh, [{tp}, {}, {}]> : tensor<2x16x8xf32>
  %y = nn.grouped_matmul %a, %b, %g : (tensor<8x16xf32>, tensor<2x16x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// CHECK: nn.grouped_matmul {{.*}} (tensor<8x16xf32, #ep-all>, tensor<2x16x8xf32, #ep-all-all>, tensor<8xi64, #ep>) -> tensor<8x8xf32, #ep-all>
dist.mesh @mesh ["ep" = 2]
func.func @rows(%x: tensor<8x16xf32>, %w: tensor<2x16x8xf32>, %g: tensor<8xi64>) -> tensor<8x8xf32> {
  %a = dist.constraint %x to <@mesh, [{ep}, {}]> : tensor<8x16xf32>
  %b = dist.constraint %w to <@mesh, [{ep}, {}, {}]> : tensor<2x16x8xf32>
  %y = nn.grouped_matmul %a, %b, %g : (tensor<8x16xf32>, tensor<2x16x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
