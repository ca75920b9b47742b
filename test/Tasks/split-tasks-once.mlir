// What is the same for all micro-batches is computed once, though the loop adds
// it up, and though each micro-batch gathers weights anew: gathers that the loop
// does not read are in no loop.
// RUN: rm -rf %t && mkdir %t
// DEFINE: %{stage} = 3
// DEFINE: %{layout} = micro-batches=2 mesh=dp=2
// DEFINE: %{split} = acc-opt %s --accel-run-phases="to=local %{layout} set=zero_stage=%{stage}"
// RUN: %{split} | FileCheck %s
// RUN: %{split} -o %t/local.mlir && acc-eval %t/local.mlir --compare %s --tolerance 1e-14
// REDEFINE: %{stage} = 0
// RUN: %{split} -o %t/local.mlir && acc-eval %t/local.mlir --compare %s --tolerance 1e-14
// REDEFINE: %{layout} = micro-batches=4
// RUN: %{split} -o %t/local.mlir && acc-eval %t/local.mlir --compare %s --tolerance 1e-14
// REDEFINE: %{stage} = 3
// REDEFINE: %{layout} = mesh=dp=4
// RUN: %{split} -o %t/local.mlir && acc-eval %t/local.mlir --compare %s --tolerance 1e-14

// The bias's gradient is a number of rows: made before the loop, added in it.
// CHECK: func.func private @prepare() -> tensor<2xf64>
// CHECK: nn.reduce sum
// The loop gathers the weight that its product reads, not to square it.
// CHECK: func.func private @forward
// CHECK: dist.all_gather
// CHECK: nn.matmul
// CHECK-NOT: nn.mul
// CHECK: func.func private @backward({{.*}}, %[[ROWS:[a-z0-9]+]]: tensor<2xf64>, 
// CHECK: nn.add %{{.*}}, %[[ROWS]]
// CHECK-NOT: dist.all_gather
// CHECK: func.func private @update
// CHECK: %[[W:.*]] = dist.all_gather {{.*}} dim 0
// CHECK: nn.mul %[[W]], %[[W]]
// CHECK: dist.edge @prepare 0 -> @backward 2

// loss = sum(x w + b) + sum(w²)
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf64> = dense<0.5>
nn.state @b : tensor<4xf64> = dense<0.25>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w}, %b: tensor<4xf64> {nn.state = @b}) -> (tensor<f64> {nn.output = "loss"}, tensor<4x4xf64> {nn.state = @w}, tensor<4xf64> {nn.state = @b}) attributes {nn.entry = #nn<entry step>} {
  %p = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %bb = nn.broadcast %b : (tensor<4xf64>) -> tensor<8x4xf64>
  %y = nn.add %p, %bb : tensor<8x4xf64>
  %s = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %ww = nn.mul %w, %w : tensor<4x4xf64>
  %r = nn.reduce sum %ww dims [0, 1] : (tensor<4x4xf64>) -> tensor<f64>
  %loss = nn.add %s, %r : tensor<f64>
  %one = nn.constant dense<1.0> : tensor<8x4xf64>
  %two = nn.constant dense<2.0> : tensor<4x4xf64>
  %db = nn.reduce sum %one dims [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %dp = nn.matmul %x, %one {transpose_lhs} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
  %dr = nn.mul %two, %w : tensor<4x4xf64>
  %dw = nn.add %dp, %dr : tensor<4x4xf64>
  %gw = nn.gradient %dw of @w : tensor<4x4xf64>
  %gb = nn.gradient %db of @b : tensor<4xf64>
  %lw = nn.constant dense<0.1> : tensor<4x4xf64>
  %lb = nn.constant dense<0.1> : tensor<4xf64>
  %uw = nn.mul %gw, %lw : tensor<4x4xf64>
  %ub = nn.mul %gb, %lb : tensor<4xf64>
  %w1 = nn.sub %w, %uw : tensor<4x4xf64>
  %b1 = nn.sub %b, %ub : tensor<4xf64>
  return %loss, %w1, %b1 : tensor<f64>, tensor<4x4xf64>, tensor<4xf64>
}
}
