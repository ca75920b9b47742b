// A gradient that a penalty adds to is summed in pieces all the same.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{stage} = 2
// DEFINE: %{layout} = mesh=dp=2
// DEFINE: %{equal} = acc-opt %t/penalties.mlir --accel-run-phases="to=local set=zero_stage=%{stage} %{layout}" -o %t/local.mlir && acc-eval %t/local.mlir --compare %t/penalties.mlir --tolerance 1e-14
// RUN: acc-opt %t/penalties.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients | FileCheck %s
// RUN: acc-opt %t/penalties.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=3" --dist-scatter-gradients | FileCheck %s --check-prefix=THREE
// RUN: acc-opt %t/penalties.mlir --accel-run-phases="to=local mesh=dp=2 set=zero_stage=2" | FileCheck %s --check-prefix=ONCE
// RUN: acc-opt %t/penalties.mlir --accel-run-phases="to=local mesh=dp=2 micro-batches=2 set=zero_stage=2" | FileCheck %s --check-prefix=PARTS
// RUN: %{equal}
// REDEFINE: %{layout} = mesh=dp=2 micro-batches=2
// RUN: %{equal}
// REDEFINE: %{stage} = 1
// RUN: %{equal}
// REDEFINE: %{stage} = 3
// RUN: %{equal}
// REDEFINE: %{layout} = mesh=dp_replicate=2,dp_shard=2 micro-batches=2
// RUN: %{equal}
// RUN: acc-opt %t/padded.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients | FileCheck %s --check-prefix=PADDED
// RUN: acc-opt %t/rounded.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients | FileCheck %s --check-prefix=ROUNDED
// RUN: acc-opt %t/stops.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients | FileCheck %s --check-prefix=STOPS
// RUN: acc-opt %t/stops.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients | FileCheck %s --check-prefix=SCATTERS
// RUN: acc-opt %t/forward.mlir --accel-run-phases="to=decided mesh=dp=2 set=zero_stage=2" --dist-scatter-gradients | FileCheck %s --check-prefix=FORWARD
// RUN: acc-opt %t/placed.mlir --dist-slice-gradients | FileCheck %s --check-prefix=PLACED
// RUN: sed '/dist.mesh/d' %t/placed.mlir | acc-opt --dist-slice-gradients | FileCheck %s --check-prefix=NOWHERE

// No number of ranks is summed whole but the loss, at once or at the end.
// ONCE-COUNT-1: dist.all_reduce
// ONCE-NOT: dist.all_reduce
// PARTS-NOT: dist.all_reduce {{.*}}x{{.*}}f64
// PARTS-COUNT-2: dist.reduce_scatter

// The sum is a scatter, and the piece of the penalty is made of that of the weight.
// CHECK-LABEL: func.func @main(
// CHECK: %[[DW:.*]] = nn.matmul {{.*}} -> tensor<4x4xf64, {{.*}}sum_over_dp_shard
// CHECK-NEXT: %[[SW:.*]] = dist.reshard %[[DW]] {{.*}} -> tensor<4x4xf64, #dp_shard-all>
// CHECK: %[[W:.*]] = dist.reshard %arg1 {{.*}} -> tensor<4x4xf64, #dp_shard-all>
// CHECK: %[[PW:.*]] = nn.mul %{{.*}}, %[[W]] : {{.*}}tensor<4x4xf64, #dp_shard-all>
// CHECK: %[[GW:.*]] = nn.add %[[SW]], %[[PW]] : {{.*}}tensor<4x4xf64, #dp_shard-all>
// What views a sum views its terms; a piece of a view is a view of a piece.
// CHECK: %[[VT:.*]] = nn.transpose %{{.*}} -> tensor<4x6xf64, {{.*}}sum_over_dp_shard
// CHECK-NEXT: dist.reshard %[[VT]] {{.*}} -> tensor<4x6xf64, #dp_shard-all>
// CHECK: %[[T:.*]] = dist.reshard %arg2 {{.*}} -> tensor<4x6xf64, #dp_shard-all>
// CHECK: nn.transpose %[[T]] {{.*}} -> tensor<6x4xf64, #all-dp_shard>
// CHECK: nn.gradient %[[GW]] of @w

// Where the weight is in pieces, its penalty is of these: nothing is gathered.
// THREE: nn.mul %{{.*}}, %arg1 : tensor<4x4xf64, #dp_shard-all>

//--- penalties.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf64> = dense<0.5>
nn.state @t : tensor<4x6xf64> = dense<0.75>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w}, %t: tensor<4x6xf64> {nn.state = @t})
    -> (tensor<f64> {nn.output = "loss"}, tensor<4x4xf64> {nn.state = @w}, tensor<4x6xf64> {nn.state = @t}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %dw = nn.matmul %x, %y {transpose_lhs} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
  %c = nn.constant dense<0.1> : tensor<4x4xf64>
  %pw = nn.mul %c, %w : tensor<4x4xf64>
  %sw = nn.add %dw, %pw : tensor<4x4xf64>
  %y3 = nn.slice %y starts [0, 0] sizes [8, 3] steps [1, 1] : (tensor<8x4xf64>) -> tensor<8x3xf64>
  %z = nn.concat %y3, %y3 dim 1 : (tensor<8x3xf64>, tensor<8x3xf64>) -> tensor<8x6xf64>
  %dt = nn.matmul %z, %x {transpose_lhs} : (tensor<8x6xf64>, tensor<8x4xf64>) -> tensor<6x4xf64>
  %tt = nn.transpose %t [1, 0] : (tensor<4x6xf64>) -> tensor<6x4xf64>
  %at = nn.add %dt, %tt : tensor<6x4xf64>
  %st = nn.transpose %at [1, 0] : (tensor<6x4xf64>) -> tensor<4x6xf64>
  %gw = nn.gradient %sw of @w : tensor<4x4xf64>
  %gt = nn.gradient %st of @t : tensor<4x6xf64>
  %w1 = nn.sub %w, %gw : tensor<4x4xf64>
  %t1 = nn.sub %t, %gt : tensor<4x6xf64>
  return %loss, %w1, %t1 : tensor<f64>, tensor<4x4xf64>, tensor<4x6xf64>
}
}

// What pads a whole gradient pads each of its terms.
// PADDED: %[[DB:.*]] = nn.reduce sum {{.*}} -> tensor<3xf64, {{.*}}sum_over_dp_shard
// PADDED: %[[PB:.*]] = nn.pad %[[DB]], {{.*}} -> tensor<4xf64, {{.*}}sum_over_dp_shard
// PADDED: %[[SB:.*]] = dist.reshard %[[PB]] {{.*}} -> tensor<4xf64, #dp_shard>
// PADDED: nn.sub %[[SB]], {{.*}}tensor<4xf64, #dp_shard>

//--- padded.mlir
module attributes {accel.phase = "train"} {
nn.state @b : tensor<3xf64> = dense<0.25>
func.func @main(%x: tensor<8x3xf64> {nn.input = "x"}, %b: tensor<3xf64> {nn.state = @b})
    -> (tensor<f64> {nn.output = "loss"}, tensor<3xf64> {nn.state = @b}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.broadcast %b : (tensor<3xf64>) -> tensor<8x3xf64>
  %z = nn.mul %x, %y : tensor<8x3xf64>
  %loss = nn.reduce sum %z dims [0, 1] : (tensor<8x3xf64>) -> tensor<f64>
  %db = nn.reduce sum %x dims [0] : (tensor<8x3xf64>) -> tensor<3xf64>
  %pb = nn.mul %b, %b : tensor<3xf64>
  %sb = nn.sub %db, %pb : tensor<3xf64>
  %gb = nn.gradient %sb of @b : tensor<3xf64>
  %b1 = nn.sub %b, %gb : tensor<3xf64>
  return %loss, %b1 : tensor<f64>, tensor<3xf64>
}
}

// Terms that are added rounded are widened first: ranks sum in f32.
// ROUNDED-LABEL: func.func @main(
// ROUNDED: %[[D:.*]] = nn.cast %{{.*}} : {{.*}}bf16{{.*}} -> tensor<4x4xf32, {{.*}}sum_over_dp_shard
// ROUNDED-NEXT: %[[S:.*]] = dist.reshard %[[D]] {{.*}} -> tensor<4x4xf32, #dp_shard-all>
// ROUNDED: nn.add %[[S]], %{{.*}}tensor<4x4xf32, #dp_shard-all>

// Without a mesh nothing is cut.
// NOWHERE: %[[S:.*]] = nn.add
// NOWHERE-NEXT: dist.reshard %[[S]]

//--- rounded.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf32> = dense<0.5>
func.func @main(%x: tensor<8x4xbf16> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.state = @w})
    -> (tensor<bf16> {nn.output = "loss"}, tensor<4x4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %h = nn.cast %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %y = nn.matmul %x, %h : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xbf16>) -> tensor<bf16>
  %d = nn.matmul %x, %y {transpose_lhs} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>
  %p = nn.mul %h, %h : tensor<4x4xbf16>
  %s = nn.add %d, %p : tensor<4x4xbf16>
  %c = nn.cast %s : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %g = nn.gradient %c of @w : tensor<4x4xf32>
  %w1 = nn.sub %w, %g : tensor<4x4xf32>
  return %loss, %w1 : tensor<bf16>, tensor<4x4xf32>
}
}

// What the forward has computed is cut, not computed again. A product of two
// weights that something reads whole is computed once; so is one that is linear
// in a sum, on the pieces. What reads all of a sum gets it.
// STOPS-LABEL: func.func @main(
// STOPS: %[[E:.*]] = nn.exp
// STOPS-NOT: nn.exp
// STOPS: %[[Q:.*]] = nn.matmul %arg2, %arg2
// STOPS-NEXT: dist.reshard %[[Q]] {dist.inserted_by = "dist-slice-gradients"}
// STOPS: dist.reshard %[[E]] {dist.inserted_by = "dist-slice-gradients"}
// STOPS: %[[A:.*]] = nn.add {{.*}}tensor<4x4xf64, #all-all>
// STOPS: nn.matmul %{{.*}}, %[[A]] : {{.*}} -> tensor<4x4xf64, #dp_shard-all>
// STOPS-NOT: nn.matmul
// STOPS: nn.matmul %{{[^,]*}}, %arg1 : {{.*}} -> tensor<4x4xf64, #dp_shard-all>
// STOPS-NOT: nn.matmul
// What several gradients add to is scattered once.
// SCATTERS-COUNT-1: sum_over_dp_shard> -> tensor<4x4xf64, #dp_shard-all>
// SCATTERS-NOT: sum_over_dp_shard> -> tensor<4x4xf64, #dp_shard-all>

//--- stops.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf64> = dense<0.5>
nn.state @v : tensor<4x4xf64> = dense<0.25>
nn.state @u : tensor<4x4xf64> = dense<0.25>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w}, %v: tensor<4x4xf64> {nn.state = @v}, %u: tensor<4x4xf64> {nn.state = @u})
    -> (tensor<f64> {nn.output = "loss"}, tensor<4x4xf64> {nn.state = @w}, tensor<4x4xf64> {nn.state = @v}, tensor<4x4xf64> {nn.state = @u}) attributes {nn.entry = #nn<entry step>} {
  %e = nn.exp %w : tensor<4x4xf64>
  %y = nn.matmul %x, %e : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %loss = nn.reduce sum %y dims [0, 1] : (tensor<8x4xf64>) -> tensor<f64>
  %d = nn.matmul %x, %y {transpose_lhs} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
  %q = nn.matmul %v, %v : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %dw = nn.add %d, %e : tensor<4x4xf64>
  %dv = nn.add %d, %q : tensor<4x4xf64>
  %k = nn.add %d, %q : tensor<4x4xf64>
  %cu = nn.matmul %v, %k : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %ku = nn.add %d, %w : tensor<4x4xf64>
  %mu = nn.matmul %ku, %w : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %du = nn.add %cu, %mu : tensor<4x4xf64>
  %gw = nn.gradient %dw of @w : tensor<4x4xf64>
  %gv = nn.gradient %dv of @v : tensor<4x4xf64>
  %gu = nn.gradient %du of @u : tensor<4x4xf64>
  %w1 = nn.sub %w, %gw : tensor<4x4xf64>
  %v1 = nn.sub %v, %gv : tensor<4x4xf64>
  %u1 = nn.sub %u, %gu : tensor<4x4xf64>
  return %loss, %w1, %v1, %u1 : tensor<f64>, tensor<4x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>
}
}

// What the forward has summed or added whole is cut, neither summed nor added
// again.
// FORWARD-LABEL: func.func @main(
// FORWARD: %[[S:.*]] = dist.reshard {{.*}}sum_over_dp_shard{{.*}} -> tensor<4x4xf64, #all-all>
// FORWARD: %[[A:.*]] = nn.add %[[S]], %arg1
// FORWARD: dist.reshard %[[S]] {dist.inserted_by = "dist-slice-gradients"}
// FORWARD: dist.reshard %[[A]] {dist.inserted_by = "dist-slice-gradients"}

//--- forward.mlir
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x4xf64> = dense<0.5>
nn.state @v : tensor<4x4xf64> = dense<0.25>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w}, %v: tensor<4x4xf64> {nn.state = @v})
    -> (tensor<f64> {nn.output = "loss"}, tensor<4x4xf64> {nn.state = @w}, tensor<4x4xf64> {nn.state = @v}) attributes {nn.entry = #nn<entry step>} {
  %s = nn.matmul %x, %x {transpose_lhs} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
  %a = nn.add %s, %w : tensor<4x4xf64>
  %e = nn.exp %a : tensor<4x4xf64>
  %loss = nn.reduce sum %e dims [0, 1] : (tensor<4x4xf64>) -> tensor<f64>
  %q = nn.mul %s, %s : tensor<4x4xf64>
  %t = nn.transpose %a [1, 0] : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %gw = nn.gradient %q of @w : tensor<4x4xf64>
  %gv = nn.gradient %t of @v : tensor<4x4xf64>
  %w1 = nn.sub %w, %gw : tensor<4x4xf64>
  %v1 = nn.sub %v, %gv : tensor<4x4xf64>
  return %loss, %w1, %v1 : tensor<f64>, tensor<4x4xf64>, tensor<4x4xf64>
}
}

// A gradient that is in other pieces moves once, not each of its terms.
// PLACED-LABEL: func.func @main(
// PLACED: %[[S:.*]] = nn.add %arg0, %arg1
// PLACED-NEXT: %[[P:.*]] = dist.reshard %[[S]]
// PLACED-NEXT: nn.gradient %[[P]]

//--- placed.mlir
!tp = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>
!dp = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
module {
dist.mesh @mesh ["dp_shard" = 2, "tp" = 2]
nn.state @w : !dp = dense<0.5>
func.func private @declared(!dp) -> !dp
func.func @main(%a: !tp {nn.input = "a"}, %b: !tp {nn.input = "b"}, %w: !dp {nn.state = @w}) -> (!dp {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %s = nn.add %a, %b : (!tp, !tp) -> !tp
  %p = dist.reshard %s : !tp -> !dp
  %g = nn.gradient %p of @w : (!dp) -> !dp
  return %g : !dp
}
}
