// RUN: acc-opt %s --split-input-file --dist-annotate --dist-split-weights --dist-interleave-parts 2>/dev/null | FileCheck %s
// RUN: acc-opt %s --split-input-file --dist-annotate --dist-split-weights --dist-interleave-parts --dist-propagate --dist-materialize --dist-plan-reshards 2>/dev/null | FileCheck %s --check-prefix=MOVED
// Who shares states would have to pad them, if states are shared: then nothing changes.
// RUN: sed 's/"tp" = 2./"tp" = 2, "cp" = 5]/' %s | acc-opt - --split-input-file --dist-annotate --dist-split-weights --dist-interleave-parts 2>/dev/null | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/"tp" = 2./"tp" = 2, "cp" = 5]/' %s | acc-opt - --split-input-file --dist-annotate --dist-split-weights --dist-interleave-parts=stage=1 2>/dev/null | FileCheck %s --check-prefix=SHARED
// WHOLE: dist.interleaved = #dist.interleaved<
// SHARED-NOT: dist.interleaved = #dist.interleaved<

// Gate and up projection in one weight, of unequal sizes, with a bias: the ranks' shares are a dimension
// where parts are cut out, and where they are joined. What files hold comes in the order of the program.
// CHECK-LABEL: func.func @fused
// CHECK-SAME: tensor<8x48xf32> {dist.interleaved = #dist.interleaved<1[32, 16] by 2>, nn.state = @w}
// CHECK-SAME: tensor<48xf32> {dist.interleaved = #dist.interleaved<0[32, 16] by 2>, nn.state = @b}
// CHECK-SAME: %{{[^:]*}}: tensor<32x8xf32> {nn.state = @o}
// CHECK-SAME: -> (tensor<512x8xf32> {nn.output = "y"}, tensor<8x48xf32> {dist.interleaved = #dist.interleaved<1[32, 16] by 2>, nn.state = @w})
// CHECK-DAG: dist.constraint %arg2 to #tp : tensor<48xf32>
// CHECK-DAG: dist.constraint %arg3 to #tp-all : tensor<32x8xf32>
// CHECK-DAG: dist.constraint %arg4 to #tp-all : tensor<16x8xf32>
// CHECK: nn.matmul {{.*}} -> tensor<512x48xf32>
// CHECK: %[[S:.*]] = nn.add {{.*}} : tensor<512x48xf32>
// CHECK: %[[A:.*]] = nn.reshape %[[S]] : (tensor<512x48xf32>) -> tensor<512x2x24xf32>
// CHECK: %[[Q:.*]] = nn.slice %[[A]] starts [0, 0, 0] sizes [512, 2, 16] steps [1, 1, 1]
// CHECK: nn.reshape %[[Q]] : (tensor<512x2x16xf32>) -> tensor<512x32xf32>
// CHECK: %[[K:.*]] = nn.slice %{{.*}} starts [0, 0, 16] sizes [512, 2, 8] steps [1, 1, 1]
// CHECK: nn.reshape %[[K]] : (tensor<512x2x8xf32>) -> tensor<512x16xf32>
// What is joined is asked for in shares, also where it would come whole.
// CHECK: dist.constraint %{{.*}} to #any-tp : tensor<512x32xf32>
// CHECK: dist.constraint %{{.*}} to #any-tp : tensor<512x16xf32>
// CHECK: %[[C:.*]] = nn.concat {{.*}} dim 2 : (tensor<512x2x16xf32>, tensor<512x2x8xf32>) -> tensor<512x2x24xf32>
// CHECK: nn.reshape %[[C]] : (tensor<512x2x24xf32>) -> tensor<512x48xf32>
// MOVED-LABEL: func.func @fused
// MOVED-COUNT-1: dist.reshard {{.*}} : tensor<512x8xf32, #all-all-sum_over_tp> -> tensor<512x8xf32, #all-all>
// MOVED-NOT: dist.reshard
module {
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<8x48xf32> = dense<0.5>
nn.state @b : tensor<48xf32> = dense<0.5>
nn.state @o : tensor<32x8xf32> = dense<0.5>
nn.state @p : tensor<16x8xf32> = dense<0.5>
func.func @fused(%x: tensor<512x8xf32> {nn.input = "x"}, %w: tensor<8x48xf32> {nn.state = @w}, %b: tensor<48xf32> {nn.state = @b}, %o: tensor<32x8xf32> {nn.state = @o}, %p: tensor<16x8xf32> {nn.state = @p}) -> (tensor<512x8xf32> {nn.output = "y"}, tensor<8x48xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %w0 = dist.constraint %w to <@mesh, [{}, {tp} ]> : tensor<8x48xf32>
  %h = nn.matmul %x, %w0 : (tensor<512x8xf32>, tensor<8x48xf32>) -> tensor<512x48xf32>
  %c = nn.broadcast %b : (tensor<48xf32>) -> tensor<512x48xf32>
  %s = nn.add %h, %c : tensor<512x48xf32>
  %q = nn.slice %s starts [0, 0] sizes [512, 32] steps [1, 1] : (tensor<512x48xf32>) -> tensor<512x32xf32>
  %k = nn.slice %s starts [0, 32] sizes [512, 16] steps [1, 1] : (tensor<512x48xf32>) -> tensor<512x16xf32>
  %0 = nn.matmul %q, %o : (tensor<512x32xf32>, tensor<32x8xf32>) -> tensor<512x8xf32>
  %1 = nn.matmul %k, %p : (tensor<512x16xf32>, tensor<16x8xf32>) -> tensor<512x8xf32>
  %y = nn.add %0, %1 : tensor<512x8xf32>
  %d = nn.concat %q, %k dim 1 : (tensor<512x32xf32>, tensor<512x16xf32>) -> tensor<512x48xf32>
  %dw = nn.matmul %x, %d {transpose_lhs} : (tensor<512x8xf32>, tensor<512x48xf32>) -> tensor<8x48xf32>
  %new = nn.sub %w0, %dw : tensor<8x48xf32>
  return %y, %new : tensor<512x8xf32>, tensor<8x48xf32>
}
}

// -----

// A table along the parts has an order of its own, and so does what counts.
// CHECK-LABEL: func.func @ordered
// MOVED-LABEL: func.func @ordered
// CHECK-NOT: dist.interleaved
// CHECK: nn.slice {{.*}} starts [0, 0] sizes [512, 16]
module {
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<8x32xf32> = dense<0.5>
nn.state @o : tensor<16x8xf32> = dense<0.5>
func.func @ordered(%x: tensor<512x8xf32> {nn.input = "x"}, %w: tensor<8x32xf32> {nn.state = @w}, %o: tensor<16x8xf32> {nn.state = @o}) -> (tensor<512x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %w0 = dist.constraint %w to <@mesh, [{}, {tp} ]> : tensor<8x32xf32>
  %h = nn.matmul %x, %w0 : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %i = nn.iota {dim = 1 : i64} : tensor<512x32xf32>
  %s = nn.add %h, %i : tensor<512x32xf32>
  %q = nn.slice %s starts [0, 0] sizes [512, 16] steps [1, 1] : (tensor<512x32xf32>) -> tensor<512x16xf32>
  %k = nn.slice %s starts [0, 16] sizes [512, 16] steps [1, 1] : (tensor<512x32xf32>) -> tensor<512x16xf32>
  %m = nn.mul %q, %k : tensor<512x16xf32>
  %y = nn.matmul %m, %o : (tensor<512x16xf32>, tensor<16x8xf32>) -> tensor<512x8xf32>
  return %y : tensor<512x8xf32>
}
}

// -----

// So does what is given, and what a reshape takes apart elsewhere.
// CHECK-LABEL: func.func @given
// CHECK-NOT: dist.interleaved
module {
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<8x32xf32> = dense<0.5>
nn.state @o : tensor<16x8xf32> = dense<0.5>
func.func @given(%x: tensor<512x8xf32> {nn.input = "x"}, %z: tensor<32xf32> {nn.input = "z"}, %w: tensor<8x32xf32> {nn.state = @w}, %o: tensor<16x8xf32> {nn.state = @o}) -> (tensor<512x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %w0 = dist.constraint %w to <@mesh, [{}, {tp} ]> : tensor<8x32xf32>
  %h = nn.matmul %x, %w0 : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %i = nn.broadcast %z : (tensor<32xf32>) -> tensor<512x32xf32>
  %s = nn.add %h, %i : tensor<512x32xf32>
  %q = nn.slice %s starts [0, 0] sizes [512, 16] steps [1, 1] : (tensor<512x32xf32>) -> tensor<512x16xf32>
  %k = nn.slice %s starts [0, 16] sizes [512, 16] steps [1, 1] : (tensor<512x32xf32>) -> tensor<512x16xf32>
  %m = nn.mul %q, %k : tensor<512x16xf32>
  %y = nn.matmul %m, %o : (tensor<512x16xf32>, tensor<16x8xf32>) -> tensor<512x8xf32>
  return %y : tensor<512x8xf32>
}
}

// -----

// A state comes in one order to all entries: one of them looks at the order.
// CHECK-LABEL: func.func @step
// CHECK-NOT: dist.interleaved
// CHECK-LABEL: func.func @forward
// CHECK-NOT: dist.interleaved
module {
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<8x32xf32> = dense<0.5>
nn.state @o : tensor<16x8xf32> = dense<0.5>
func.func @step(%x: tensor<512x8xf32> {nn.input = "x"}, %w: tensor<8x32xf32> {nn.state = @w}, %o: tensor<16x8xf32> {nn.state = @o}) -> (tensor<512x8xf32> {nn.output = "y"}) attributes {nn.entry = #nn<entry step>} {
  %w0 = dist.constraint %w to <@mesh, [{}, {tp} ]> : tensor<8x32xf32>
  %s = nn.matmul %x, %w0 : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %q = nn.slice %s starts [0, 0] sizes [512, 16] steps [1, 1] : (tensor<512x32xf32>) -> tensor<512x16xf32>
  %k = nn.slice %s starts [0, 16] sizes [512, 16] steps [1, 1] : (tensor<512x32xf32>) -> tensor<512x16xf32>
  %m = nn.mul %q, %k : tensor<512x16xf32>
  %y = nn.matmul %m, %o : (tensor<512x16xf32>, tensor<16x8xf32>) -> tensor<512x8xf32>
  return %y : tensor<512x8xf32>
}
func.func @forward(%w: tensor<8x32xf32> {nn.state = @w}) -> (tensor<8x32xf32> {nn.output = "z"}) attributes {nn.entry} {
  %w0 = dist.constraint %w to <@mesh, [{}, {tp} ]> : tensor<8x32xf32>
  %i = nn.iota {dim = 1 : i64} : tensor<8x32xf32>
  %z = nn.add %w0, %i : tensor<8x32xf32>
  return %z : tensor<8x32xf32>
}
}
