// Rows of micro-batches and of parts of sequences keep one order behind other dimensions, however
// they got there: the micro-batch stays in front of the part (2, 2, 2, 3), not behind it.
// RUN: acc-opt %s --dist-lead-with-batch -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: acc-eval %t.mlir --compare %s --tolerance 1e-14

// CHECK: nn.reshape %{{.*}} -> tensor<2x2x2x3x8xf64>
// CHECK: nn.transpose %{{.*}} [0, 2, 1, 3, 4]
// CHECK-NOT: nn.transpose
// CHECK: nn.mul %{{.*}} : tensor<5x24x8xf64>
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["mb" = 2, "cp" = 2]
  func.func @main(%x: tensor<4x6x8xf64> {nn.input = "x"}) -> (tensor<5x8xf64> {nn.output = "y"}) attributes {nn.entry} {
    %placed = dist.constraint %x to <@mesh, [{mb}, {cp}, {}]> : tensor<4x6x8xf64>
    %rows = nn.reshape %placed : (tensor<4x6x8xf64>) -> tensor<24x8xf64>
    %line = nn.reduce sum %rows dims [1] : (tensor<24x8xf64>) -> tensor<24xf64>
    %one = nn.reshape %rows : (tensor<24x8xf64>) -> tensor<1x24x8xf64>
    %each = nn.broadcast %one : (tensor<1x24x8xf64>) -> tensor<5x24x8xf64>
    %groups = nn.broadcast %line : (tensor<24xf64>) -> tensor<5x24xf64>
    %weight = nn.reshape %groups : (tensor<5x24xf64>) -> tensor<5x24x1xf64>
    %wide = nn.broadcast %weight : (tensor<5x24x1xf64>) -> tensor<5x24x8xf64>
    %product = nn.mul %each, %wide : tensor<5x24x8xf64>
    %y = nn.reduce sum %product dims [1] : (tensor<5x24x8xf64>) -> tensor<5x8xf64>
    return %y : tensor<5x8xf64>
  }
}
