// Batch norm in a step: by the statistics of its part of the batch; running ones are
// a sum over parts, written once.
// RUN: rm -rf %t && split-file %s %t

// One part. The variance that is kept is that of a sample: 0.25 * 24 / 23.
// RUN: acc-opt %t/one.mlir --train --loss y --optimizer sgd --compile-to=train | FileCheck %s
// CHECK-LABEL: func.func @step
// CHECK: %[[MEAN:[^ ]*]]: tensor<2xf64> {nn.state = @mean},
// CHECK: %[[VAR:[^ ]*]]: tensor<2xf64> {nn.state = @var},
// CHECK: tensor<2xf64> {nn.state = @w},
// CHECK-NEXT: tensor<2xf64> {nn.state = @mean},
// CHECK-NEXT: tensor<2xf64> {nn.state = @var},
// CHECK-DAG: %[[UNBIASED:.*]] = nn.constant dense<0.26086956521739{{.*}}> : tensor<2xf64>
// CHECK-DAG: %[[LEFT:.*]] = nn.constant dense<7.500000e-01> : tensor<2xf64>
// CHECK-DAG: %[[SHARE:.*]] = nn.constant dense<2.500000e-01> : tensor<2xf64>
// CHECK: %[[H:.*]] = nn.mul %x,
// CHECK: nn.reduce sum %[[H]] dims [2] : (tensor<8x2x3xf64>) -> tensor<8x2xf64>
// CHECK-NEXT: nn.reduce sum %{{.*}} dims [0] : (tensor<8x2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[OWN:.*]] = nn.mul
// CHECK: %[[APART:.*]] = nn.sub %[[H]],
// CHECK-NEXT: nn.mul %[[APART]], %[[APART]]
// CHECK: %[[OWNVAR:.*]] = nn.mul {{.*}} : tensor<2xf64>
// CHECK: nn.rsqrt
// CHECK: %[[Y:.*]] = nn.mul %[[APART]],
// CHECK-NEXT: nn.tanh %[[Y]]
// CHECK: %[[A:.*]] = nn.mul %[[OWN]], %[[SHARE]]
// CHECK-NEXT: %[[B:.*]] = nn.mul %[[MEAN]], %[[LEFT]]
// CHECK-NEXT: nn.add %[[B]], %[[A]]
// CHECK-NEXT: %[[C:.*]] = nn.mul %[[OWNVAR]], %[[UNBIASED]]
// CHECK-NEXT: %[[D:.*]] = nn.mul %[[VAR]], %[[LEFT]]
// CHECK-NEXT: nn.add %[[D]], %[[C]]
// A step that is not done leaves them as they were.
// CHECK: nn.select %{{.*}}, %{{.*}}, %[[MEAN]]
// CHECK: nn.select %{{.*}}, %{{.*}}, %[[VAR]]

// The entries that do not train go by running statistics.
// RUN: acc-opt %t/one.mlir --train --loss y --optimizer sgd --compile-to=train | FileCheck %s --check-prefix=EVAL
// EVAL-LABEL: func.func @eval
// EVAL-DAG: %[[MEAN:.*]] = nn.broadcast
// EVAL: nn.sub %{{.*}}, %{{.*}} : tensor<8x2x3xf64>
// EVAL: nn.rsqrt
// EVAL-NOT: nn.reduce sum {{.*}} dims [2]
// EVAL-NOT: nn.batch_norm

// Four parts, of which two together are an update.
// RUN: acc-opt %t/one.mlir --nn-build-step="loss=y optimizer=sgd batch-norm-parts=4 batch-norm-updates=2" | FileCheck %s --check-prefix=PARTS
// PARTS: %[[P:.*]] = nn.reshape %{{.*}} : (tensor<8x2x3xf64>) -> tensor<4x2x2x3xf64>
// PARTS-NEXT: nn.reduce sum %[[P]] dims [3] : (tensor<4x2x2x3xf64>) -> tensor<4x2x2xf64>
// PARTS-NEXT: nn.reduce sum %{{.*}} dims [1] : (tensor<4x2x2xf64>) -> tensor<4x2xf64>
// PARTS: nn.reshape %{{.*}} : (tensor<4x2x2x3xf64>) -> tensor<8x2x3xf64>
// PARTS: nn.reshape %{{.*}} : (tensor<4x2xf64>) -> tensor<2x2x2xf64>
// PARTS-NEXT: nn.reduce sum %{{.*}} dims [1] : (tensor<2x2x2xf64>) -> tensor<2x2xf64>
// 0.25 (1 - 0.25) / 2 and 0.25 / 2
// PARTS: %[[WEIGHTS:.*]] = nn.constant dense<{{\[\[}}9.375000e-02, 1.250000e-01]]> : tensor<1x2xf64>
// PARTS-NEXT: nn.matmul %[[WEIGHTS]], %{{.*}} : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>

// Rows are found wherever they are, but for the channels.
// RUN: acc-opt %t/moved.mlir --nn-build-step="loss=y optimizer=sgd batch-norm-parts=4 batch-norm-updates=4" | FileCheck %s --check-prefix=MOVED
// MOVED: nn.transpose %{{.*}} : (tensor<8x2x3xf64>) -> tensor<3x2x8xf64>
// MOVED: nn.reshape %{{.*}} : (tensor<3x2x8xf64>) -> tensor<3x2x4x2xf64>
// MOVED: nn.reduce sum %{{.*}} dims [3] : (tensor<3x2x4x2xf64>) -> tensor<3x2x4xf64>
// MOVED-NEXT: nn.reduce sum %{{.*}} dims [0] : (tensor<3x2x4xf64>) -> tensor<2x4xf64>
// MOVED: nn.transpose %{{.*}} : (tensor<2x4xf64>) -> tensor<4x2xf64>
// RUN: not acc-opt %t/channels.mlir --nn-build-step="loss=y optimizer=sgd batch-norm-parts=4" 2>&1 | FileCheck %s --check-prefix=CHANNELS
// CHANNELS: error: expected to see where 'tensor<3x8x2xf64>' has the rows of the batch, of which 4 parts have statistics of their own, and that it is not in the channels, dimension 1; compile with one micro-batch, or say where inputs have their rows (--batch-dim INPUT=K)
// RUN: not acc-opt %t/one.mlir --nn-build-step="loss=y optimizer=sgd batch-norm-parts=3" 2>&1 | FileCheck %s --check-prefix=DIVIDE
// DIVIDE: error: {{.*}}expected a batch that the 3 parts with statistics of their own divide, found one of 8
// RUN: not acc-opt %t/one.mlir --nn-build-step="loss=y optimizer=sgd batch-norm-parts=4 batch-norm-updates=3" 2>&1 | FileCheck %s --check-prefix=UPDATES
// UPDATES: error: expected updates of running statistics that divide the parts of a batch, found 3 of 4 parts
// RUN: not acc-opt %t/rows.mlir --nn-build-step="loss=y optimizer=sgd batch-norm-parts=8" 2>&1 | FileCheck %s --check-prefix=SINGLE
// SINGLE: error: {{.*}}expected more than one number of each channel to take statistics of, found 1 of 'tensor<8x2xf64>' in 8 parts; take larger micro-batches
// RUN: not acc-opt %t/computed.mlir --nn-build-step="loss=y optimizer=sgd" 2>&1 | FileCheck %s --check-prefix=COMPUTED
// COMPUTED: error: expected running statistics that are states

// One that the loss does not depend on keeps what it has.
// RUN: acc-opt %t/unread.mlir --nn-build-step="loss=y optimizer=sgd" -o %t/unread.out 2>&1 | FileCheck %s --check-prefix=UNREAD
// UNREAD: warning: the loss depends on no batch norm of 'mean', 'var': they are left as they are, where PyTorch would update them by batches that nothing reads

// Masked rows would be in the statistics; a forward program has none of its own.
// RUN: not acc-opt %t/one.mlir --nn-mask-rows="loss=y" 2>&1 | FileCheck %s --check-prefix=MASK
// MASK: error: {{.*}}expected rows of a batch that do not depend on each other
// RUN: not acc-opt %t/one.mlir --compile-to=train 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: error: {{.*}}takes statistics of the batch in training and running ones elsewhere, expected --train or a model exported for inference

// Ranks that share a part add its statistics up, forward and backward, and micro-batches the running ones.
// DEFINE: %{layout} = --mesh dp=2
// DEFINE: %{parts} = batch-norm-parts=1
// DEFINE: %{compare} = acc-opt %t/one.mlir --nn-build-step="loss=y optimizer=sgd set=optimizer.lr=0.1 %{parts}" -o %t/step.mlir && acc-opt %t/step.mlir %{layout} --compile-to=plan --target=cpu:x86-64-v3 -o %t/plan.mlir && acc-eval %t/step.mlir --compare %t/plan.mlir --steps 3 --tolerance 1e-12
// RUN: %{compare}
// REDEFINE: %{parts} = batch-norm-parts=4 batch-norm-updates=4
// REDEFINE: %{layout} = --micro-batches 4
// RUN: %{compare}
// REDEFINE: %{layout} = --mesh dp=2 --micro-batches 4
// RUN: %{compare}
// REDEFINE: %{parts} = batch-norm-parts=4 batch-norm-updates=2
// REDEFINE: %{layout} = --mesh dp=2 --micro-batches 2
// RUN: %{compare}
// REDEFINE: %{layout} = --mesh dp=4 --micro-batches 2
// RUN: %{compare}

//--- one.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<2xf64> = dense<[0.5, 1.5]>
  nn.state buffer @mean : tensor<2xf64> = dense<[0.25, -1.0]>
  nn.state buffer @var : tensor<2xf64> = dense<[2.0, 0.5]>
  func.func @main(%x: tensor<8x2x3xf64> {nn.input = "x"}, %w: tensor<2xf64> {nn.state = @w},
                  %mean: tensor<2xf64> {nn.state = @mean}, %var: tensor<2xf64> {nn.state = @var})
      -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %w1 = nn.reshape %w : (tensor<2xf64>) -> tensor<2x1xf64>
    %ws = nn.broadcast %w1 : (tensor<2x1xf64>) -> tensor<8x2x3xf64>
    %h = nn.mul %x, %ws : tensor<8x2x3xf64>
    %n = nn.batch_norm %h, %mean, %var dim 1 momentum 0.25 epsilon 1.0e-2 unbiased : (tensor<8x2x3xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<8x2x3xf64> loc("n")
    %e = nn.tanh %n : tensor<8x2x3xf64>
    %y = nn.reduce sum %e dims [0, 1, 2] : (tensor<8x2x3xf64>) -> tensor<f64>
    return %y : tensor<f64>
  }
}

//--- moved.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<8x2x3xf64> = dense<0.5>
  nn.state buffer @mean : tensor<2xf64> = dense<[0.25, -1.0]>
  nn.state buffer @var : tensor<2xf64> = dense<[2.0, 0.5]>
  func.func @main(%x: tensor<8x2x3xf64> {nn.input = "x"}, %w: tensor<8x2x3xf64> {nn.state = @w},
                  %mean: tensor<2xf64> {nn.state = @mean}, %var: tensor<2xf64> {nn.state = @var})
      -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.mul %x, %w : tensor<8x2x3xf64>
    %t = nn.transpose %h [2, 1, 0] : (tensor<8x2x3xf64>) -> tensor<3x2x8xf64>
    %n = nn.batch_norm %t, %mean, %var dim 1 momentum 0.25 epsilon 1.0e-2 : (tensor<3x2x8xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<3x2x8xf64>
    %y = nn.reduce sum %n dims [0, 1, 2] : (tensor<3x2x8xf64>) -> tensor<f64>
    return %y : tensor<f64>
  }
}

//--- channels.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<8x2x3xf64> = dense<0.5>
  nn.state buffer @mean : tensor<8xf64> = dense<0.25>
  nn.state buffer @var : tensor<8xf64> = dense<2.0>
  func.func @main(%x: tensor<8x2x3xf64> {nn.input = "x"}, %w: tensor<8x2x3xf64> {nn.state = @w},
                  %mean: tensor<8xf64> {nn.state = @mean}, %var: tensor<8xf64> {nn.state = @var})
      -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.mul %x, %w : tensor<8x2x3xf64>
    %t = nn.transpose %h [2, 0, 1] : (tensor<8x2x3xf64>) -> tensor<3x8x2xf64>
    %n = nn.batch_norm %t, %mean, %var dim 1 momentum 0.25 epsilon 1.0e-2 : (tensor<3x8x2xf64>, tensor<8xf64>, tensor<8xf64>) -> tensor<3x8x2xf64>
    %y = nn.reduce sum %n dims [0, 1, 2] : (tensor<3x8x2xf64>) -> tensor<f64>
    return %y : tensor<f64>
  }
}

//--- rows.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<8x2xf64> = dense<0.5>
  nn.state buffer @mean : tensor<2xf64> = dense<0.25>
  nn.state buffer @var : tensor<2xf64> = dense<2.0>
  func.func @main(%x: tensor<8x2xf64> {nn.input = "x"}, %w: tensor<8x2xf64> {nn.state = @w},
                  %mean: tensor<2xf64> {nn.state = @mean}, %var: tensor<2xf64> {nn.state = @var})
      -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.mul %x, %w : tensor<8x2xf64>
    %n = nn.batch_norm %h, %mean, %var dim 1 momentum 0.25 epsilon 1.0e-2 : (tensor<8x2xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<8x2xf64>
    %y = nn.reduce sum %n dims [0, 1] : (tensor<8x2xf64>) -> tensor<f64>
    return %y : tensor<f64>
  }
}

//--- computed.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<8x2xf64> = dense<0.5>
  nn.state buffer @mean : tensor<2xf64> = dense<0.25>
  func.func @main(%x: tensor<8x2xf64> {nn.input = "x"}, %w: tensor<8x2xf64> {nn.state = @w},
                  %mean: tensor<2xf64> {nn.state = @mean})
      -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.mul %x, %w : tensor<8x2xf64>
    %var = nn.mul %mean, %mean : tensor<2xf64>
    %n = nn.batch_norm %h, %mean, %var dim 1 momentum 0.25 epsilon 1.0e-2 : (tensor<8x2xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<8x2xf64>
    %y = nn.reduce sum %n dims [0, 1] : (tensor<8x2xf64>) -> tensor<f64>
    return %y : tensor<f64>
  }
}

//--- unread.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<8x2xf64> = dense<0.5>
  nn.state buffer @mean : tensor<2xf64> = dense<0.25>
  nn.state buffer @var : tensor<2xf64> = dense<2.0>
  func.func @main(%x: tensor<8x2xf64> {nn.input = "x"}, %w: tensor<8x2xf64> {nn.state = @w},
                  %mean: tensor<2xf64> {nn.state = @mean}, %var: tensor<2xf64> {nn.state = @var})
      -> (tensor<f64> {nn.output = "y"}, tensor<8x2xf64> {nn.output = "other"}) attributes {nn.entry} {
    %h = nn.mul %x, %w : tensor<8x2xf64>
    %n = nn.batch_norm %h, %mean, %var dim 1 momentum 0.25 epsilon 1.0e-2 : (tensor<8x2xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<8x2xf64>
    %y = nn.reduce sum %h dims [0, 1] : (tensor<8x2xf64>) -> tensor<f64>
    return %y, %n : tensor<f64>, tensor<8x2xf64>
  }
}
