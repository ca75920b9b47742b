// RUN: acc-opt %s --pass-pipeline="builtin.module(dist-annotate{micro-batches=2 mesh=dp=2},dist-propagate,dist-materialize,dist-declare-accumulators,dist-plan-reshards,dist-localize,local-split-tasks,local-verify)" | FileCheck %s
// RUN: acc-opt %s --pass-pipeline="builtin.module(dist-annotate{mesh=dp=2},dist-propagate,dist-materialize,dist-declare-accumulators,dist-plan-reshards,dist-localize,local-split-tasks,local-verify)" | FileCheck %s --check-prefix=ONE
// Every layout means what the whole step means (law 11).
// RUN: rm -rf %t && mkdir %t
// DEFINE: %{layout} = mesh=dp=1
// DEFINE: %{compare} = acc-opt %s --pass-pipeline="builtin.module(dist-annotate{%{layout}},dist-propagate,dist-materialize,dist-declare-accumulators,dist-plan-reshards,dist-localize,local-split-tasks,local-verify)" -o %t/local.mlir && acc-eval %t/local.mlir --compare %s --tolerance 1e-14
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=2
// RUN: %{compare}
// REDEFINE: %{layout} = micro-batches=2
// RUN: %{compare}
// REDEFINE: %{layout} = micro-batches=2 mesh=dp=4
// RUN: %{compare}
// REDEFINE: %{layout} = micro-batches=4 mesh=dp=2
// RUN: %{compare}
// REDEFINE: %{layout} = micro-batches=8
// RUN: %{compare}

// Sums over micro-batches are states; the count is known before the loop; the
// other axes are reduced once, in the update.
// CHECK: nn.state accumulator @"accumulator/sum"
// CHECK: nn.state accumulator @"accumulator/count" : tensor<f32> = dense<0.0
// CHECK: nn.state accumulator @"accumulator/w" : tensor<4x2xf32>
// CHECK: func.func private @main(tensor<2x4xf32> {{.*}}nn.input = "x"
// CHECK: func.func private @count(%{{.*}}: tensor<2x2xf32> {{.*}}nn.input = "m"}, %[[C:.*]]: tensor<f32> {{.*}}nn.state = @"accumulator/count"}) -> (tensor<f32> {{.*}}nn.state = @"accumulator/count", nn.write = #nn<write accumulate_sum>}) attributes {dist.task = #dist.task<count stage 0>}
// CHECK: nn.add %[[C]]
// CHECK: func.func private @prepare
// CHECK: dist.all_reduce sum %{{.*}} over @mesh {dp_replicate}
// CHECK: func.func private @forward
// CHECK-NOT: dist.all_reduce
// CHECK: func.func private @backward(%{{.*}}: tensor<2x2xf32>, %{{.*}}: tensor<f32>, %[[X:.*]]: tensor<2x4xf32> {{.*}}, %[[A:.*]]: tensor<4x2xf32> {{.*}}nn.state = @"accumulator/w"})
// What costs nothing is made where it is read.
// CHECK: nn.broadcast
// CHECK: %[[DW:.*]] = nn.matmul %[[X]]
// CHECK-NEXT: nn.add %[[A]], %[[DW]]
// CHECK: func.func private @update
// CHECK: dist.all_reduce sum %{{.*}} over @mesh {dp_replicate}
// CHECK-NOT: nn.gradient
// CHECK: nn.constant dense<0.000000e+00> : tensor<4x2xf32>
// CHECK: dist.schedule @main_schedule entry @main micro_batches 2
// CHECK-NEXT: dist.stage 0 {
// CHECK-NEXT: dist.loop 2 {
// CHECK-NEXT: dist.run @count[turn]
// CHECK-NEXT: }
// CHECK-NEXT: dist.run @prepare[0]
// CHECK-NEXT: dist.loop 2 {
// CHECK-NEXT: dist.run @forward[turn]
// CHECK-NEXT: dist.run @backward[turn]
// CHECK-NEXT: }
// CHECK-NEXT: dist.run @update[0]
// CHECK: dist.edge @forward {{.*}} -> @backward 0

// One micro-batch needs neither accumulators nor a count of its own.
// ONE-NOT: nn.state accumulator
// ONE: func.func private @forward
// ONE-NEXT: nn.matmul
// ONE: func.func private @backward
// ONE: dist.all_reduce sum
// ONE: func.func private @update
// ONE-NOT: dist.loop
// ONE: dist.run @forward[0]
// ONE-NEXT: dist.run @backward[0]
// ONE-NEXT: dist.run @update[0]
// Linear regression: loss = sum((x w - y)² m) / sum(m²).
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x2xf32> = dense<0.5>
nn.state counter @step : tensor<i64> = dense<0>
func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8x2xf32> {nn.input = "y"}, %m: tensor<8x2xf32> {nn.input = "m"}, %w: tensor<4x2xf32> {nn.state = @w}, %step: tensor<i64> {nn.state = @step}) -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"}, tensor<4x2xf32> {nn.output = "w.grad"}, tensor<4x2xf32> {nn.state = @w}, tensor<i64> {nn.state = @step}) attributes {nn.entry = #nn<entry step>} {
  %p = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %d = nn.sub %p, %y : tensor<8x2xf32>
  %dm = nn.mul %d, %m : tensor<8x2xf32>
  %sq = nn.mul %dm, %d : tensor<8x2xf32>
  %s = nn.reduce sum %sq dims [0, 1] : (tensor<8x2xf32>) -> tensor<f32>
  %mm = nn.mul %m, %m : tensor<8x2xf32>
  %c = nn.reduce sum %mm dims [0, 1] : (tensor<8x2xf32>) -> tensor<f32>
  %loss = nn.div %s, %c : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %k = nn.div %two, %c : tensor<f32>
  %kb = nn.broadcast %k : (tensor<f32>) -> tensor<8x2xf32>
  %dp = nn.mul %dm, %kb : tensor<8x2xf32>
  %dw = nn.matmul %x, %dp {transpose_lhs} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %g = nn.gradient %dw of @w : tensor<4x2xf32>
  %gg = nn.mul %g, %g : tensor<4x2xf32>
  %n2 = nn.reduce sum %gg dims [0, 1] : (tensor<4x2xf32>) -> tensor<f32>
  %n = nn.sqrt %n2 : tensor<f32>
  %lr = nn.constant dense<0.1> : tensor<4x2xf32>
  %u = nn.mul %g, %lr : tensor<4x2xf32>
  %w1 = nn.sub %w, %u : tensor<4x2xf32>
  %one = nn.constant dense<1> : tensor<i64>
  %s1 = nn.add %step, %one : tensor<i64>
  return %loss, %n, %g, %w1, %s1 : tensor<f32>, tensor<f32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<i64>
}
}
