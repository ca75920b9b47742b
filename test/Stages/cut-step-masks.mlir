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

// A batch of one sample has single numbers, but its inputs are none: what is made of both stays
// in its chunk, and the number of the step comes there.
// CHECK-LABEL: func.func @batch_of_one(
// CHECK-NOT: from 1 to 0
// CHECK: nn.cut %{{.*}} from 0 to 1 : tensor<f32>
// CHECK-NOT: nn.cut
// CHECK: return

// What is made of single numbers alone goes with those of the step, and is made again where it
// is read: of the number that is there, which does not go there and back.
// CHECK-LABEL: func.func @there_and_back(
// CHECK: nn.reduce sum
// CHECK-NEXT: %[[ONE:.*]] = nn.reduce sum
// CHECK-NEXT: %[[ONES:.*]] = nn.broadcast %[[ONE]]
// CHECK: %[[THERE:.*]] = nn.cut %{{.*}} from 0 to 1 : tensor<f32>
// CHECK: %[[CLIP:.*]] = nn.broadcast %[[THERE]]
// CHECK: %[[G:.*]] = nn.mul %[[ONES]], %[[CLIP]]
// CHECK: nn.add %{{.*}}, %[[G]]
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
func.func @batch_of_one(%x: tensor<1x4xf32> {nn.input = "x"}, %v: tensor<4xf32> {nn.state = @v}, %w: tensor<4xf32> {nn.state = @w})
    -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
  %0 = nn.reduce sum %v dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = nn.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
  %2 = nn.exp %x : tensor<1x4xf32>
  %3 = nn.broadcast %1 : (tensor<f32>) -> tensor<1x4xf32>
  %4 = nn.mul %2, %3 : tensor<1x4xf32>
  %5 = nn.reshape %4 : (tensor<1x4xf32>) -> tensor<4xf32>
  %6 = nn.broadcast %0 : (tensor<f32>) -> tensor<4xf32>
  %7 = nn.mul %5, %6 : tensor<4xf32>
  %8 = nn.add %w, %7 : tensor<4xf32>
  return %8 : tensor<4xf32>
}
func.func @there_and_back(%v: tensor<4xf32> {nn.state = @v}, %w: tensor<4xf32> {nn.state = @w})
    -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
  %0 = nn.reduce sum %v dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = nn.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
  %2 = nn.broadcast %1 : (tensor<f32>) -> tensor<4xf32>
  %3 = nn.broadcast %0 : (tensor<f32>) -> tensor<4xf32>
  %4 = nn.mul %2, %3 : tensor<4xf32>
  %5 = nn.add %w, %4 : tensor<4xf32>
  return %5 : tensor<4xf32>
}
