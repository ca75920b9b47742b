// The smallest numbers of ranks are combined as sums are, and are none: less than
// the smallest is not the smallest of less. A gradient has its piece of them.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/smallest.mlir --accel-run-phases="to=dist mesh=dp=2 set=zero_stage=2" | FileCheck %s
// RUN: acc-opt %t/smallest.mlir --accel-run-phases="to=local mesh=dp=2 set=zero_stage=2" -o %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %t/smallest.mlir --tolerance 1e-14
// RUN: acc-opt %t/placed.mlir --dist-order-reductions=stage=2 | FileCheck %s --check-prefix=ORDER

// CHECK-LABEL: func.func @main(
// CHECK: %[[LOW:.*]] = nn.reduce min {{.*}} -> tensor<4xf64, {{.*}}min_over_dp_shard>
// CHECK-NEXT: %[[ALL:.*]] = dist.reshard %[[LOW]] {{.*}} -> tensor<4xf64, #all>
// CHECK-NOT: min_over
// CHECK: nn.neg %{{.*}} : tensor<4x4xf64, #dp_shard-all>
// CHECK-NOT: min_over
// CHECK: nn.gradient

//--- smallest.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf64> = dense<0.5>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w})
    -> (tensor<f64> {nn.output = "loss"}, tensor<4x4xf64> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %low = nn.reduce min %y dims [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %loss = nn.reduce sum %low dims [0] : (tensor<4xf64>) -> tensor<f64>
  %d = nn.matmul %x, %y {transpose_lhs} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
  %lows = nn.broadcast %low : (tensor<4xf64>) -> tensor<4x4xf64>
  %less = nn.neg %lows : tensor<4x4xf64>
  %dw = nn.add %d, %less : tensor<4x4xf64>
  %gw = nn.gradient %dw of @w : tensor<4x4xf64>
  %w1 = nn.sub %w, %gw : tensor<4x4xf64>
  return %loss, %w1 : tensor<f64>, tensor<4x4xf64>
}
}

// One that comes in pieces is left as it is.
// ORDER-LABEL: func.func @main(
// ORDER-NEXT: dist.reshard %arg0 : tensor<4x4xf64, {{.*}}min_over_{{.*}}> -> tensor<4x4xf64, #dp_shard-all>
// ORDER-NEXT: nn.neg

//--- placed.mlir
#term = #dist.sharding<@mesh, [{}, {}], partial = {dp_replicate, dp_shard}, reduce = min>
#piece = #dist.sharding<@mesh, [{dp_shard}, {}]>
module {
dist.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
nn.state @w : tensor<4x4xf64, #piece> = dense<0.0>
func.func @main(%low: tensor<4x4xf64, #term>) -> tensor<4x4xf64, #piece> {
  %0 = dist.reshard %low : tensor<4x4xf64, #term> -> tensor<4x4xf64, #piece>
  %1 = nn.neg %0 : tensor<4x4xf64, #piece>
  %g = nn.gradient %1 of @w : tensor<4x4xf64, #piece>
  return %g : tensor<4x4xf64, #piece>
}
}
