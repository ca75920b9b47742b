// Experts that are parameters each become one computation, of the same values.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/sums.mlir --nn-stack-experts --canonicalize -o %t/sums.out && FileCheck %t/sums.mlir < %t/sums.out
// RUN: acc-eval %t/sums.out --compare %t/sums.mlir --f64 --tolerance 1e-12
// RUN: acc-opt %t/table.mlir --nn-stack-experts --canonicalize -o %t/table.out && FileCheck %t/table.mlir < %t/table.out
// RUN: acc-eval %t/table.out --compare %t/table.mlir --f64 --tolerance 1e-12
// RUN: acc-opt %t/best.mlir --nn-stack-experts --canonicalize -o %t/best.out && FileCheck %t/best.mlir < %t/best.out
// RUN: acc-eval %t/best.out --compare %t/best.mlir --f64 --tolerance 1e-12
// RUN: acc-opt %t/columns.mlir --nn-stack-experts --canonicalize -o %t/columns.out && FileCheck %t/columns.mlir < %t/columns.out
// RUN: acc-eval %t/columns.out --compare %t/columns.mlir --f64 --tolerance 1e-12
// RUN: acc-opt %t/stay.mlir --split-input-file --nn-stack-experts --verify-diagnostics | FileCheck %t/stay.mlir

//--- sums.mlir
// The two best of three experts with a bias, whose weights are sums over the choices; what
// is added besides stays.
// CHECK: nn.state @"e.*.up" : tensor<3x2x2xf32> = [@e.0.up, @e.1.up, @e.2.up]
// CHECK-NEXT: nn.state @e.0.up
// CHECK: nn.state @"e.*.bias" : tensor<3x2xf32> = [@e.0.bias, @e.1.bias, @e.2.bias]
// CHECK: func.func @main(%[[X:[^:]*]]: tensor<4x2xf32> {{.*}}, %[[S:[^:]*]]: tensor<4x3xf32> {{.*}}, %[[UP:[^:]*]]: tensor<3x2x2xf32> {nn.state = @"e.*.up"}, %[[BIAS:[^:]*]]: tensor<3x2xf32> {nn.state = @"e.*.bias"}, %[[SHARED:[^:]*]]: tensor<2x2xf32> {nn.state = @shared})
// CHECK-DAG: %[[ONES:.*]] = nn.constant dense<1.000000e+00> : tensor<8x1xf32>
// CHECK-DAG: %[[TOP:.*]] = nn.top_k %[[S]] k 2
// CHECK-DAG: %[[OTHER:.*]] = nn.matmul %[[X]], %[[SHARED]]
// CHECK: %[[ALL:.*]] = nn.reduce sum {{.*}} dims [1] : (tensor<4x2x3xf32>) -> tensor<4x3xf32>
// CHECK: %[[GROUPS:.*]] = nn.reshape %[[TOP]] : (tensor<4x2xi64>) -> tensor<8xi64>
// CHECK: %[[W:.*]] = nn.gather_nd %[[ALL]], {{.*}} {batch_dims = 1 : i64} : (tensor<4x3xf32>, tensor<4x2x1xi64>) -> tensor<4x2xf32>
// CHECK: %[[ROWS:.*]] = nn.reshape {{.*}} : (tensor<4x2x2xf32>) -> tensor<8x2xf32>
// CHECK: %[[P:.*]] = nn.grouped_matmul %[[ROWS]], %[[UP]], %[[GROUPS]] {transpose_rhs}
// CHECK: %[[ONE:.*]] = nn.reshape %[[BIAS]] : (tensor<3x2xf32>) -> tensor<3x1x2xf32>
// CHECK: %[[B:.*]] = nn.grouped_matmul %[[ONES]], %[[ONE]], %[[GROUPS]]
// CHECK: %[[H:.*]] = nn.add %[[P]], %[[B]]
// CHECK: %[[G:.*]] = nn.gelu erf %[[H]] : tensor<8x2xf32>
// CHECK: nn.mul %[[G]], {{.*}} : tensor<8x2xf32>
// CHECK: %[[Y:.*]] = nn.reduce sum {{.*}} dims [1] : (tensor<4x2x2xf32>) -> tensor<4x2xf32>
// CHECK: nn.add %[[OTHER]], %[[Y]]
// CHECK-NEXT: return
module {
  nn.state @e.0.up : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e.1.up : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  nn.state @e.2.up : tensor<2x2xf32> = dense<[[0.25, 1.5], [-2.0, 1.0]]>
  nn.state @e.0.bias : tensor<2xf32> = dense<[1.0, -1.0]>
  nn.state @e.1.bias : tensor<2xf32> = dense<[0.5, 2.0]>
  nn.state @e.2.bias : tensor<2xf32> = dense<[-0.75, 0.25]>
  nn.state @shared : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x3xf32> {nn.input = "s"}, %e.0.up: tensor<2x2xf32> {nn.state = @e.0.up}, %e.1.up: tensor<2x2xf32> {nn.state = @e.1.up}, %e.2.up: tensor<2x2xf32> {nn.state = @e.2.up}, %e.0.bias: tensor<2xf32> {nn.state = @e.0.bias}, %e.1.bias: tensor<2xf32> {nn.state = @e.1.bias}, %e.2.bias: tensor<2xf32> {nn.state = @e.2.bias}, %shared: tensor<2x2xf32> {nn.state = @shared})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %i = nn.top_k %s k 2 : (tensor<4x3xf32>) -> tensor<4x2xi64>
    %j = nn.reshape %i : (tensor<4x2xi64>) -> tensor<4x2x1xi64>
    %u = nn.gather_nd %s, %j {batch_dims = 1 : i64} : (tensor<4x3xf32>, tensor<4x2x1xi64>) -> tensor<4x2xf32>
    %n0 = nn.constant dense<0> : tensor<4x2xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x2xi64>
    %f0 = nn.cast %c0 : (tensor<4x2xi1>) -> tensor<4x2xf32>
    %m0 = nn.mul %u, %f0 : tensor<4x2xf32>
    %r0 = nn.reduce sum %m0 dims [1] : (tensor<4x2xf32>) -> tensor<4xf32>
    %k0 = nn.reshape %r0 : (tensor<4xf32>) -> tensor<4x1xf32>
    %w0 = nn.broadcast %k0 : (tensor<4x1xf32>) -> tensor<4x2xf32>
    %p0 = nn.matmul %x, %e.0.up {transpose_rhs} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %b0 = nn.broadcast %e.0.bias : (tensor<2xf32>) -> tensor<4x2xf32>
    %h0 = nn.add %p0, %b0 : tensor<4x2xf32>
    %g0 = nn.gelu erf %h0 : tensor<4x2xf32>
    %t0 = nn.mul %g0, %w0 : tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x2xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x2xi64>
    %f1 = nn.cast %c1 : (tensor<4x2xi1>) -> tensor<4x2xf32>
    %m1 = nn.mul %u, %f1 : tensor<4x2xf32>
    %r1 = nn.reduce sum %m1 dims [1] : (tensor<4x2xf32>) -> tensor<4xf32>
    %k1 = nn.reshape %r1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %w1 = nn.broadcast %k1 : (tensor<4x1xf32>) -> tensor<4x2xf32>
    %p1 = nn.matmul %x, %e.1.up {transpose_rhs} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %b1 = nn.broadcast %e.1.bias : (tensor<2xf32>) -> tensor<4x2xf32>
    %h1 = nn.add %p1, %b1 : tensor<4x2xf32>
    %g1 = nn.gelu erf %h1 : tensor<4x2xf32>
    %t1 = nn.mul %g1, %w1 : tensor<4x2xf32>
    %n2 = nn.constant dense<2> : tensor<4x2xi64>
    %c2 = nn.compare eq %i, %n2 : tensor<4x2xi64>
    %f2 = nn.cast %c2 : (tensor<4x2xi1>) -> tensor<4x2xf32>
    %m2 = nn.mul %u, %f2 : tensor<4x2xf32>
    %r2 = nn.reduce sum %m2 dims [1] : (tensor<4x2xf32>) -> tensor<4xf32>
    %k2 = nn.reshape %r2 : (tensor<4xf32>) -> tensor<4x1xf32>
    %w2 = nn.broadcast %k2 : (tensor<4x1xf32>) -> tensor<4x2xf32>
    %p2 = nn.matmul %x, %e.2.up {transpose_rhs} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %b2 = nn.broadcast %e.2.bias : (tensor<2xf32>) -> tensor<4x2xf32>
    %h2 = nn.add %p2, %b2 : tensor<4x2xf32>
    %g2 = nn.gelu erf %h2 : tensor<4x2xf32>
    %t2 = nn.mul %g2, %w2 : tensor<4x2xf32>
    %z = nn.matmul %x, %shared : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %a0 = nn.add %z, %t0 : tensor<4x2xf32>
    %a1 = nn.add %a0, %t1 : tensor<4x2xf32>
    %a2 = nn.add %a1, %t2 : tensor<4x2xf32>
    return %a2 : tensor<4x2xf32>
  }
}

//--- table.mlir
// Nothing says which weights are zero: every row has all experts, in the order of the
// columns that are their weights.
// CHECK: nn.state @"u*" : tensor<2x2x2xf32> = [@u1, @u0]
// CHECK: nn.state @"p*" : tensor<2x2x2xf32> = [@p1, @p0]
// CHECK: func.func @main(%[[X:[^:]*]]: tensor<4x2xf32> {{.*}}, %[[S:[^:]*]]: tensor<4x2xf32> {{.*}}, %[[U:[^:]*]]: {{.*}}, %[[P:[^:]*]]: {{.*}})
// CHECK: %[[N:.*]] = nn.constant dense<[0, 1]>
// CHECK: %[[EACH:.*]] = nn.broadcast %[[N]] : (tensor<2xi64>) -> tensor<4x2xi64>
// CHECK: %[[GROUPS:.*]] = nn.reshape %[[EACH]] : (tensor<4x2xi64>) -> tensor<8xi64>
// CHECK: nn.grouped_matmul {{.*}}, %[[U]], %[[GROUPS]]
// CHECK: nn.grouped_matmul {{.*}}, %[[P]], %[[GROUPS]]
// CHECK: nn.reshape %[[S]] : (tensor<4x2xf32>) -> tensor<8x1xf32>
module {
  nn.state @u0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @u1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  nn.state @p0 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  nn.state @p1 : tensor<2x2xf32> = dense<[[0.25, 1.5], [-2.0, 1.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %u0: tensor<2x2xf32> {nn.state = @u0}, %u1: tensor<2x2xf32> {nn.state = @u1}, %p0: tensor<2x2xf32> {nn.state = @p0}, %p1: tensor<2x2xf32> {nn.state = @p1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %c0 = nn.slice %s starts [0, 1] sizes [4, 1] steps [1, 1] : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %w0 = nn.broadcast %c0 : (tensor<4x1xf32>) -> tensor<4x2xf32>
    %p0_ = nn.matmul %x, %u0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %q0 = nn.sigmoid %p0_ : tensor<4x2xf32>
    %r0 = nn.mul %p0_, %q0 : tensor<4x2xf32>
    %d0 = nn.matmul %r0, %p0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.mul %w0, %d0 : tensor<4x2xf32>
    %c1 = nn.slice %s starts [0, 0] sizes [4, 1] steps [1, 1] : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %w1 = nn.broadcast %c1 : (tensor<4x1xf32>) -> tensor<4x2xf32>
    %p1_ = nn.matmul %x, %u1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %q1 = nn.sigmoid %p1_ : tensor<4x2xf32>
    %r1 = nn.mul %p1_, %q1 : tensor<4x2xf32>
    %d1 = nn.matmul %r1, %p1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.mul %w1, %d1 : tensor<4x2xf32>
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

//--- best.mlir
// The best expert alone, selected; names that have no parts.
// CHECK: nn.state @"e*" : tensor<2x2x2xf32> = [@e0, @e1]
// CHECK: func.func @main(%[[X:[^:]*]]: tensor<4x2xf32> {{.*}}, %[[S:[^:]*]]: tensor<4x2xf32>
// CHECK: %[[TOP:.*]] = nn.top_k %[[S]] k 1
// CHECK: %[[GROUPS:.*]] = nn.reshape %[[TOP]] : (tensor<4x1xi64>) -> tensor<4xi64>
// CHECK: nn.grouped_matmul %[[X]], {{.*}}, %[[GROUPS]]
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

//--- columns.mlir
// A table with a one for each choice, and rows in two dimensions.
// CHECK: nn.state @"e.*" : tensor<2x2x2xf32> = [@e.0, @e.1]
// CHECK: %[[TOP:.*]] = nn.top_k {{.*}} : (tensor<2x2x2xf32>) -> tensor<2x2x1xi64>
// CHECK: %[[GROUPS:.*]] = nn.reshape %[[TOP]] : (tensor<2x2x1xi64>) -> tensor<4xi64>
// CHECK: %[[P:.*]] = nn.grouped_matmul {{.*}}, %[[GROUPS]] {transpose_rhs}
// CHECK: nn.mul %[[P]], {{.*}} : tensor<4x2xf32>
module {
  nn.state @e.0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e.1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<2x2x2xf32> {nn.input = "x"}, %s: tensor<2x2x2xf32> {nn.input = "s"}, %e.0: tensor<2x2xf32> {nn.state = @e.0}, %e.1: tensor<2x2xf32> {nn.state = @e.1})
      -> (tensor<2x2x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %i = nn.top_k %s k 1 : (tensor<2x2x2xf32>) -> tensor<2x2x1xi64>
    %j = nn.reshape %i : (tensor<2x2x1xi64>) -> tensor<2x2x1x1xi64>
    %k = nn.broadcast %j : (tensor<2x2x1x1xi64>) -> tensor<2x2x1x2xi64>
    %n = nn.constant dense<[0, 1]> : tensor<2xi64>
    %m = nn.broadcast %n : (tensor<2xi64>) -> tensor<2x2x1x2xi64>
    %c = nn.compare eq %k, %m : tensor<2x2x1x2xi64>
    %f = nn.cast %c : (tensor<2x2x1x2xi1>) -> tensor<2x2x1x2xf32>
    %h = nn.reduce sum %f dims [2] : (tensor<2x2x1x2xf32>) -> tensor<2x2x2xf32>
    %g = nn.mul %h, %s : tensor<2x2x2xf32>
    %c0 = nn.slice %g starts [0, 0, 0] sizes [2, 2, 1] steps [1, 1, 1] : (tensor<2x2x2xf32>) -> tensor<2x2x1xf32>
    %w0 = nn.broadcast %c0 : (tensor<2x2x1xf32>) -> tensor<2x2x2xf32>
    %v0 = nn.transpose %e.0 [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %p0 = nn.matmul %x, %v0 : (tensor<2x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2x2xf32>
    %q0 = nn.mul %p0, %x : tensor<2x2x2xf32>
    %t0 = nn.mul %q0, %w0 : tensor<2x2x2xf32>
    %c1 = nn.slice %g starts [0, 0, 1] sizes [2, 2, 1] steps [1, 1, 1] : (tensor<2x2x2xf32>) -> tensor<2x2x1xf32>
    %w1 = nn.broadcast %c1 : (tensor<2x2x1xf32>) -> tensor<2x2x2xf32>
    %v1 = nn.transpose %e.1 [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %p1 = nn.matmul %x, %v1 : (tensor<2x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2x2xf32>
    %q1 = nn.mul %p1, %x : tensor<2x2x2xf32>
    %t1 = nn.mul %q1, %w1 : tensor<2x2x2xf32>
    %y = nn.add %t0, %t1 : tensor<2x2x2xf32>
    return %y : tensor<2x2x2xf32>
  }
}

//--- stay.mlir
// CHECK-NOT: nn.grouped_matmul
// An expert is frozen and the other is not.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]> {frozen}
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    // expected-warning @below {{the 2 experts that are added up here stay separate, on every rank: of 'e0' and 'e1' one is trained}}
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// An expert is added twice, and counts twice.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %once = nn.add %t0, %t1 : tensor<4x2xf32>
    %y = nn.add %once, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// A parameter has two names.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]> {aliases = ["tied"]}
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    // expected-warning @below {{the 2 experts that are added up here stay separate, on every rank: 'e1' has another name}}
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// One parameter is of both experts, in different places.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %o0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %p0 = nn.matmul %o0, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %o1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %p1 = nn.matmul %o1, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    // expected-warning @below {{the 2 experts that are added up here stay separate, on every rank: 'e0' is of two experts}}
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// The numbers begin at 1.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<1> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<2> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// Somebody else reads what an expert gives.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %v = nn.mul %p0, %p0 : tensor<4x2xf32>
    %q = nn.add %t0, %t1 : tensor<4x2xf32>
    %y = nn.mul %q, %v : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// An expert sees more than one row.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %o0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %p0 = nn.softmax %o0 dim 0 : tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %o1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %p1 = nn.softmax %o1 dim 0 : tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// Terms that are alike and have no weights.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %y = nn.add %p0, %p1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----

// A weight for each column, not for each row.
module {
  nn.state @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %m0 = nn.constant dense<0> : tensor<4x2xi64>
    %m1 = nn.constant dense<1> : tensor<4x2xi64>
    %i2 = nn.top_k %s k 2 : (tensor<4x2xf32>) -> tensor<4x2xi64>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.compare eq %i2, %m0 : tensor<4x2xi64>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.compare eq %i2, %m1 : tensor<4x2xi64>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}

// -----


// Buffers, which nobody trains.
module {
  nn.state buffer @e0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  nn.state buffer @e1 : tensor<2x2xf32> = dense<[[-1.0, 0.5], [2.0, -3.0]]>
  func.func @main(%x: tensor<4x2xf32> {nn.input = "x"}, %s: tensor<4x2xf32> {nn.input = "s"}, %e0: tensor<2x2xf32> {nn.state = @e0}, %e1: tensor<2x2xf32> {nn.state = @e1})
      -> (tensor<4x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x2xf32>
    %i = nn.top_k %s k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %n0 = nn.constant dense<0> : tensor<4x1xi64>
    %c0 = nn.compare eq %i, %n0 : tensor<4x1xi64>
    %w0 = nn.broadcast %c0 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p0 = nn.matmul %x, %e0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t0 = nn.select %w0, %p0, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %n1 = nn.constant dense<1> : tensor<4x1xi64>
    %c1 = nn.compare eq %i, %n1 : tensor<4x1xi64>
    %w1 = nn.broadcast %c1 : (tensor<4x1xi1>) -> tensor<4x2xi1>
    %p1 = nn.matmul %x, %e1 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %t1 = nn.select %w1, %p1, %zero : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    // expected-warning @below {{the 2 experts that are added up here stay separate, on every rank: 'e0' is no parameter}}
    %y = nn.add %t0, %t1 : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}
