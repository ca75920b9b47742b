// Every chunk computes something: what nothing reads is none's work, and between two
// ops that compute there is one place, wherever views stand.
// RUN: acc-opt %s --nn-cut-forward=chunks=3 | FileCheck %s
// RUN: not acc-opt %s --nn-cut-forward=chunks=5 -o /dev/null 2>&1 | FileCheck %s --check-prefix=FEW

// FEW: error: expected at least 4 places to cut the model into 5 chunks, found 3: take fewer stages, or fewer chunks on each
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<8x8xf32> = dense<1.0>
  // CHECK: nn.matmul
  // CHECK: nn.cut {{.*}} from 0 to 1
  // CHECK: nn.matmul
  // CHECK: nn.cut {{.*}} from 1 to 2
  // CHECK: nn.matmul
  func.func @main(%x: tensor<8x8xf32> {nn.input = "x"}, %w: tensor<8x8xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %a = nn.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %v = nn.reshape %a : (tensor<8x8xf32>) -> tensor<4x16xf32>
    %t = nn.transpose %v [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %u = nn.reshape %t : (tensor<16x4xf32>) -> tensor<8x8xf32>
    %dead = nn.matmul %u, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %deader = nn.matmul %dead, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %b = nn.matmul %u, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = nn.matmul %b, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %s = nn.reduce sum %c dims [0, 1] : (tensor<8x8xf32>) -> tensor<f32>
    return %s : tensor<f32>
  }
}
