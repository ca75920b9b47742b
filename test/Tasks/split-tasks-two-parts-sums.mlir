// Chunk 0 sends nothing back. Its first part is what more than one sum needs, as the
// gradient of the bias b, a term of c's: what is added to b's sum is added there, and
// need not be kept. What a single sum needs several times is not of it (the gradient
// of w0 + w0 * w0). In chunk 1, which sends something back, the first part makes that alone.
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --frozen=k --frozen=k1 --entries=step --mesh=pp=2 --micro-batches=4 --schedule=zb-h1 --compile-to=local -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --frozen=k --frozen=k1 --entries=step --compile-to=train -o %t.train.mlir
// RUN: acc-eval %t.mlir --compare %t.train.mlir --tolerance 1e-12

// CHECK-LABEL: func.func private @backward_input_0(
// CHECK: nn.state = @"accumulator/b", nn.write = #nn<write accumulate_sum>
// CHECK-NOT: nn.matmul
// CHECK: %[[SUM:.*]] = nn.reduce sum
// CHECK-NEXT: nn.add %accumulator_b, %[[SUM]]
// CHECK-NOT: nn.matmul
// CHECK-LABEL: func.func private @backward_input_1(
// CHECK-NOT: nn.reduce
// CHECK-LABEL: func.func private @backward_weight_0(
// CHECK-NOT: nn.state = @"accumulator/b"
// CHECK: nn.state = @"accumulator/c", nn.write = #nn<write accumulate_sum>
// CHECK: nn.matmul
// CHECK-LABEL: func.func private @backward_weight_1(
// CHECK: nn.state = @"accumulator/b1", nn.write = #nn<write accumulate_sum>
// CHECK: nn.state = @"accumulator/c1", nn.write = #nn<write accumulate_sum>
module attributes {accel.phase = "nn"} {
nn.state @w0 : tensor<8x8xf32> = dense<0.5>
nn.state @w1 : tensor<8x8xf32> = dense<0.25>
nn.state @b : tensor<8xf32> = dense<0.125>
nn.state @c : tensor<8xf32> = dense<2.0>
nn.state @b1 : tensor<8xf32> = dense<0.125>
nn.state @c1 : tensor<8xf32> = dense<2.0>
nn.state @k : tensor<8xf32> = dense<3.0>
nn.state @k1 : tensor<8xf32> = dense<3.0>
func.func @main(%x: tensor<8192x8xf32> {nn.input = "x"}, %w0: tensor<8x8xf32> {nn.state = @w0}, %w1: tensor<8x8xf32> {nn.state = @w1},
                %b: tensor<8xf32> {nn.state = @b}, %c: tensor<8xf32> {nn.state = @c}, %k: tensor<8xf32> {nn.state = @k},
                %b1: tensor<8xf32> {nn.state = @b1}, %c1: tensor<8xf32> {nn.state = @c1}, %k1: tensor<8xf32> {nn.state = @k1})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %square = nn.mul %w0, %w0 : tensor<8x8xf32>
  %weight = nn.add %w0, %square : tensor<8x8xf32>
  %0 = nn.matmul %x, %weight : (tensor<8192x8xf32>, tensor<8x8xf32>) -> tensor<8192x8xf32>
  %ck = nn.mul %c, %k : tensor<8xf32>
  %bias = nn.add %b, %ck : tensor<8xf32>
  %wide = nn.broadcast %bias : (tensor<8xf32>) -> tensor<8192x8xf32>
  %1 = nn.add %0, %wide : tensor<8192x8xf32>
  %2 = nn.tanh %1 : tensor<8192x8xf32>
  %3 = nn.matmul %2, %w1 : (tensor<8192x8xf32>, tensor<8x8xf32>) -> tensor<8192x8xf32>
  %ck1 = nn.mul %c1, %k1 : tensor<8xf32>
  %bias1 = nn.add %b1, %ck1 : tensor<8xf32>
  %wide1 = nn.broadcast %bias1 : (tensor<8xf32>) -> tensor<8192x8xf32>
  %4 = nn.add %3, %wide1 : tensor<8192x8xf32>
  %5 = nn.tanh %4 : tensor<8192x8xf32>
  %6 = nn.reduce sum %5 dims [0, 1] : (tensor<8192x8xf32>) -> tensor<f32>
  return %6 : tensor<f32>
}
}
