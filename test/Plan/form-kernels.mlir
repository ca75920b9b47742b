// RUN: acc-opt %s -split-input-file --local-form-kernels | FileCheck %s

// A residual addition and the normalisation after it are one kernel with two
// results; the product takes its bias; gelu stands alone; views stay outside.
// CHECK-LABEL: func.func @block
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32>, %[[R:[^:]*]]: tensor<2x4x8xf32>
func.func @block(%x: tensor<2x4x8xf32>, %r: tensor<2x4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>, %w: tensor<8x16xf32>, %c: tensor<16xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x16xf32>) attributes {nn.entry} {
  // CHECK: %[[K:.*]]:2 = call @kernel_0(%[[X]], %[[R]], %{{.*}}, %{{.*}})
  // CHECK: %[[V:.*]] = nn.reshape %[[K]]#1
  // CHECK: %[[P:.*]] = nn.matmul %[[V]]
  // CHECK: %[[Q:.*]] = nn.add %[[P]]
  // CHECK: %[[G:.*]] = call @kernel_1(%[[Q]])
  // CHECK: %[[O:.*]] = nn.reshape %[[G]]
  // CHECK: return %[[K]]#0, %[[O]]
  %h = nn.add %x, %r : tensor<2x4x8xf32>
  %n = nn.layer_norm %h, %s, %b dim 2 epsilon 1.0e-5 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %f = nn.reshape %n : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %p = nn.matmul %f, %w : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %cb = nn.broadcast %c : (tensor<16xf32>) -> tensor<8x16xf32>
  %q = nn.add %p, %cb : tensor<8x16xf32>
  %g = nn.gelu tanh %q : tensor<8x16xf32>
  %o = nn.reshape %g : (tensor<8x16xf32>) -> tensor<2x4x16xf32>
  return %h, %o : tensor<2x4x8xf32>, tensor<2x4x16xf32>
}
// CHECK: func.func private @kernel_0({{.*}}) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) attributes {plan.kernel, plan.rows = 8 : i64}
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.layer_norm
// CHECK-NEXT: return
// CHECK: func.func private @kernel_1(%{{.*}}: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {plan.kernel, plan.rows = 8 : i64}

// -----

// Movement and small constants are part of the kernel that reads them; a table
// is an argument. Equal groups share a function.
// CHECK-LABEL: func.func @embed
// CHECK: call @kernel_0
// CHECK: call @kernel_1(
// CHECK: call @kernel_1(
// CHECK-NOT: call
// CHECK: return
func.func @embed(%t: tensor<10x8xf32>, %p: tensor<6x8xf32>, %i: tensor<2x4xi64>) -> (tensor<2x4x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>) attributes {nn.entry} {
  %e = nn.gather %t, %i dim 0 : (tensor<10x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %n = nn.iota {dim = 0 : i64} : tensor<4xi64>
  %q = nn.gather %p, %n dim 0 : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %qb = nn.broadcast %q : (tensor<4x8xf32>) -> tensor<2x4x8xf32>
  %h = nn.add %e, %qb : tensor<2x4x8xf32>
  %one = nn.constant dense<[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]> : tensor<4x4xf32>
  %half = nn.constant dense<0.5> : tensor<8x4xf32>
  %a = nn.reshape %h : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
  %a0 = nn.slice %a starts [0, 0, 0] sizes [1, 8, 4] steps [1, 1, 1] : (tensor<2x8x4xf32>) -> tensor<1x8x4xf32>
  %a1 = nn.reshape %a0 : (tensor<1x8x4xf32>) -> tensor<8x4xf32>
  %m = nn.matmul %a1, %one : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %m2 = nn.matmul %m, %one : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %s = nn.mul %m, %half : tensor<8x4xf32>
  %s2 = nn.mul %m2, %half : tensor<8x4xf32>
  return %h, %s, %s2 : tensor<2x4x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
// CHECK: func.func private @kernel_0
// CHECK-SAME: plan.rows = 8
// CHECK-COUNT-2: nn.gather
// CHECK: func.func private @kernel_1(%{{.*}}: tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: nn.constant dense<5.000000e-01>

// -----

// A reduction must stay within a row, and nothing expensive is computed again
// for each row: the column sums and the exponentials have kernels of their own.
// CHECK-LABEL: func.func @split
// CHECK: call @kernel_0
// CHECK: call @kernel_1
// CHECK: call @kernel_2
func.func @split(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> attributes {nn.entry} {
  %e = nn.exp %y : tensor<8xf32>
  %eb = nn.broadcast %e : (tensor<8xf32>) -> tensor<4x8xf32>
  %c = nn.reduce sum %x dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  %cb = nn.broadcast %c : (tensor<8xf32>) -> tensor<4x8xf32>
  %a = nn.add %eb, %cb : tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// -----

// h -> product -> sum reads h as well: joining the sum with h would be a cycle.
// CHECK-LABEL: func.func @cycle
// CHECK: %[[H:.*]] = call @kernel_0
// CHECK: %[[M:.*]] = nn.matmul %[[H]]
// CHECK: call @kernel_1(%[[H]], %[[M]])
func.func @cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {nn.entry} {
  %h = nn.neg %x : tensor<4x4xf32>
  %m = nn.matmul %h, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = nn.add %h, %m : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}

// -----

// What a command can write transposed by itself is not part of a kernel.
// CHECK-LABEL: func.func @transposed
// CHECK: nn.attention
// CHECK: %[[T:.*]] = nn.transpose
// CHECK: call @kernel_0(%[[T]])
func.func @transposed(%q: tensor<2x2x4x8xf32>) -> tensor<2x4x16xf32> attributes {nn.entry} {
  %o:2 = nn.attention %q, %q, %q {scale = 0.5} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
  %t = nn.transpose %o#0 [0, 2, 1, 3] : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %r = nn.reshape %t : (tensor<2x4x2x8xf32>) -> tensor<2x4x16xf32>
  %n = nn.neg %r : tensor<2x4x16xf32>
  return %n : tensor<2x4x16xf32>
}

// -----

// A sum of many elements is cut into rows, which threads share, before the one
// that makes a number of it; a small one is not worth a kernel of its own.
// CHECK-LABEL: func.func @norm
// CHECK-NEXT: %[[ROWS:.*]] = call @[[K0:kernel_[0-9]+]](%arg0) : (tensor<1024x128xf32>) -> tensor<1024xf32>
// CHECK-NEXT: %[[NORM:.*]] = call @{{kernel_[0-9]+}}({{.*}}%arg1{{.*}}) : ({{.*}}) -> tensor<f32>
// CHECK-NEXT: return %[[NORM]]
// CHECK: func.func private @[[K0]]({{.*}} attributes {plan.kernel, plan.rows = 1024 : i64}
func.func @norm(%a: tensor<1024x128xf32> {nn.input = "a"}, %b: tensor<64x8xf32> {nn.input = "b"}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
  %a2 = nn.mul %a, %a : tensor<1024x128xf32>
  %ra = nn.reduce sum %a2 dims [1] : (tensor<1024x128xf32>) -> tensor<1024xf32>
  %sa = nn.reduce sum %ra dims [0] : (tensor<1024xf32>) -> tensor<f32>
  %b2 = nn.mul %b, %b : tensor<64x8xf32>
  %rb = nn.reduce sum %b2 dims [1] : (tensor<64x8xf32>) -> tensor<64xf32>
  %sb = nn.reduce sum %rb dims [0] : (tensor<64xf32>) -> tensor<f32>
  %s = nn.add %sa, %sb : tensor<f32>
  %y = nn.sqrt %s : tensor<f32>
  return %y : tensor<f32>
}

// -----

// A moment is read for the parameter's new value and kept by a choice of its own:
// one kernel, which writes both and never the moment without the choice.
// CHECK-LABEL: func.func @update
// CHECK-NEXT: call @kernel_0
// CHECK-NEXT: return
// CHECK: func.func private @kernel_0
// CHECK: %[[M:.*]] = nn.add
// CHECK: %[[P:.*]] = nn.sub {{.*}}, %[[M]]
// CHECK: %[[PS:.*]] = nn.select {{.*}}, %[[P]]
// CHECK: %[[MS:.*]] = nn.select {{.*}}, %[[M]]
// CHECK: return {{.*}}%[[PS]]
func.func @update(%keep: tensor<i1> {nn.input = "k"}, %g: tensor<64x8xf32> {nn.input = "g"}, %m: tensor<64x8xf32> {nn.input = "m"}, %p: tensor<64x8xf32> {nn.input = "p"}) -> (tensor<64x8xf32> {nn.output = "np"}, tensor<64x8xf32> {nn.output = "nm"}) attributes {nn.entry} {
  %k = nn.broadcast %keep : (tensor<i1>) -> tensor<64x8xi1>
  %m1 = nn.add %m, %g : tensor<64x8xf32>
  %p1 = nn.sub %p, %m1 : tensor<64x8xf32>
  %ps = nn.select %k, %p1, %p : tensor<64x8xf32>
  %ms = nn.select %k, %m1, %m : tensor<64x8xf32>
  return %ps, %ms : tensor<64x8xf32>, tensor<64x8xf32>
}

// -----

// A square that the norm and the second moment both need is computed by each: it
// is cheap, and the gradient lies in memory. Nothing of its size is written.
// CHECK-LABEL: func.func @squares
// CHECK-NEXT: call @kernel_{{[0-9]+}}(%arg0) : (tensor<1024x128xf32>) -> tensor<1024xf32>
// CHECK: call @kernel_{{[0-9]+}}({{.*}}) : ({{.*}}) -> tensor<1024x128xf32>
// CHECK-NEXT: return
func.func @squares(%g: tensor<1024x128xf32> {nn.input = "g"}, %v: tensor<1024x128xf32> {nn.input = "v"}) -> (tensor<1024x128xf32> {nn.output = "nv"}) attributes {nn.entry} {
  %g2 = nn.mul %g, %g : tensor<1024x128xf32>
  %r = nn.reduce sum %g2 dims [1] : (tensor<1024x128xf32>) -> tensor<1024xf32>
  %s = nn.reduce sum %r dims [0] : (tensor<1024xf32>) -> tensor<f32>
  %n = nn.sqrt %s : tensor<f32>
  %k = nn.broadcast %n : (tensor<f32>) -> tensor<1024x128xf32>
  %d = nn.div %g2, %k : tensor<1024x128xf32>
  %nv = nn.add %v, %d : tensor<1024x128xf32>
  return %nv : tensor<1024x128xf32>
}

// -----

// What reads a group before the place where it is called comes right behind that,
// not at the end: here the scattered sum of %c, before the next product.
// CHECK-LABEL: func.func @late
// CHECK: call @kernel_0
// CHECK-NEXT: dist.reduce_scatter
// CHECK: nn.matmul
dist.mesh @m ["dp" = 2]
func.func @late(%x: tensor<4x8xf32> {nn.input = "x"}, %w: tensor<8x8xf32> {nn.input = "w"}) -> (tensor<4x8xf32> {nn.output = "y"}, tensor<2x8xf32> {nn.output = "s"}) attributes {nn.entry} {
  %c = nn.exp %x : tensor<4x8xf32>
  %s = dist.reduce_scatter sum %c over @m {dp} dim 0 : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %d = nn.tanh %c : tensor<4x8xf32>
  %y = nn.matmul %d, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y, %s : tensor<4x8xf32>, tensor<2x8xf32>
}

// -----

// Which of the blocks of a model an op serves is no part of what it computes.
// CHECK-LABEL: func.func @blocks
// CHECK: call @kernel_0(
// CHECK: call @kernel_0(
// CHECK: func.func private @kernel_0
// CHECK-NEXT: nn.cast %{{[^ ]*}} :
// CHECK-NOT: @kernel_1
func.func @blocks(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xbf16>, tensor<8x8xbf16>) attributes {nn.entry} {
  %c = nn.cast %a {dist.instance = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %d = nn.cast %b {dist.instance = 2 : i64} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  return %c, %d : tensor<8x8xbf16>, tensor<8x8xbf16>
}

// -----

// A counter is made by each kernel that reads it. Where something else does (a
// rank's piece is cut out of it, it is an output), it is a kernel of its own.
// CHECK-LABEL: func.func @counters
// CHECK-NOT: nn.iota
// CHECK: %[[K:.*]] = call @kernel_0() : () -> tensor<8xi64>
// CHECK: %[[S:.*]] = dist.all_slice %[[K]]
// CHECK: call @kernel_1(%[[S]])
// CHECK: call @kernel_2(%arg0)
// CHECK: func.func private @kernel_0() -> tensor<8xi64>
// CHECK-NEXT: nn.iota
// CHECK: func.func private @kernel_2
// CHECK: nn.iota
dist.mesh @c ["cp" = 2]
func.func @counters(%x: tensor<8xi64> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}, tensor<8xi64> {nn.output = "z"}) attributes {nn.entry} {
  %i = nn.iota {dim = 0 : i64} : tensor<8xi64>
  %s = dist.all_slice %i over @c {cp} dim 0 : (tensor<8xi64>) -> tensor<4xi64>
  %y = nn.cast %s : (tensor<4xi64>) -> tensor<4xf32>
  %j = nn.iota {dim = 0 : i64} : tensor<8xi64>
  %z = nn.add %x, %j : tensor<8xi64>
  return %y, %z : tensor<4xf32>, tensor<8xi64>
}
