// What is a view of a micro-batch's value is given by the task that has this value, in
// each micro-batch, and not by the update, which sees the last one alone.
// RUN: acc-opt %s --accel-run-phases="to=decided micro-batches=2" -o %t.decided.mlir
// RUN: acc-opt %t.decided.mlir --accel-run-phases="to=local" -o %t.local.mlir
// RUN: FileCheck %s < %t.local.mlir
// RUN: acc-opt %t.local.mlir --dist-verify-equivalence=logical=%t.decided.mlir -o /dev/null
// RUN: acc-eval %t.local.mlir --compare %s --tolerance 1e-14

// CHECK: func.func private @main_forward
// CHECK: nn.matmul
// CHECK-DAG: nn.slice %{{.*}} starts [0, 0] sizes [4, 3] steps [1, 1] : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-DAG: nn.reshape %{{.*}} : (tensor<4x4xf64>) -> tensor<4x2x2xf64>
// CHECK: return %{{.*}} : tensor<4x3xf64>, tensor<4x2x2xf64>
// CHECK: dist.loop 2
// CHECK-NEXT: dist.run @main_forward[turn]
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf64> = dense<0.5>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w}) -> (tensor<8x3xf64> {nn.output = "cut"}, tensor<8x2x2xf64> {nn.output = "shaped"}) attributes {nn.entry} {
  %y = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %0 = nn.slice %y starts [0, 0] sizes [8, 3] steps [1, 1] : (tensor<8x4xf64>) -> tensor<8x3xf64>
  %1 = nn.reshape %y : (tensor<8x4xf64>) -> tensor<8x2x2xf64>
  return %0, %1 : tensor<8x3xf64>, tensor<8x2x2xf64>
}
}
