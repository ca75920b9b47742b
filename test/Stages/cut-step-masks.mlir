// A mask of dropout is of numbers of the step alone, which chunk 0 counts: each
// chunk draws what it reads.
// RUN: acc-opt %s --nn-cut-step | FileCheck %s

// One sample of one number is a scalar too, yet of the chunk that has it: only the
// key goes there, and nothing comes back.
// CHECK-LABEL: func.func @sample(
// CHECK: %[[Y:.*]] = nn.cut %{{.*}} from 0 to 1 : tensor<1xf32>
// CHECK: %[[YS:.*]] = nn.broadcast
// CHECK: %[[KEY:.*]] = nn.cut %{{.*}} from 0 to 1 : tensor<i64>
// CHECK: %[[KEYS:.*]] = nn.broadcast %[[KEY]]
// CHECK: nn.random_uniform %{{.*}}, %[[KEYS]]
// CHECK: %[[D:.*]] = nn.select %{{.*}}, %{{.*}}, %[[YS]]
// CHECK-NOT: nn.cut
// CHECK: nn.mul %{{.*}}, %[[D]]

// What dropout leaves of the gradient of a sum is no chunk's either.
// CHECK-LABEL: func.func @ones(
// CHECK-NOT: nn.cut
// CHECK: return
nn.state @v : tensor<4xf32> = dense<0.5>
nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 1 : i64}
nn.state counter @step : tensor<i64> = dense<0>
func.func @sample(%x: tensor<1xf32> {nn.input = "x"}, %v: tensor<4xf32> {nn.state = @v}, %w: tensor<4xf32> {nn.state = @w}, %step: tensor<i64> {nn.state = @step})
    -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
  %zeros = nn.constant dense<0.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %places = nn.iota {dim = 0 : i64} : tensor<4xi64>
  %sum = nn.reduce sum %v dims [0] : (tensor<4xf32>) -> tensor<f32>
  %one = nn.reshape %sum : (tensor<f32>) -> tensor<1xf32>
  %0 = nn.mul %x, %one : tensor<1xf32>
  %1 = nn.cut %0 from 0 to 1 : tensor<1xf32>
  %2 = nn.broadcast %1 : (tensor<1xf32>) -> tensor<4xf32>
  %keys = nn.broadcast %step : (tensor<i64>) -> tensor<4xi64>
  %drawn = nn.random_uniform %places, %keys : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
  %mask = nn.compare lt %drawn, %half : tensor<4xf32>
  %3 = nn.select %mask, %zeros, %2 : tensor<4xf32>
  %4 = nn.mul %w, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}
func.func @ones(%v: tensor<4xf32> {nn.state = @v}, %w: tensor<4xf32> {nn.state = @w}, %step: tensor<i64> {nn.state = @step})
    -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
  %zeros = nn.constant dense<0.0> : tensor<4xf32>
  %ones = nn.constant dense<1.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %places = nn.iota {dim = 0 : i64} : tensor<4xi64>
  %keys = nn.broadcast %step : (tensor<i64>) -> tensor<4xi64>
  %drawn = nn.random_uniform %places, %keys : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
  %mask = nn.compare lt %drawn, %half : tensor<4xf32>
  %0 = nn.select %mask, %zeros, %ones : tensor<4xf32>
  %1 = nn.cut %0 from 1 to 0 : tensor<4xf32>
  %2 = nn.mul %v, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
