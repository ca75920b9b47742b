// RUN: acc-opt %s --split-input-file --dist-annotate --dist-split-weights | FileCheck %s
// RUN: acc-opt %s --split-input-file --dist-annotate --dist-split-weights=vocabulary=false | FileCheck %s --check-prefix=WHOLE
// RUN: acc-opt %s --split-input-file --dist-annotate --dist-split-weights --dist-propagate --dist-materialize --dist-plan-reshards | FileCheck %s --check-prefix=MOVED

// The hidden width of an MLP, from columns to rows; its bias with it. The sum is the only exchange.
// CHECK-LABEL: func.func @mlp
// CHECK-DAG: dist.constraint %arg1 to #all-tp : tensor<8x32xf32>
// CHECK-DAG: dist.constraint %arg2 to #tp : tensor<32xf32>
// CHECK-DAG: dist.constraint %arg3 to #tp-all : tensor<32x8xf32>
// CHECK-DAG: dist.constraint %arg4 to #all : tensor<8xf32>
// MOVED-LABEL: func.func @mlp
// MOVED-COUNT-1: dist.reshard {{.*}} : tensor<512x8xf32, #dp_replicate-all-sum_over_tp> -> tensor<512x8xf32, #dp_replicate-all>
// MOVED-NOT: dist.reshard
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @up : tensor<8x32xf32> = dense<0.5>
nn.state @bias : tensor<32xf32> = dense<0.5>
nn.state @down : tensor<32x8xf32> = dense<0.5>
nn.state @shift : tensor<8xf32> = dense<0.5>
func.func @mlp(%x: tensor<512x8xf32> {nn.input = "x"}, %up: tensor<8x32xf32> {nn.state = @up}, %bias: tensor<32xf32> {nn.state = @bias}, %down: tensor<32x8xf32> {nn.state = @down}, %shift: tensor<8xf32> {nn.state = @shift}) -> (tensor<512x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %h = nn.matmul %x, %up : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %b = nn.broadcast %bias : (tensor<32xf32>) -> tensor<512x32xf32>
  %s = nn.add %h, %b : tensor<512x32xf32>
  %g = nn.gelu erf %s : tensor<512x32xf32>
  %y = nn.matmul %g, %down : (tensor<512x32xf32>, tensor<32x8xf32>) -> tensor<512x8xf32>
  %c = nn.broadcast %shift : (tensor<8xf32>) -> tensor<512x8xf32>
  %r = nn.add %y, %c : tensor<512x8xf32>
  %z = nn.add %r, %x : tensor<512x8xf32>
  return %z : tensor<512x8xf32>
}
}

// -----

// Heads: they lead the columns of three weights, and the rows of a fourth. Key heads are half as many.
// CHECK-LABEL: func.func @attend
// CHECK-DAG: dist.constraint %arg1 to #all-tp : tensor<32x32xf32>
// CHECK-DAG: dist.constraint %arg2 to #all-tp : tensor<32x16xf32>
// CHECK-DAG: dist.constraint %arg3 to #all-tp : tensor<32x16xf32>
// CHECK-DAG: dist.constraint %arg4 to #tp-all : tensor<32x32xf32>
// MOVED-LABEL: func.func @attend
// MOVED-COUNT-1: dist.reshard {{.*}}sum_over_tp> -> tensor<8x64x32xf32, #dp_replicate-all-all>
// MOVED-NOT: dist.reshard
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @q : tensor<32x32xf32> = dense<0.5>
nn.state @k : tensor<32x16xf32> = dense<0.5>
nn.state @v : tensor<32x16xf32> = dense<0.5>
nn.state @o : tensor<32x32xf32> = dense<0.5>
func.func @attend(%x: tensor<8x64x32xf32> {nn.input = "x"}, %wq: tensor<32x32xf32> {nn.state = @q}, %wk: tensor<32x16xf32> {nn.state = @k}, %wv: tensor<32x16xf32> {nn.state = @v}, %wo: tensor<32x32xf32> {nn.state = @o}) -> (tensor<8x64x32xf32> {nn.output = "y"}) attributes {nn.entry} {
  %q = nn.matmul %x, %wq : (tensor<8x64x32xf32>, tensor<32x32xf32>) -> tensor<8x64x32xf32>
  %k = nn.matmul %x, %wk : (tensor<8x64x32xf32>, tensor<32x16xf32>) -> tensor<8x64x16xf32>
  %v = nn.matmul %x, %wv : (tensor<8x64x32xf32>, tensor<32x16xf32>) -> tensor<8x64x16xf32>
  %q1 = nn.reshape %q : (tensor<8x64x32xf32>) -> tensor<8x64x4x8xf32>
  %k1 = nn.reshape %k : (tensor<8x64x16xf32>) -> tensor<8x64x2x8xf32>
  %v1 = nn.reshape %v : (tensor<8x64x16xf32>) -> tensor<8x64x2x8xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x64x4x8xf32>) -> tensor<8x4x64x8xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x64x2x8xf32>) -> tensor<8x2x64x8xf32>
  %v2 = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x64x2x8xf32>) -> tensor<8x2x64x8xf32>
  %a, %l = nn.attention %q2, %k2, %v2 {causal, scale = 0.25 : f64} : (tensor<8x4x64x8xf32>, tensor<8x2x64x8xf32>, tensor<8x2x64x8xf32>) -> (tensor<8x4x64x8xf32>, tensor<8x4x64xf32>)
  %a1 = nn.transpose %a [0, 2, 1, 3] : (tensor<8x4x64x8xf32>) -> tensor<8x64x4x8xf32>
  %a2 = nn.reshape %a1 : (tensor<8x64x4x8xf32>) -> tensor<8x64x32xf32>
  %y = nn.matmul %a2, %wo : (tensor<8x64x32xf32>, tensor<32x32xf32>) -> tensor<8x64x32xf32>
  %r = nn.add %y, %x : tensor<8x64x32xf32>
  return %r : tensor<8x64x32xf32>
}
}

// -----

// What a user has placed stays, and what is tied to it follows: here the rows of all that reads x,
// and the columns of what is added to it.
// CHECK-LABEL: func.func @placed
// CHECK-DAG: dist.constraint %arg1 to #tp-all : tensor<8x32xf32>
// CHECK-DAG: dist.constraint %arg2 to #tp-all : tensor<8x64xf32>
// CHECK-DAG: dist.constraint %arg3 to #all-tp : tensor<64x8xf32>
// MOVED-LABEL: func.func @placed
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @given : tensor<8x32xf32> = dense<0.5>
nn.state @up : tensor<8x64xf32> = dense<0.5>
nn.state @down : tensor<64x8xf32> = dense<0.5>
func.func @placed(%x: tensor<512x8xf32> {nn.input = "x"}, %w: tensor<8x32xf32> {nn.state = @given}, %up: tensor<8x64xf32> {nn.state = @up}, %down: tensor<64x8xf32> {nn.state = @down}) -> (tensor<512x32xf32> {nn.output = "y"}, tensor<512x8xf32> {nn.output = "z"}) attributes {nn.entry} {
  %p = dist.constraint %w to <@mesh, [{tp}, {}]> : tensor<8x32xf32>
  %y = nn.matmul %x, %p : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %h = nn.matmul %x, %up : (tensor<512x8xf32>, tensor<8x64xf32>) -> tensor<512x64xf32>
  %s = nn.matmul %h, %down : (tensor<512x64xf32>, tensor<64x8xf32>) -> tensor<512x8xf32>
  %z = nn.add %s, %x : tensor<512x8xf32>
  return %y, %z : tensor<512x32xf32>, tensor<512x8xf32>
}
}

// -----

// Two that were placed may ask for both dimensions of one that was not: it is split along the first.
// CHECK-LABEL: func.func @between
// CHECK-DAG: dist.constraint %arg1 to #all-tp : tensor<64x64xf32>
// CHECK-DAG: dist.constraint %arg2 to #tp-all : tensor<64x64xf32>
// CHECK-DAG: dist.constraint %arg3 to #tp-all : tensor<64x64xf32>
// MOVED-LABEL: func.func @between
module {
dist.mesh @mesh ["tp" = 2]
nn.state @a : tensor<64x64xf32> = dense<1.0>
nn.state @b : tensor<64x64xf32> = dense<1.0>
nn.state @c : tensor<64x64xf32> = dense<1.0>
func.func @between(%x: tensor<512x64xf32> {nn.input = "x"}, %a: tensor<64x64xf32> {nn.state = @a}, %b: tensor<64x64xf32> {nn.state = @b}, %c: tensor<64x64xf32> {nn.state = @c}) -> (tensor<512x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %first = dist.constraint %a to <@mesh, [{}, {tp}]> : tensor<64x64xf32>
  %last = dist.constraint %c to <@mesh, [{tp}, {}]> : tensor<64x64xf32>
  %h = nn.matmul %x, %first : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %i = nn.matmul %h, %b : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %y = nn.matmul %i, %last : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}
}

// -----

// What does not divide stays whole. What a number is broadcast to ties nothing together, though
// weights that are split by columns and by rows share the one op that is left of equal ones.
// CHECK-LABEL: func.func @shared
// CHECK-DAG: dist.constraint %arg1 to #all-tp : tensor<64x64xf32>
// CHECK-DAG: dist.constraint %arg2 to #tp-all : tensor<64x64xf32>
// CHECK-DAG: dist.constraint %arg3 to #all-all : tensor<31x31xf32>
// CHECK-DAG: dist.constraint %arg4 to #all-all : tensor<31x31xf32>
// MOVED-LABEL: func.func @shared
// MOVED-DAG: nn.broadcast {{.*}} -> tensor<64x64xf32, #all-tp>
// MOVED-DAG: nn.broadcast {{.*}} -> tensor<64x64xf32, #tp-all>
// MOVED-NOT: dist.reshard {{.*}}tensor<64x64xf32
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @up : tensor<64x64xf32> = dense<0.5>
nn.state @down : tensor<64x64xf32> = dense<0.5>
nn.state @odd : tensor<31x31xf32> = dense<0.5>
nn.state @back : tensor<31x31xf32> = dense<0.5>
func.func @shared(%x: tensor<512x64xf32> {nn.input = "x"}, %up: tensor<64x64xf32> {nn.state = @up}, %down: tensor<64x64xf32> {nn.state = @down}, %odd: tensor<31x31xf32> {nn.state = @odd}, %back: tensor<31x31xf32> {nn.state = @back}, %rate: tensor<f32> {nn.input = "rate"}, %z: tensor<512x31xf32> {nn.input = "z"}) -> (tensor<512x64xf32> {nn.output = "y"}, tensor<512x31xf32> {nn.output = "b"}) attributes {nn.entry} {
  %all = nn.broadcast %rate : (tensor<f32>) -> tensor<64x64xf32>
  %u = nn.mul %up, %all : tensor<64x64xf32>
  %d = nn.mul %down, %all : tensor<64x64xf32>
  %h = nn.matmul %x, %u : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %g = nn.gelu erf %h : tensor<512x64xf32>
  %s = nn.matmul %g, %d : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %y = nn.add %s, %x : tensor<512x64xf32>
  %o = nn.matmul %z, %odd : (tensor<512x31xf32>, tensor<31x31xf32>) -> tensor<512x31xf32>
  %b = nn.matmul %o, %back : (tensor<512x31xf32>, tensor<31x31xf32>) -> tensor<512x31xf32>
  return %y, %b : tensor<512x64xf32>, tensor<512x31xf32>
}
}

// -----

// An axis splits one dimension of a tensor: a weight whose rows and columns are tied is whole.
// CHECK-LABEL: func.func @square
// CHECK: dist.constraint %arg1 to #all-all
// MOVED-LABEL: func.func @square
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @w : tensor<64x64xf32> = dense<0.5>
func.func @square(%x: tensor<512x64xf32> {nn.input = "x"}, %w: tensor<64x64xf32> {nn.state = @w}) -> (tensor<512x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %h = nn.matmul %x, %w : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %y = nn.add %h, %x : tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}
}

// -----

// A vocabulary: the rows of a table that is looked up, and of the weight that makes logits, which are
// one; the loss has the sums that it needs inside.
// WHOLE-LABEL: func.func @mlp
// WHOLE-DAG: dist.constraint %arg1 to #all-tp : tensor<8x32xf32>
// WHOLE-LABEL: func.func @vocabulary
// WHOLE-DAG: dist.constraint %arg2 to #all-all : tensor<256x8xf32>
// CHECK-LABEL: func.func @vocabulary
// CHECK-DAG: dist.constraint %arg2 to #tp-all : tensor<256x8xf32>
// CHECK-DAG: dist.constraint %arg3 to #all-all : tensor<64x8xf32>
// MOVED-LABEL: func.func @vocabulary
// MOVED: dist.reshard {{.*}}sum_over_tp> -> tensor<32x8xf32, #dp_replicate-all>
// MOVED: nn.cross_entropy {{.*}} : (tensor<32x256xf32, #dp_replicate-tp>,
// MOVED-NOT: dist.reshard
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @tokens : tensor<256x8xf32> = dense<0.5>
nn.state @places : tensor<64x8xf32> = dense<0.5>
func.func @vocabulary(%i: tensor<32xi64> {nn.input = "i"}, %l: tensor<32xi64> {nn.input = "l"}, %w: tensor<256x8xf32> {nn.state = @tokens}, %p: tensor<64x8xf32> {nn.state = @places}) -> (tensor<32xf32> {nn.output = "loss"}) attributes {nn.entry} {
  %x = nn.gather %w, %i dim 0 : (tensor<256x8xf32>, tensor<32xi64>) -> tensor<32x8xf32>
  %y = nn.gather %p, %i dim 0 : (tensor<64x8xf32>, tensor<32xi64>) -> tensor<32x8xf32>
  %h = nn.add %x, %y : tensor<32x8xf32>
  %g = nn.gelu erf %h : tensor<32x8xf32>
  %z = nn.matmul %g, %w {transpose_rhs} : (tensor<32x8xf32>, tensor<256x8xf32>) -> tensor<32x256xf32>
  %loss = nn.cross_entropy %z, %l : (tensor<32x256xf32>, tensor<32xi64>) -> tensor<32xf32>
  return %loss : tensor<32xf32>
}
}
