// Tensors without elements have no positions to follow: nothing splits them, and what is
// joined with them is followed all the same.
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t.decided.mlir
// RUN: acc-opt %t.decided.mlir --accel-run-phases="to=local" -o %t.local.mlir
// RUN: FileCheck %s < %t.local.mlir
// RUN: acc-opt %t.local.mlir --dist-verify-equivalence=logical=%t.decided.mlir -o /dev/null
// CHECK: nn.concat {{.*}} : (tensor<4x6xf64>, tensor<4x0xf64>) -> tensor<4x6xf64>
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<8x6xf64> {nn.input = "x"}, %e: tensor<0x8xf64> {nn.input = "e"}) -> (tensor<8x6xf64> {nn.output = "y"}) attributes {nn.entry} {
    %0 = dist.constraint %x to <@mesh, [{dp}, {}]> : tensor<8x6xf64>
    %1 = nn.reshape %e : (tensor<0x8xf64>) -> tensor<2x0x4xf64>
    %2 = nn.reshape %1 : (tensor<2x0x4xf64>) -> tensor<0x8xf64>
    %3 = nn.transpose %2 [1, 0] : (tensor<0x8xf64>) -> tensor<8x0xf64>
    %4 = nn.concat %0, %3 dim 1 : (tensor<8x6xf64>, tensor<8x0xf64>) -> tensor<8x6xf64>
    return %4 : tensor<8x6xf64>
  }
}
