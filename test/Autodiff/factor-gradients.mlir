// Gradients as PowerSGD's factors, with what they leave out and the right factor carried on.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/step.mlir --nn-factor-gradients="start=0 min-compression-rate=1" | FileCheck %s
// CHECK: nn.state residual @"power_sgd_error/w" : tensor<1x4x6xf32> = dense<0.000000e+00>
// CHECK: nn.state factor @"power_sgd_q/w" : tensor<1x6xf32> = dense<0.000000e+00>
// CHECK-NOT: nn.state
// CHECK: func.func @step
// CHECK-SAME: %[[ERROR:[a-z0-9]+]]: tensor<1x4x6xf32> {nn.state = @"power_sgd_error/w"}, %[[Q:[a-z0-9]+]]: tensor<1x6xf32> {nn.state = @"power_sgd_q/w"}
// CHECK: %[[DW:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK: %[[OLD:.*]] = nn.reshape %[[ERROR]]
// CHECK: %[[M:.*]] = nn.add %[[DW]], %[[OLD]]
// CHECK: nn.random_uniform
// CHECK: nn.random_uniform
// CHECK: %[[LARGEST:.*]] = nn.reduce max
// CHECK: %[[NONE:.*]] = nn.compare eq %[[LARGEST]]
// CHECK: nn.select {{.*}}, %[[Q]] : tensor<1x6xf32>
// CHECK: %[[RIGHT:.*]] = nn.div {{.*}} : tensor<1x6xf32>
// CHECK: %[[P0:.*]] = nn.matmul %[[RIGHT]], %[[M]] {transpose_rhs}
// CHECK: %[[P1:.*]] = nn.complete %[[P0]] : tensor<1x4xf32>
// CHECK: %[[P:.*]] = nn.div %[[P1]]
// CHECK: %[[Q0:.*]] = nn.matmul %[[P]], %[[M]] :
// CHECK: %[[Q1:.*]] = nn.complete %[[Q0]] : tensor<1x6xf32>
// CHECK: %[[G:.*]] = nn.matmul %[[P]], %[[Q1]] {transpose_lhs}
// CHECK: %[[OWN:.*]] = nn.matmul %[[P]], %[[Q0]] {transpose_lhs}
// CHECK: %[[LEFT:.*]] = nn.sub %[[M]], %[[OWN]]
// CHECK: %[[NEW:.*]] = nn.reshape %[[LEFT]]
// CHECK: nn.gradient %[[G]] of @w
// What is not worth it stays.
// CHECK: nn.gradient %arg3 of @b
// A step that is not done keeps both.
// CHECK: %[[VERDICT:.*]] = nn.select {{.*}} : tensor<i32>
// CHECK: %[[DONE:.*]] = nn.compare eq %[[VERDICT]]
// CHECK: %[[FINES:.*]] = nn.broadcast %[[DONE]] : (tensor<i1>) -> tensor<1x4x6xi1>
// CHECK: nn.select %[[FINES]], %[[NEW]], %[[ERROR]]
// CHECK: nn.select {{.*}}, %[[Q1]], %[[Q]]

// What stands for several parameters has no factors.
// RUN: sed 's/@w : tensor<4x6xf32> = dense<1.0>/@w : tensor<4x6xf32> = [@w.0, @w.1, @w.2, @w.3]\nnn.state @w.0 : tensor<6xf32> = dense<1.0>\nnn.state @w.1 : tensor<6xf32> = dense<1.0>\nnn.state @w.2 : tensor<6xf32> = dense<1.0>\nnn.state @w.3 : tensor<6xf32> = dense<1.0>/' %t/step.mlir | acc-opt --nn-factor-gradients="start=0 min-compression-rate=1" | FileCheck %s --check-prefix=STACK
// STACK: nn.state @w : tensor<4x6xf32> = [@w.0
// STACK-NOT: residual

// Two rows: the second loses what it has of the first.
// RUN: acc-opt %t/step.mlir --nn-factor-gradients="start=0 rank=2 min-compression-rate=1 orthogonalization-epsilon=0.001" | FileCheck %s --check-prefix=TWO
// TWO: nn.state factor @"power_sgd_q/w" : tensor<2x6xf32>
// TWO: %[[P:.*]] = nn.complete {{.*}} : tensor<2x4xf32>
// TWO: %[[FIRST:.*]] = nn.slice %[[P]] starts [0, 0] sizes [1, 4]
// TWO: %[[LONG:.*]] = nn.sqrt
// TWO: nn.add %[[LONG]]
// TWO: %[[UNIT:.*]] = nn.div %[[FIRST]]
// TWO: %[[REST:.*]] = nn.slice %[[P]] starts [1, 0] sizes [1, 4]
// TWO: %[[BOTH:.*]] = nn.mul %[[UNIT]], %[[REST]]
// TWO: %[[SHARE:.*]] = nn.reduce sum %[[BOTH]] dims [1]
// TWO: nn.sub %[[REST]]
// TWO: nn.concat

// Without feedback nothing is carried on of it, without a warm start no factor.
// RUN: acc-opt %t/step.mlir --nn-factor-gradients="start=0 min-compression-rate=1 use-error-feedback=false warm-start=false" | FileCheck %s --check-prefix=BARE --implicit-check-not=power_sgd
// BARE: nn.complete

// RUN: acc-opt %t/step.mlir --nn-factor-gradients="start=0 min-compression-rate=3" 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: warning: comm_hook=power_sgd compresses nothing: no gradient is more than 3{{.*}} times as large as factors of rank 1
// SMALL-NOT: nn.complete
// RUN: acc-opt %t/forward.mlir --nn-factor-gradients=start=0 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: warning: comm_hook=power_sgd compresses nothing: the program has no gradients
// RUN: not acc-opt %t/step.mlir --nn-factor-gradients="start=0 rank=0" 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: error: expected factors of at least rank 1, found 0
// RUN: not acc-opt %t/step.mlir --nn-factor-gradients 2>&1 | FileCheck %s --check-prefix=START
// START: error: comm_hook=power_sgd is not supported yet in the middle of a run, found power_sgd.start_powerSGD_iter=1000
// RUN: sed 's/output = "verdict"/output = "other"/' %t/step.mlir | not acc-opt --nn-factor-gradients="start=0 min-compression-rate=1" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/counter\/call/counter\/step/' %t/step.mlir | not acc-opt --nn-factor-gradients="start=0 min-compression-rate=1" 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: error: expected a step that counts its calls in @counter/call and gives an output 'verdict'

//--- step.mlir
module {
nn.state @w : tensor<4x6xf32> = dense<1.0>
nn.state @b : tensor<6xf32> = dense<1.0>
nn.state counter @"counter/call" : tensor<i64> = dense<0>
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x6xf32> {nn.state = @w}, %n: tensor<i64> {nn.state = @"counter/call"}, %d: tensor<6xf32> {nn.input = "d"})
    -> (tensor<f32> {nn.output = "loss"}, tensor<4x6xf32> {nn.state = @w}, tensor<6xf32> {nn.output = "b"}, tensor<i64> {nn.state = @"counter/call"}, tensor<i32> {nn.output = "verdict"}) attributes {nn.entry = #nn<entry step>} {
  %big = nn.constant dense<1.0e+30> : tensor<f32>
  %one = nn.constant dense<1> : tensor<i64>
  %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32>
  %dw = nn.matmul %x, %y {transpose_lhs} : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %g = nn.gradient %dw of @w : tensor<4x6xf32>
  %h = nn.gradient %d of @b : tensor<6xf32>
  %w1 = nn.sub %w, %g : tensor<4x6xf32>
  %fine = nn.compare lt %loss, %big : tensor<f32>
  %next = nn.add %n, %one : tensor<i64>
  %done = nn.constant dense<0> : tensor<i32>
  %failed = nn.constant dense<2> : tensor<i32>
  %verdict = nn.select %fine, %done, %failed : tensor<i32>
  return %loss, %w1, %h, %next, %verdict : tensor<f32>, tensor<4x6xf32>, tensor<6xf32>, tensor<i64>, tensor<i32>
}
}
//--- forward.mlir
module {
  func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
    return %x : tensor<4xf32>
  }
}
