// The largest |x| of a step (an amax) and the smallest x: over micro-batches in
// accumulators that begin at what changes nothing, over ranks once.
// RUN: acc-opt %s --accel-run-phases="to=dist mesh=dp=2 micro-batches=2" | FileCheck %s --check-prefix=DIST
// RUN: acc-opt %s --accel-run-phases="to=local mesh=dp=2 micro-batches=2" | FileCheck %s
// In every phase, for every layout, what one rank computes of the whole batch.
// RUN: rm -rf %t && mkdir %t
// DEFINE: %{layout} = mesh=dp=1
// DEFINE: %{phase} = plan
// DEFINE: %{compare} = acc-opt %s --accel-run-phases="to=%{phase} target=cpu:x86-64-v3 %{layout}" -o %t/m.mlir && acc-eval %t/m.mlir --compare %s --tolerance 1e-14
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=2
// RUN: %{compare}
// REDEFINE: %{phase} = dist
// RUN: %{compare}
// REDEFINE: %{phase} = local
// RUN: %{compare}
// REDEFINE: %{layout} = micro-batches=4
// REDEFINE: %{phase} = plan
// RUN: %{compare}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=4 set=zero_stage=3
// RUN: %{compare}

// DIST: nn.state accumulator @"accumulator/sum" : {{.*}}max_over_dp_replicate> = dense<{{0xFFF0000000000000|-inf}}
// DIST: dist.accumulate max
// DIST: dist.accumulate min

// CHECK-DAG: nn.write = #nn<write accumulate_max>
// CHECK-DAG: nn.write = #nn<write accumulate_min>
// CHECK-DAG: nn.max %{{.*}}, %{{.*}} : tensor<f64>
// CHECK-DAG: nn.min %{{.*}}, %{{.*}} : tensor<f64>
// CHECK: func.func private @update
// CHECK: dist.all_reduce max
// CHECK: dist.all_reduce min
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4xf64> = dense<[0.5, -1.5, 2.5, 1.0]>
nn.state buffer @amax : tensor<f64> = dense<0.25>
func.func @step(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4xf64> {nn.state = @w}, %amax: tensor<f64> {nn.state = @amax})
    -> (tensor<f64> {nn.output = "loss"}, tensor<f64> {nn.output = "grad_norm"}, tensor<f64> {nn.output = "lr"}, tensor<f64> {nn.output = "least"},
        tensor<4xf64> {nn.state = @w}, tensor<f64> {nn.state = @amax}) attributes {nn.entry = #nn<entry step>} {
  %wb = nn.broadcast %w : (tensor<4xf64>) -> tensor<8x4xf64>
  %y = nn.mul %x, %wb : tensor<8x4xf64>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %abs = nn.abs %y : tensor<8x4xf64>
  %largest = nn.reduce max %abs dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %least = nn.reduce min %x dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %dw = nn.reduce sum %x dims [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %g = nn.gradient %dw of @w : tensor<4xf64>
  %new = nn.sub %w, %g : tensor<4xf64>
  %next = nn.max %amax, %largest : tensor<f64>
  %lr = nn.constant dense<1.0> : tensor<f64>
  return %loss, %least, %lr, %least, %new, %next : tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>
}
}
