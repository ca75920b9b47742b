// Random numbers of a step: a key for each site, step and seed; counted by coordinates.
// RUN: acc-opt %s --train --loss y --optimizer sgd --emit-gradients --compile-to=train -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// CHECK-LABEL: func.func @step
// CHECK-DAG: %[[LEAST:.*]] = nn.constant dense<2.98023224E-8> : tensor<8x6xf32>
// CHECK-DAG: %[[MINUS:.*]] = nn.constant dense<-2.000000e+00> : tensor<8x1xf32>
// CHECK-DAG: %[[TURN:.*]] = nn.constant dense<6.28318548> : tensor<8x1xf32>
// CHECK-DAG: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<8x1xf32>
// Uniform: above 0.
// CHECK: %[[U:.*]] = nn.random_uniform %{{.*}}, %{{.*}} -> tensor<8x6xf32>
// CHECK-NEXT: nn.max %[[U]], %[[LEAST]]
// Normal, of two numbers for each.
// CHECK: %[[FIRST:.*]] = nn.random_uniform %{{.*}} -> tensor<8x1xf32>
// CHECK: %[[SECOND:.*]] = nn.random_uniform %{{.*}} -> tensor<8x1xf32>
// CHECK-NEXT: %[[REST:.*]] = nn.sub %[[ONE]], %[[FIRST]]
// CHECK-NEXT: %[[LOG:.*]] = nn.log %[[REST]]
// CHECK-NEXT: %[[SQUARE:.*]] = nn.mul %[[LOG]], %[[MINUS]]
// CHECK-NEXT: %[[LENGTH:.*]] = nn.sqrt %[[SQUARE]]
// CHECK-NEXT: %[[ANGLE:.*]] = nn.mul %[[SECOND]], %[[TURN]]
// CHECK-NEXT: %[[COS:.*]] = nn.cos %[[ANGLE]]
// CHECK-NEXT: nn.mul %[[LENGTH]], %[[COS]]
// Of 16 bits as many digits as they have, so that none is 1.
// CHECK: nn.floor %{{.*}} : tensor<8x1xf32>
// CHECK: nn.cast %{{.*}} : (tensor<8x1xf32>) -> tensor<8x1xbf16>
// In evaluation the key is one that no step has.
// CHECK-LABEL: func.func @eval
// CHECK: nn.constant dense<[[KEY:[0-9]+]]> : tensor<{{.*}}i64>
// CHECK: nn.random_uniform

// Every layout draws the same numbers, step by step.
// RUN: acc-opt %t.mlir --mesh dp=2 --compile-to=local -o %t.dp2.mlir
// RUN: acc-eval %t.mlir --compare %t.dp2.mlir --steps 3 --tolerance 1e-12
// RUN: acc-opt %t.mlir --micro-batches 4 --compile-to=local -o %t.mb4.mlir
// RUN: acc-eval %t.mlir --compare %t.mb4.mlir --steps 3 --tolerance 1e-12
// RUN: acc-opt %t.mlir --mesh dp=2 --micro-batches 2 --compile-to=local -o %t.both.mlir
// RUN: acc-eval %t.mlir --compare %t.both.mlir --steps 3 --tolerance 1e-12

// Steps and seeds do not: same inputs, other losses (the learning rate is 0).
// RUN: acc-opt %s --train --loss y --optimizer sgd --set optimizer.lr=0 --set seed=1 --compile-to=train -o %t.seed.mlir
// RUN: acc-opt %s --train --loss y --optimizer sgd --set optimizer.lr=0 --compile-to=train -o %t.still.mlir
// RUN: acc-eval %t.still.mlir --steps 2 > %t.still
// RUN: FileCheck %s --check-prefix=STEPS < %t.still
// STEPS: "loss":[[LOSS:-?[0-9.]+]],
// STEPS-NOT: "loss":[[LOSS]],
// RUN: not acc-eval %t.still.mlir --compare %t.seed.mlir 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: loss: {{.*[1-9]}}

// A forward program has no step to draw for.
// RUN: not acc-opt %s --compile-to=train 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: node 'u': error: 'nn.rng' op draws anew in every step of training, expected --train or a model exported for inference

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x6xf32> = dense<1.0>
  func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x6xf32> {nn.state = @w})
      -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32> loc("h")
    %u = nn.rng uniform site 0 : tensor<8x6xf32> loc("u")
    %z = nn.rng normal site 1 : tensor<8x1xf32> loc("z")
    %n = nn.rng uniform site 2 : tensor<8x1xbf16> loc("n")
    %f = nn.cast %n : (tensor<8x1xbf16>) -> tensor<8x1xf32>
    %s = nn.add %z, %f : tensor<8x1xf32>
    %b = nn.broadcast %s : (tensor<8x1xf32>) -> tensor<8x6xf32>
    %d = nn.mul %h, %u : tensor<8x6xf32> loc("d")
    %e = nn.mul %d, %b : tensor<8x6xf32> loc("e")
    %y = nn.reduce sum %e dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32> loc("y")
    return %y : tensor<f32>
  }
}
