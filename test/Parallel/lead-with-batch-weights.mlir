// What a weight is split over is no part of the batch: rows of parts of sequences lead at once.
// RUN: acc-opt %s --dist-lead-with-batch | FileCheck %s

// CHECK: %[[ROWS:.*]] = nn.reshape %{{.*}} : (tensor<4x6x8xf64>) -> tensor<1x4x2x3x8xf64>
// CHECK: nn.transpose %[[ROWS]] [0, 2, 1, 3, 4]
// CHECK: nn.matmul
module {
  dist.mesh @mesh ["cp" = 2, "tp" = 2]
  func.func @main(%x: tensor<4x6x8xf64> {nn.input = "x"}, %w: tensor<8x8xf64> {nn.input = "w"}) -> (tensor<4x6x8xf64> {nn.output = "y"}) attributes {nn.entry} {
    %0 = dist.constraint %x to <@mesh, [{}, {cp}, {}]> : tensor<4x6x8xf64>
    %1 = dist.constraint %w to <@mesh, [{tp}, {}]> : tensor<8x8xf64>
    %2 = nn.reshape %0 : (tensor<4x6x8xf64>) -> tensor<24x8xf64>
    %3 = nn.matmul %2, %1 : (tensor<24x8xf64>, tensor<8x8xf64>) -> tensor<24x8xf64>
    %4 = nn.reshape %3 : (tensor<24x8xf64>) -> tensor<4x6x8xf64>
    return %4 : tensor<4x6x8xf64>
  }
}
