// What of a weight is read scaled, bounded and rounded is made of the pieces that ranks have: its
// codes are gathered, a quarter of the bytes of f32, by unit, and again in the backward.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{step} = acc-opt %t/train.mlir --accel-run-phases
// RUN: %{step}="to=decided mesh=dp=2 set=zero_stage=3" --dist-scatter-gradients --dist-place-gathers -o %t/placed.mlir && FileCheck %s < %t/placed.mlir
// CHECK: %[[SPREAD:.*]] = nn.broadcast %arg2 {dist.instance = 0 : i64} : {{.*}} -> tensor<4x4xf32, #dp_shard-all>
// CHECK: %[[SCALED:.*]] = nn.mul %arg1, %[[SPREAD]] {dist.instance = 0 : i64} : tensor<4x4xf32, #dp_shard-all>
// CHECK: %[[ABOVE:.*]] = nn.max %[[SCALED]], {{.*}} : tensor<4x4xf32, #dp_shard-all>
// CHECK: %[[BOUNDED:.*]] = nn.min %[[ABOVE]], {{.*}} : tensor<4x4xf32, #dp_shard-all>
// CHECK: %[[CODES:.*]] = nn.cast %[[BOUNDED]] {dist.instance = 0 : i64, saturate} : (tensor<4x4xf32, #dp_shard-all>) -> tensor<4x4xf8E4M3FN, #dp_shard-all>
// CHECK: %[[WHOLE:.*]] = dist.reshard %[[CODES]] {{.*}}dist.instance = 0 : i64, dist.unit = {{.*}} -> tensor<4x4xf8E4M3FN, #all-all>
// CHECK: nn.matmul {{.*}}, %[[WHOLE]]
// The largest magnitude is that of all pieces' own.
// CHECK: %[[SIZES:.*]] = nn.abs %arg1 : tensor<4x4xf32, #dp_shard-all>
// CHECK: nn.reduce max %[[SIZES]]
// Nothing gathers the weight.
// CHECK-NOT: dist.reshard %arg1

// RUN: %{step}="to=local mesh=dp=2 set=zero_stage=3" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t/local.mlir
// LOCAL: dist.all_gather {{.*}} (tensor<2x4xf8E4M3FN>) -> tensor<4x4xf8E4M3FN>
// LOCAL: dist.all_reduce max {{.*}} : tensor<f32>
// LOCAL-NOT: dist.all_gather {{.*}}xf32

// The proof follows it, as any arithmetic on pieces, and refuses another rounding: without its scale,
// twice, to another type, without saturation, or of another bound.
// DEFINE: %{proof} = acc-opt %t/wrong.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: cp %t/local.mlir %t/wrong.mlir && %{proof}
// DEFINE: %{change} =
// DEFINE: %{refused} = sed '%{change}' %t/local.mlir > %t/wrong.mlir && not cmp -s %t/local.mlir %t/wrong.mlir && not %{proof} 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: does not follow from the logical program
// REDEFINE: %{change} = s/nn.max %2, /nn.max %arg1, /
// RUN: %{refused}
// REDEFINE: %{change} = s/%7 = nn.cast %6 .*saturate} : (tensor<2x4xf32>)/%h = nn.cast %6 : (tensor<2x4xf32>) -> tensor<2x4xbf16> %7 = nn.cast %h {saturate} : (tensor<2x4xbf16>)/
// RUN: %{refused}
// REDEFINE: %{change} = s/, saturate}/}/
// RUN: %{refused}
// REDEFINE: %{change} = s/dense<4.480000e+02>/dense<2.400000e+02>/
// RUN: %{refused}
// REDEFINE: %{change} = s/f8E4M3FN/f8E5M2/g
// RUN: %{refused}
// REDEFINE: %{change} = s/all_reduce max/all_reduce min/
// RUN: %{refused}

// Where every rank has the weight whole nothing changes; where it is read as it is, too, it is gathered as it is.
// RUN: %{step}="to=local mesh=dp=2 set=zero_stage=1" | FileCheck %s --check-prefix=ONE
// ONE-NOT: dist.all_gather {{.*}}f8E4M3FN
// RUN: sed 's/nn.matmul %xq, %q/nn.matmul %x, %m/;s/(tensor<8x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>)/(tensor<8x4xf32>, tensor<4x4xf32>)/' %t/train.mlir > %t/also.mlir
// RUN: acc-opt %t/also.mlir --accel-run-phases="to=local mesh=dp=2 set=zero_stage=3" | FileCheck %s --check-prefix=ALSO
// ALSO: dist.all_gather {{.*}} (tensor<2x4xf32>) -> tensor<4x4xf32>

// So it is with a recipe of fp8: a quarter of the bytes of f32, half of bf16's; of current scaling the
// largest magnitude, a number, goes before.
// DEFINE: %{precision} =
// DEFINE: %{recipe} = acc-opt %t/layer.mlir --train --loss=loss --entries=step %{precision} --mesh dp_shard=2 --set zero_stage=3 --explain=collectives
// RUN: %{recipe} | FileCheck %s --check-prefix=F32
// F32: forward all_gather dp_shard 2 1 1024 B f32 dist-place-gathers
// REDEFINE: %{precision} = --mixed-precision=bf16
// RUN: %{recipe} | FileCheck %s --check-prefix=BF16
// BF16: forward all_gather dp_shard 2 1 512 B bf16 dist-place-gathers
// REDEFINE: %{precision} = --mixed-precision=fp8 --set fp8.recipe=delayed
// RUN: %{recipe} | FileCheck %s --check-prefix=DELAYED
// DELAYED: forward all_gather dp_shard 2 1 256 B f8E4M3FN dist-place-gathers
// REDEFINE: %{precision} = --mixed-precision=fp8 --set fp8.recipe=current
// RUN: %{recipe} | FileCheck %s --check-prefix=CURRENT
// CURRENT: forward all_reduce dp_shard 2 1 4 B f32 dist-materialize
// CURRENT-NEXT: forward all_gather dp_shard 2 1 256 B f8E4M3FN dist-place-gathers

//--- layer.mlir
module attributes {accel.phase = "nn"} {
nn.state @w : tensor<16x32xf32> = dense<0.01>
func.func @main(%x: tensor<32x16xf32> {nn.input = "x"}, %w: tensor<16x32xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %y = nn.matmul %x, %w : (tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %squares = nn.mul %y, %y : tensor<32x32xf32>
  %loss = nn.reduce sum %squares dims [0, 1] : (tensor<32x32xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
//--- train.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf32> = dense<0.5>
nn.state buffer @scale : tensor<f32> = dense<3.0>
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.state = @w}, %s: tensor<f32> {nn.state = @scale})
    -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "amax"}, tensor<4x4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %b = nn.broadcast %s : (tensor<f32>) -> tensor<4x4xf32>
  %m = nn.mul %w, %b : tensor<4x4xf32>
  %low = nn.constant dense<-448.0> : tensor<4x4xf32>
  %high = nn.constant dense<448.0> : tensor<4x4xf32>
  %above = nn.max %m, %low : tensor<4x4xf32>
  %bounded = nn.min %above, %high : tensor<4x4xf32>
  %q = nn.cast %bounded {saturate} : (tensor<4x4xf32>) -> tensor<4x4xf8E4M3FN>
  %xq = nn.cast %x {saturate} : (tensor<8x4xf32>) -> tensor<8x4xf8E4M3FN>
  %y = nn.matmul %xq, %q : (tensor<8x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %sizes = nn.abs %w : tensor<4x4xf32>
  %rows = nn.reduce max %sizes dims [1] : (tensor<4x4xf32>) -> tensor<4xf32>
  %amax = nn.reduce max %rows dims [0] : (tensor<4xf32>) -> tensor<f32>
  %xt = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw = nn.matmul %xt, %y : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %g = nn.gradient %dw of @w : tensor<4x4xf32>
  %w1 = nn.sub %w, %g : tensor<4x4xf32>
  return %loss, %amax, %w1 : tensor<f32>, tensor<f32>, tensor<4x4xf32>
}
}
