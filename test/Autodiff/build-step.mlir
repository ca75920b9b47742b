// RUN: acc-opt %s --split-input-file --nn-build-step="loss=y optimizer=sgd set=optimizer.lr=0.5" --canonicalize --cse | FileCheck %s
// RUN: acc-opt %s --split-input-file --nn-build-step="loss=cross_entropy:z,labels optimizer=sgd set=optimizer.momentum=0.5,gradient_clipping=2 trainable=al* frozen=* emit-gradients" --canonicalize --cse 2>/dev/null | FileCheck %s --check-prefix=OTHER

// A whole step: marker, norm, verdict, learning rate, update, counts. The output that is no
// loss is gone, and what computed it.
// CHECK: module attributes {accel.parameter_groups = [{lr_multiplier = 1.000000e+00 : f64, optimizer = "sgd", parameters = ["w"], weight_decay = 0.000000e+00 : f64, why = {weight_decay = "optimizer.weight_decay"}}], accel.phase = "nn", accel.reports = ["loss", "grad_norm", "lr", "verdict"]}
// CHECK: nn.state @w : tensor<3x2xf32> = dense<1.000000e+00> {aliases = ["alias"]}
// CHECK: nn.state counter @"counter/step" : tensor<i64> = dense<0>
// CHECK: nn.state counter @"counter/call" : tensor<i64> = dense<0>
// CHECK: func.func @step(%[[X:.*]]: tensor<3x2xf32> {nn.input = "x"}, %[[W:.*]]: tensor<3x2xf32> {nn.state = @w}, %{{.*}}: tensor<2xf32> {nn.state = @still}, %[[N:.*]]: tensor<i64> {nn.state = @"counter/step"}, %[[CALLS:.*]]: tensor<i64> {nn.state = @"counter/call"})
// CHECK-SAME: -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"}, tensor<f32> {nn.output = "lr"}, tensor<i32> {nn.output = "verdict"}, tensor<3x2xf32> {nn.state = @w}, tensor<i64> {nn.state = @"counter/step"}, tensor<i64> {nn.state = @"counter/call"}) attributes {nn.entry = #nn<entry step>}
// CHECK-NOT: nn.exp
// CHECK-DAG: %[[RATES:.*]] = nn.constant dense<5.000000e-01> : tensor<3x2xf32>
// CHECK-DAG: %[[RATE:.*]] = nn.constant dense<5.000000e-01> : tensor<f32>
// CHECK-DAG: %[[INF:.*]] = nn.constant dense<0x7F800000> : tensor<f32>
// CHECK-DAG: %[[ONE:.*]] = nn.constant dense<1> : tensor<i64>
// CHECK-DAG: %[[DONE:.*]] = nn.constant dense<0> : tensor<i32>
// CHECK-DAG: %[[FAILED:.*]] = nn.constant dense<2> : tensor<i32>
// CHECK: %[[LOSS:.*]] = nn.reduce sum
// CHECK: %[[G:.*]] = nn.gradient %[[X]] of @w
// CHECK: %[[SQUARES:.*]] = nn.mul %[[G]], %[[G]]
// CHECK: %[[ROWS:.*]] = nn.reduce sum %[[SQUARES]] dims [1] : (tensor<3x2xf32>) -> tensor<3xf32>
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[ROWS]] dims [0]
// CHECK: %[[NORM:.*]] = nn.sqrt %[[SUM]]
// CHECK: %[[SIZE:.*]] = nn.abs %[[NORM]]
// CHECK: %[[NORMAL:.*]] = nn.compare lt %[[SIZE]], %[[INF]]
// CHECK: %[[LOSSES:.*]] = nn.abs %[[LOSS]]
// CHECK: %[[FINITE:.*]] = nn.compare lt %[[LOSSES]], %[[INF]]
// CHECK: %[[BOTH:.*]] = nn.and %[[NORMAL]], %[[FINITE]]
// CHECK: %[[VERDICT:.*]] = nn.select %[[BOTH]], %[[DONE]], %[[FAILED]]
// CHECK: %[[OK:.*]] = nn.compare eq %[[VERDICT]], %[[DONE]]
// CHECK: %[[NEXT:.*]] = nn.add %[[N]], %[[ONE]]
// CHECK: %[[MOVE:.*]] = nn.mul %[[G]], %[[RATES]]
// CHECK: %[[NEW:.*]] = nn.sub %[[W]], %[[MOVE]]
// CHECK: %[[OKS:.*]] = nn.broadcast %[[OK]]
// CHECK: %[[KEPT:.*]] = nn.select %[[OKS]], %[[NEW]], %[[W]]
// CHECK: %[[COUNT:.*]] = nn.select %[[OK]], %[[NEXT]], %[[N]]
// CHECK: %[[BAD:.*]] = nn.compare eq %[[VERDICT]], %[[FAILED]]
// CHECK: %[[CALL:.*]] = nn.add %[[CALLS]], %[[ONE]]
// CHECK: %[[CALLED:.*]] = nn.select %[[BAD]], %[[CALLS]], %[[CALL]]
// CHECK: return %[[LOSS]], %[[NORM]], %[[RATE]], %[[VERDICT]], %[[KEPT]], %[[COUNT]], %[[CALLED]]

// A cross-entropy of labels that become an input; all frozen but what an alias
// names; gradients returned as they are before clipping.
// OTHER: nn.state @w : tensor<3x2xf32> = dense<{{.*}}> {aliases = ["alias"]}
// OTHER: nn.state @still : tensor<2xf32> = dense<{{.*}}> {frozen}
// OTHER: nn.state moment @"momentum_buffer/w" : tensor<3x2xf32> = dense<0.000000e+00>
// OTHER: func.func @step(%{{.*}}: tensor<3x2xf32> {nn.input = "x"}, %[[LABELS:.*]]: tensor<3xi64> {nn.input = "labels"}, %{{.*}}: tensor<3x2xf32> {nn.state = @w}, %{{.*}}: tensor<2xf32> {nn.state = @still}, %[[BUFFER:.*]]: tensor<3x2xf32> {nn.state = @"momentum_buffer/w"}, %{{.*}}: tensor<i64> {nn.state = @"counter/step"}, %{{.*}}: tensor<i64> {nn.state = @"counter/call"})
// OTHER-SAME: tensor<f32> {nn.output = "lr"}, tensor<i32> {nn.output = "verdict"}, tensor<3x2xf32> {nn.output = "w.grad"}, tensor<3x2xf32> {nn.state = @w}, tensor<3x2xf32> {nn.state = @"momentum_buffer/w"}, tensor<i64>
// OTHER-DAG: %[[IGNORED:.*]] = nn.constant dense<-100> : tensor<3xi64>
// OTHER-DAG: %[[LIMIT:.*]] = nn.constant dense<2.000000e+00> : tensor<f32>
// OTHER-DAG: %[[TINY:.*]] = nn.constant dense<9.99999997E-7> : tensor<f32>
// OTHER-DAG: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// OTHER: %[[NLL:.*]] = nn.cross_entropy %{{.*}}, %[[LABELS]] {{.*}} -> tensor<3xf32>
// OTHER: %[[COUNTS:.*]] = nn.compare ne %[[LABELS]], %[[IGNORED]]
// OTHER: %[[FLOATS:.*]] = nn.cast %[[COUNTS]]
// OTHER: %[[SUM:.*]] = nn.reduce sum %[[NLL]] dims [0]
// OTHER: %[[COUNT:.*]] = nn.reduce sum %[[FLOATS]] dims [0]
// OTHER: %[[LOSS:.*]] = nn.div %[[SUM]], %[[COUNT]]
// OTHER: %[[G:.*]] = nn.gradient %{{.*}} of @w
// OTHER: %[[NORM:.*]] = nn.sqrt
// OTHER: %[[SAFE:.*]] = nn.add %[[NORM]], %[[TINY]]
// OTHER: %[[RATIO:.*]] = nn.div %[[LIMIT]], %[[SAFE]]
// OTHER: %[[CLIP:.*]] = nn.min %[[ONE]], %[[RATIO]]
// OTHER: %[[CLIPS:.*]] = nn.broadcast %[[CLIP]]
// OTHER: %[[CLIPPED:.*]] = nn.mul %[[G]], %[[CLIPS]]
// OTHER: %[[OLD:.*]] = nn.mul %[[BUFFER]],
// OTHER: nn.add %[[OLD]], %[[CLIPPED]]
// OTHER: return %[[LOSS]], %[[NORM]], %{{.*}}, %{{.*}}, %[[G]],
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<3x2xf32> = dense<1.0> {aliases = ["alias"]}
  nn.state @still : tensor<2xf32> = dense<1.0> {frozen}
  func.func @main(%x: tensor<3x2xf32> {nn.input = "x"}, %w: tensor<3x2xf32> {nn.state = @w}, %s: tensor<2xf32> {nn.state = @still})
      -> (tensor<f32> {nn.output = "y"}, tensor<3x2xf32> {nn.output = "z"}) attributes {nn.entry} {
    %p = nn.mul %x, %w : tensor<3x2xf32>
    %y = nn.reduce sum %p dims [0, 1] : (tensor<3x2xf32>) -> tensor<f32>
    %z = nn.exp %p : tensor<3x2xf32>
    return %y, %z : tensor<f32>, tensor<3x2xf32>
  }
}
