// Sums over data-parallel ranks that nothing but gradients is made of are sent in the type that
// the step declares, in every stage of ZeRO; nothing else is.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{mesh} = dp=2
// DEFINE: %{stage} = 0
// DEFINE: %{step} = acc-opt %t/step.mlir --accel-run-phases="to=local mesh=%{mesh} micro-batches=2 set=zero_stage=%{stage}"
// RUN: %{step} | FileCheck %s --check-prefix=ONCE
// In a loop of micro-batches terms are added first, as DDP does under no_sync.
// ONCE: func.func private @backward
// ONCE-NOT: dist.all_reduce
// ONCE: func.func private @update
// ONCE: dist.all_reduce sum %{{.*}} over @mesh {dp_replicate} wire bf16 {{.*}} : tensor<4x4xf32>
// The loss is none.
// ONCE: dist.all_reduce sum %{{.*}} over @mesh {dp_replicate} {dist{{.*}} : tensor<f32>
// REDEFINE: %{stage} = 1
// RUN: %{step} | FileCheck %s --check-prefix=ONE
// ONE: func.func private @update
// ONE: dist.reduce_scatter sum %{{.*}} over @mesh {dp_shard} dim 0 wire bf16
// What it makes of the weight is no gradient.
// ONE: dist.all_gather %{{.*}} over @mesh {dp_shard} dim 0 {dist
// REDEFINE: %{stage} = 2
// REDEFINE: %{mesh} = dp_replicate=2,dp_shard=2
// RUN: %{step} | FileCheck %s --check-prefix=TWO
// TWO: func.func private @backward
// TWO: dist.reduce_scatter sum %{{.*}} over @mesh {dp_shard} dim 0 wire bf16
// TWO: func.func private @update
// TWO: dist.all_reduce sum %{{.*}} over @mesh {dp_replicate} wire bf16 {{.*}} : tensor<2x4xf32>
// REDEFINE: %{stage} = 3
// RUN: %{step} | FileCheck %s --check-prefix=THREE
// THREE: dist.all_gather {{.*}} dim 0 {dist
// THREE: dist.reduce_scatter sum %{{.*}} over @mesh {dp_shard} dim 0 wire bf16
// THREE: dist.all_reduce sum %{{.*}} over @mesh {dp_replicate} wire bf16
// REDEFINE: %{stage} = 0
// REDEFINE: %{mesh} = dp=1
// RUN: %{step} 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: warning: comm_hook compresses nothing: no gradient is summed over data-parallel ranks
// ALONE-NOT: wire bf16

// RUN: acc-opt %t/local.mlir --dist-compress-gradients | FileCheck %s
// Through what moves and adds terms.
// CHECK-LABEL: @views(
// CHECK: dist.all_reduce sum %{{.*}} over @mesh {dp} wire f16 : tensor<2x4xf32>
// CHECK-LABEL: @also_read(
// CHECK: dist.all_reduce sum %arg0 over @mesh {dp} : tensor<4xf32>
// CHECK-LABEL: @beside_tp(
// CHECK: %[[OWN:.*]] = dist.all_reduce sum %arg0 over @mesh {tp} : tensor<4xf32>
// CHECK: dist.all_reduce sum %[[OWN]] over @mesh {dp, cp} wire f16 : tensor<4xf32>
// CHECK-LABEL: @of_tp(
// CHECK: dist.all_reduce sum %arg0 over @mesh {tp} : tensor<4xf32>
// CHECK-LABEL: @scattered_over_both(
// CHECK: dist.reduce_scatter sum %arg0 over @mesh {dp, tp} dim 0 :
// CHECK-LABEL: @largest(
// CHECK: dist.all_reduce max %arg0 over @mesh {dp} : tensor<4xf32>
// CHECK-LABEL: @narrow(
// CHECK: dist.all_reduce sum %{{.*}} over @mesh {dp} : tensor<4xbf16>
// CHECK-LABEL: @scaled(
// CHECK: dist.all_reduce sum %arg0 over @mesh {dp} : tensor<4xf32>
// Rows that are added to a table are no sum of the table's terms.
// CHECK-LABEL: @rows(
// CHECK: %[[TABLE:.*]] = dist.all_reduce sum %arg0 over @mesh {dp} wire f16 : tensor<4x2xf32>
// CHECK: dist.all_reduce sum %arg1 over @mesh {dp} : tensor<3x2xf32>

//--- step.mlir
module attributes {accel.phase = "train", accel.gradient_wire = bf16} {
nn.state @w : tensor<4x4xf32> = dense<0.0>
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}, tensor<4x4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %a = nn.relu %y : tensor<8x4xf32>
  %xt = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw = nn.matmul %xt, %a : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %g = nn.gradient %dw of @w : tensor<4x4xf32>
  %w1 = nn.sub %w, %g : tensor<4x4xf32>
  return %loss, %w1 : tensor<f32>, tensor<4x4xf32>
}
}
//--- local.mlir
module attributes {accel.gradient_wire = f16} {
  dist.mesh @mesh ["dp" = 2, "cp" = 2, "tp" = 2]
  nn.state @w : tensor<4xf32> = dense<0.0>
  nn.state @m : tensor<4x2xf32> = dense<0.0>
  func.func @views(%a: tensor<2x4xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %s = dist.all_reduce sum %a over @mesh {dp} : tensor<2x4xf32>
    %t = nn.transpose %s [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %c = nn.add %t, %b : tensor<4x2xf32>
    %g = nn.gradient %c of @m : tensor<4x2xf32>
    return %g : tensor<4x2xf32>
  }
  func.func @also_read(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = dist.all_reduce sum %a over @mesh {dp} : tensor<4xf32>
    %g = nn.gradient %s of @w : tensor<4xf32>
    %e = nn.exp %s : tensor<4xf32>
    return %g, %e : tensor<4xf32>, tensor<4xf32>
  }
  func.func @beside_tp(%a: tensor<4xf32>) -> tensor<4xf32> {
    %s = dist.all_reduce sum %a over @mesh {dp, cp, tp} : tensor<4xf32>
    %g = nn.gradient %s of @w : tensor<4xf32>
    return %g : tensor<4xf32>
  }
  func.func @of_tp(%a: tensor<4xf32>) -> tensor<4xf32> {
    %s = dist.all_reduce sum %a over @mesh {tp} : tensor<4xf32>
    %g = nn.gradient %s of @w : tensor<4xf32>
    return %g : tensor<4xf32>
  }
  func.func @scattered_over_both(%a: tensor<16xf32>) -> tensor<4xf32> {
    %s = dist.reduce_scatter sum %a over @mesh {dp, tp} dim 0 : (tensor<16xf32>) -> tensor<4xf32>
    %g = nn.gradient %s of @w : tensor<4xf32>
    return %g : tensor<4xf32>
  }
  func.func @largest(%a: tensor<4xf32>) -> tensor<4xf32> {
    %s = dist.all_reduce max %a over @mesh {dp} : tensor<4xf32>
    %g = nn.gradient %s of @w : tensor<4xf32>
    return %g : tensor<4xf32>
  }
  func.func @narrow(%a: tensor<4xbf16>) -> tensor<4xf32> {
    %s = dist.all_reduce sum %a over @mesh {dp} : tensor<4xbf16>
    %c = nn.cast %s : (tensor<4xbf16>) -> tensor<4xf32>
    %g = nn.gradient %c of @w : tensor<4xf32>
    return %g : tensor<4xf32>
  }
  func.func @scaled(%a: tensor<4xf32>) -> tensor<4xf32> {
    %s = dist.all_reduce sum %a over @mesh {dp} : tensor<4xf32>
    %m = nn.mul %s, %s : tensor<4xf32>
    %g = nn.gradient %m of @w : tensor<4xf32>
    return %g : tensor<4xf32>
  }
  func.func @rows(%t: tensor<4x2xf32>, %u: tensor<3x2xf32>, %i: tensor<3xi64>) -> tensor<4x2xf32> {
    %a = dist.all_reduce sum %t over @mesh {dp} : tensor<4x2xf32>
    %b = dist.all_reduce sum %u over @mesh {dp} : tensor<3x2xf32>
    %s = nn.scatter_add %a, %i, %b dim 0 : (tensor<4x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %g = nn.gradient %s of @m : tensor<4x2xf32>
    return %g : tensor<4x2xf32>
  }
}
