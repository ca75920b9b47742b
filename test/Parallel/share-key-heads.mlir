// RUN: acc-opt %s --split-input-file --dist-annotate --dist-share-key-heads --dist-split-weights 2>/dev/null | FileCheck %s
// RUN: acc-opt %s --split-input-file --dist-annotate --dist-share-key-heads --dist-split-weights --dist-propagate --dist-materialize --dist-plan-reshards 2>/dev/null | FileCheck %s --check-prefix=MOVED
// RUN: acc-opt %s --split-input-file --dist-annotate --dist-share-key-heads --dist-split-weights -o /dev/null 2>&1 | FileCheck %s --check-prefix=TOLD

// Eight query heads read two key heads, and four ranks share the work: two of them a key head. The
// sum over the heads is the only exchange.
// CHECK: dist.mesh @mesh ["tp_kv" = 2, "tp" = 2]
// CHECK-LABEL: func.func @shared
// CHECK-DAG: dist.constraint %arg1 to #all-tp_kv_tp : tensor<64x64xf32>
// CHECK-DAG: dist.constraint %arg2 to #all-tp_kv : tensor<64x16xf32>
// CHECK-DAG: dist.constraint %arg3 to #all-tp_kv : tensor<64x16xf32>
// CHECK-DAG: dist.constraint %arg4 to #tp_kv_tp-all : tensor<64x64xf32>
// MOVED-LABEL: func.func @shared
// MOVED-COUNT-1: dist.reshard {{.*}}sum_over_tp_kv_tp> -> tensor<8x64x64xf32
// MOVED-NOT: dist.reshard
// TOLD-NOT: remark
module {
dist.mesh @mesh ["tp" = 4]
nn.state @q : tensor<64x64xf32> = dense<0.5>
nn.state @k : tensor<64x16xf32> = dense<0.5>
nn.state @v : tensor<64x16xf32> = dense<0.5>
nn.state @o : tensor<64x64xf32> = dense<0.5>
func.func @shared(%x: tensor<8x64x64xf32> {nn.input = "x"}, %wq: tensor<64x64xf32> {nn.state = @q}, %wk: tensor<64x16xf32> {nn.state = @k}, %wv: tensor<64x16xf32> {nn.state = @v}, %wo: tensor<64x64xf32> {nn.state = @o}) -> (tensor<8x64x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %q = nn.matmul %x, %wq : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
  %k = nn.matmul %x, %wk : (tensor<8x64x64xf32>, tensor<64x16xf32>) -> tensor<8x64x16xf32>
  %v = nn.matmul %x, %wv : (tensor<8x64x64xf32>, tensor<64x16xf32>) -> tensor<8x64x16xf32>
  %q1 = nn.reshape %q : (tensor<8x64x64xf32>) -> tensor<8x64x8x8xf32>
  %k1 = nn.reshape %k : (tensor<8x64x16xf32>) -> tensor<8x64x2x8xf32>
  %v1 = nn.reshape %v : (tensor<8x64x16xf32>) -> tensor<8x64x2x8xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x64x8x8xf32>) -> tensor<8x8x64x8xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x64x2x8xf32>) -> tensor<8x2x64x8xf32>
  %v2 = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x64x2x8xf32>) -> tensor<8x2x64x8xf32>
  %a, %l = nn.attention %q2, %k2, %v2 {causal, scale = 0.25 : f64} : (tensor<8x8x64x8xf32>, tensor<8x2x64x8xf32>, tensor<8x2x64x8xf32>) -> (tensor<8x8x64x8xf32>, tensor<8x8x64xf32>)
  %b = nn.transpose %a [0, 2, 1, 3] : (tensor<8x8x64x8xf32>) -> tensor<8x64x8x8xf32>
  %c = nn.reshape %b : (tensor<8x64x8x8xf32>) -> tensor<8x64x64xf32>
  %y = nn.matmul %c, %wo : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
  %z = nn.add %x, %y : tensor<8x64x64xf32>
  return %z : tensor<8x64x64xf32>
}
}

// -----

// One key head is everybody's: its weights are whole, and the mesh as it was.
// CHECK: dist.mesh @mesh ["tp" = 4]
// CHECK-LABEL: func.func @one
// CHECK-DAG: dist.constraint %arg1 to #all-tp : tensor<64x64xf32>
// CHECK-DAG: dist.constraint %arg2 to #all-all : tensor<64x8xf32>
// CHECK-DAG: dist.constraint %arg3 to #all-all : tensor<64x8xf32>
// CHECK-DAG: dist.constraint %arg4 to #tp-all : tensor<64x64xf32>
// MOVED-LABEL: func.func @one
// MOVED-COUNT-1: dist.reshard {{.*}}sum_over_tp> -> tensor<8x64x64xf32
// MOVED-NOT: dist.reshard
module {
dist.mesh @mesh ["tp" = 4]
nn.state @q : tensor<64x64xf32> = dense<0.5>
nn.state @k : tensor<64x8xf32> = dense<0.5>
nn.state @v : tensor<64x8xf32> = dense<0.5>
nn.state @o : tensor<64x64xf32> = dense<0.5>
func.func @one(%x: tensor<8x64x64xf32> {nn.input = "x"}, %wq: tensor<64x64xf32> {nn.state = @q}, %wk: tensor<64x8xf32> {nn.state = @k}, %wv: tensor<64x8xf32> {nn.state = @v}, %wo: tensor<64x64xf32> {nn.state = @o}) -> (tensor<8x64x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %q = nn.matmul %x, %wq : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
  %k = nn.matmul %x, %wk : (tensor<8x64x64xf32>, tensor<64x8xf32>) -> tensor<8x64x8xf32>
  %v = nn.matmul %x, %wv : (tensor<8x64x64xf32>, tensor<64x8xf32>) -> tensor<8x64x8xf32>
  %q1 = nn.reshape %q : (tensor<8x64x64xf32>) -> tensor<8x64x8x8xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x64x8x8xf32>) -> tensor<8x8x64x8xf32>
  %k2 = nn.reshape %k : (tensor<8x64x8xf32>) -> tensor<8x1x64x8xf32>
  %v2 = nn.reshape %v : (tensor<8x64x8xf32>) -> tensor<8x1x64x8xf32>
  %a, %l = nn.attention %q2, %k2, %v2 {causal, scale = 0.25 : f64} : (tensor<8x8x64x8xf32>, tensor<8x1x64x8xf32>, tensor<8x1x64x8xf32>) -> (tensor<8x8x64x8xf32>, tensor<8x8x64xf32>)
  %b = nn.transpose %a [0, 2, 1, 3] : (tensor<8x8x64x8xf32>) -> tensor<8x64x8x8xf32>
  %c = nn.reshape %b : (tensor<8x64x8x8xf32>) -> tensor<8x64x64xf32>
  %y = nn.matmul %c, %wo : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
  %z = nn.add %x, %y : tensor<8x64x64xf32>
  return %z : tensor<8x64x64xf32>
}
}

// -----

// Eight ranks divide neither four query heads nor two key heads: these stay whole, which is told.
// CHECK: dist.mesh @mesh ["tp" = 8]
// CHECK-LABEL: func.func @neither
// MOVED-LABEL: func.func @neither
// TOLD: remark: dimension 1 of state @q has size 64, in 2 parts of 32 that stay together, which the 8 ranks of 'tp' do not divide: it stays whole
module {
dist.mesh @mesh ["tp" = 8]
nn.state @q : tensor<64x64xf32> = dense<0.5>
nn.state @k : tensor<64x32xf32> = dense<0.5>
nn.state @v : tensor<64x32xf32> = dense<0.5>
nn.state @o : tensor<64x64xf32> = dense<0.5>
func.func @neither(%x: tensor<8x64x64xf32> {nn.input = "x"}, %wq: tensor<64x64xf32> {nn.state = @q}, %wk: tensor<64x32xf32> {nn.state = @k}, %wv: tensor<64x32xf32> {nn.state = @v}, %wo: tensor<64x64xf32> {nn.state = @o}) -> (tensor<8x64x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %q = nn.matmul %x, %wq : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
  %k = nn.matmul %x, %wk : (tensor<8x64x64xf32>, tensor<64x32xf32>) -> tensor<8x64x32xf32>
  %v = nn.matmul %x, %wv : (tensor<8x64x64xf32>, tensor<64x32xf32>) -> tensor<8x64x32xf32>
  %q1 = nn.reshape %q : (tensor<8x64x64xf32>) -> tensor<8x64x4x16xf32>
  %k1 = nn.reshape %k : (tensor<8x64x32xf32>) -> tensor<8x64x2x16xf32>
  %v1 = nn.reshape %v : (tensor<8x64x32xf32>) -> tensor<8x64x2x16xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x64x4x16xf32>) -> tensor<8x4x64x16xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x64x2x16xf32>) -> tensor<8x2x64x16xf32>
  %v2 = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x64x2x16xf32>) -> tensor<8x2x64x16xf32>
  %a, %l = nn.attention %q2, %k2, %v2 {causal, scale = 0.25 : f64} : (tensor<8x4x64x16xf32>, tensor<8x2x64x16xf32>, tensor<8x2x64x16xf32>) -> (tensor<8x4x64x16xf32>, tensor<8x4x64xf32>)
  %b = nn.transpose %a [0, 2, 1, 3] : (tensor<8x4x64x16xf32>) -> tensor<8x64x4x16xf32>
  %c = nn.reshape %b : (tensor<8x64x4x16xf32>) -> tensor<8x64x64xf32>
  %y = nn.matmul %c, %wo : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
  %z = nn.add %x, %y : tensor<8x64x64xf32>
  return %z : tensor<8x64x64xf32>
}
}

// -----

// What the text splits over `tp` was meant for the axis as it is.
// CHECK: dist.mesh @mesh ["tp" = 4]
// CHECK-LABEL: func.func @placed
module {
dist.mesh @mesh ["tp" = 4]
func.func @placed(%q: tensor<8x8x64x8xf32> {nn.input = "q"}, %k: tensor<8x2x64x8xf32> {nn.input = "k"}) -> (tensor<8x8x64x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %p = dist.constraint %q to <@mesh, [{}, {}, {tp}, {}]> : tensor<8x8x64x8xf32>
  %a, %l = nn.attention %p, %k, %k {causal, scale = 0.25 : f64} : (tensor<8x8x64x8xf32>, tensor<8x2x64x8xf32>, tensor<8x2x64x8xf32>) -> (tensor<8x8x64x8xf32>, tensor<8x8x64xf32>)
  return %a : tensor<8x8x64x8xf32>
}
}

// -----

// Each of the two axes has the link of the one that they were.
// CHECK: dist.mesh @mesh ["dp_replicate" = 2, "tp_kv" = 2, "tp" = 2] links [#dist.link<alpha = 1.000000e+00 : f64, beta = 2.000000e+00 : f64>, #dist.link<alpha = 3.000000e+00 : f64, beta = 4.000000e+00 : f64>, #dist.link<alpha = 3.000000e+00 : f64, beta = 4.000000e+00 : f64>]
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 4] links [#dist.link<alpha = 1.0 : f64, beta = 2.0 : f64>, #dist.link<alpha = 3.0 : f64, beta = 4.0 : f64>]
func.func @linked(%q: tensor<8x8x64x8xf32> {nn.input = "q"}, %k: tensor<8x2x64x8xf32> {nn.input = "k"}) -> (tensor<8x8x64x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %a, %l = nn.attention %q, %k, %k {causal, scale = 0.25 : f64} : (tensor<8x8x64x8xf32>, tensor<8x2x64x8xf32>, tensor<8x2x64x8xf32>) -> (tensor<8x8x64x8xf32>, tensor<8x8x64xf32>)
  return %a : tensor<8x8x64x8xf32>
}
}
