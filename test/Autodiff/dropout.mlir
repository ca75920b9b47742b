// Dropout of a step: a key for each site, step and seed; counted by coordinates.
// RUN: acc-opt %s --train --loss y --optimizer sgd --emit-gradients --compile-to=train -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// CHECK-LABEL: func.func @step
// CHECK-DAG: %[[SIX:.*]] = nn.constant dense<6> : tensor<8x6xi64>
// CHECK-DAG: %[[RATIO:.*]] = nn.constant dense<2.500000e-01> : tensor<8x6xf32>
// CHECK-DAG: %[[SCALE:.*]] = nn.constant dense<1.33333337> : tensor<8x6xf32>
// CHECK-DAG: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<8x6xf32>
// CHECK: %[[H:.*]] = nn.matmul
// CHECK-NEXT: %[[NUMBER:.*]] = nn.add %{{.*}}, %{{.*}} : tensor<i64>
// CHECK-NEXT: %[[COLUMN:.*]] = nn.iota {dim = 1 : i64}
// CHECK-NEXT: %[[ROW:.*]] = nn.iota {dim = 0 : i64}
// CHECK-NEXT: %[[ROWS:.*]] = nn.mul %[[ROW]], %[[SIX]]
// CHECK-NEXT: %[[PLACE:.*]] = nn.add %[[ROWS]], %[[COLUMN]]
// CHECK-NEXT: %[[KEYS:.*]] = nn.broadcast %[[NUMBER]]
// CHECK-NEXT: %[[U:.*]] = nn.random_uniform %[[PLACE]], %[[KEYS]]
// CHECK-NEXT: %[[DROP:.*]] = nn.compare lt %[[U]], %[[RATIO]]
// CHECK-NEXT: %[[SCALED:.*]] = nn.mul %[[H]], %[[SCALE]]
// CHECK-NEXT: nn.select %[[DROP]], %[[ZERO]], %[[SCALED]]

// Every layout draws the same masks, step by step.
// RUN: acc-opt %t.mlir --mesh dp=2 --compile-to=local -o %t.dp2.mlir
// RUN: acc-eval %t.mlir --compare %t.dp2.mlir --steps 3 --tolerance 1e-12
// RUN: acc-opt %t.mlir --mesh dp=4 --compile-to=local -o %t.dp4.mlir
// RUN: acc-eval %t.mlir --compare %t.dp4.mlir --steps 3 --tolerance 1e-12
// RUN: acc-opt %t.mlir --micro-batches 4 --compile-to=local -o %t.mb4.mlir
// RUN: acc-eval %t.mlir --compare %t.mb4.mlir --steps 3 --tolerance 1e-12
// RUN: acc-opt %t.mlir --mesh dp=2 --micro-batches 2 --compile-to=local -o %t.both.mlir
// RUN: acc-eval %t.mlir --compare %t.both.mlir --steps 3 --tolerance 1e-12

// Steps and seeds do not: same inputs, other losses (the learning rate is 0).
// RUN: acc-opt %s --train --loss y --optimizer sgd --set optimizer.lr=0 --set seed=1 --compile-to=train -o %t.seed.mlir
// RUN: acc-opt %s --train --loss y --optimizer sgd --set optimizer.lr=0 --compile-to=train -o %t.still.mlir
// RUN: acc-eval %t.still.mlir --steps 2 > %t.still
// RUN: FileCheck %s --check-prefix=STEPS < %t.still
// STEPS: "loss":[[LOSS:[0-9.]+]],
// STEPS-NOT: "loss":[[LOSS]],
// RUN: not acc-eval %t.still.mlir --compare %t.seed.mlir 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: loss: {{.*[1-9]}}

// A forward program has no step to draw for.
// RUN: not acc-opt %s --compile-to=train 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: node 'd': error: 'nn.dropout' op draws anew in every step of training, expected --train or a model exported for inference

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x6xf32> = dense<1.0>
  func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x6xf32> {nn.state = @w})
      -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32> loc("h")
    %d = nn.dropout %h ratio 0.25 site 0 : tensor<8x6xf32> loc("d")
    %e = nn.dropout %d ratio 0.5 site 1 : tensor<8x6xf32> loc("e")
    %y = nn.reduce sum %e dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32> loc("y")
    return %y : tensor<f32>
  }
}
