// Ranks along ep have experts of their own: the matrices of groups, their moments and
// gradients, are split by group. What the ranks do not divide stays whole, and is named; so is
// a model without experts.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/experts.mlir --dist-annotate="mesh=ep=2" --dist-place-experts | FileCheck %s
// RUN: acc-opt %t/experts.mlir --dist-annotate="mesh=ep=4" --dist-place-experts 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: acc-opt %t/places.mlir --dist-annotate="mesh=ep=2" --dist-place-experts | FileCheck %s --check-prefix=PLACES
// RUN: acc-opt %t/none.mlir --dist-annotate="mesh=ep=2" --dist-place-experts 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: #ep_any-any-any = #dist.sharding<@mesh, [{ep, ?}, {?}, {?}]>
// CHECK: func.func @step({{.*}}, %[[W:[^:]*]]: tensor<6x4x4xf32> {nn.state = @w}, %[[M:[^:]*]]: tensor<6x4x4xf32> {nn.state = @"momentum/w"}, %[[V:[^:]*]]: tensor<4x4xf32> {nn.state = @v})
// CHECK: dist.constraint %[[W]] to #ep-all-all
// CHECK: dist.constraint %[[M]] to #ep-all-all
// CHECK: dist.constraint %[[V]] to #all-all
// CHECK: %[[D:.*]] = nn.grouped_matmul_grad
// CHECK: %[[C:.*]] = dist.constraint %[[D]] to #ep_any-any-any
// CHECK: nn.gradient %[[C]] of @w
// CHECK: %[[F:.*]] = nn.matmul
// CHECK: nn.gradient %[[F]] of @v

// UNEVEN: warning: the 6 experts of 'w' are whole on each of the 4 ranks that were to share them (ep): expected a multiple
// UNEVEN-NOT: #ep-all-all

// Of two products of a parameter's matrices, one each, that whose rows come of a choice.
// PLACES: func.func @main({{.*}}, %[[W:[^:]*]]: tensor<4x4x4xf32> {nn.state = @w}, %[[H:[^:]*]]: tensor<4x4x4xf32> {nn.state = @heads})
// PLACES-DAG: dist.constraint %[[W]] to #ep-all-all
// PLACES-DAG: dist.constraint %[[H]] to #all-all-all

// A bias is a matrix of one row.
// RUN: acc-opt %t/biases.mlir --dist-annotate="mesh=ep=2" --dist-place-experts | FileCheck %s --check-prefix=BIASES
// BIASES: func.func @main({{.*}}, %[[B:[^:]*]]: tensor<4x6xf32> {nn.state = @b}, %[[R:[^:]*]]: tensor<6x4xf32> {nn.state = @r})
// BIASES-DAG: dist.constraint %[[B]] to #ep-all
// BIASES-DAG: dist.constraint %[[R]] to #all-all

// NONE: warning: mesh axis 'ep' of size 2 splits the batch alone: the model has no experts whose matrices are one parameter

//--- experts.mlir
module attributes {accel.phase = "train"} {
  nn.state @w : tensor<6x4x4xf32> = dense<1.0>
  nn.state moment @"momentum/w" : tensor<6x4x4xf32> = dense<0.0>
  nn.state @v : tensor<4x4xf32> = dense<1.0>
  func.func @step(%x: tensor<8x4xf32> {nn.input = "x"}, %e: tensor<8xi64> {nn.input = "e"}, %w: tensor<6x4x4xf32> {nn.state = @w}, %m: tensor<6x4x4xf32> {nn.state = @"momentum/w"}, %v: tensor<4x4xf32> {nn.state = @v})
      -> (tensor<8x4xf32> {nn.output = "y"}, tensor<6x4x4xf32> {nn.state = @w}, tensor<6x4x4xf32> {nn.state = @"momentum/w"}, tensor<4x4xf32> {nn.state = @v}) attributes {nn.entry = #nn<entry step>} {
    %t = nn.transpose %w [0, 2, 1] : (tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
    %h = nn.grouped_matmul %x, %t, %e : (tensor<8x4xf32>, tensor<6x4x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
    %y = nn.matmul %h, %v : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %d = nn.grouped_matmul_grad %y, %x, %e num_groups 6 : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8xi64>) -> tensor<6x4x4xf32>
    %g = nn.gradient %d of @w : tensor<6x4x4xf32>
    %c = nn.matmul %h, %y {transpose_lhs} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %f = nn.gradient %c of @v : tensor<4x4xf32>
    %n = nn.add %m, %g : tensor<6x4x4xf32>
    %0 = nn.sub %w, %n : tensor<6x4x4xf32>
    %1 = nn.sub %v, %f : tensor<4x4xf32>
    return %y, %0, %n, %1 : tensor<8x4xf32>, tensor<6x4x4xf32>, tensor<6x4x4xf32>, tensor<4x4xf32>
  }
}

//--- places.mlir
module attributes {accel.phase = "train"} {
  nn.state @w : tensor<4x4x4xf32> = dense<1.0>
  nn.state @heads : tensor<4x4x4xf32> = dense<1.0>
  func.func @main(%x: tensor<4x8x4xf32> {nn.input = "x"}, %w: tensor<4x4x4xf32> {nn.state = @w}, %heads: tensor<4x4x4xf32> {nn.state = @heads}) -> (tensor<4x2x4xf32> {nn.output = "y"}) attributes {nn.entry} {
    %h = nn.matmul %x, %heads : (tensor<4x8x4xf32>, tensor<4x4x4xf32>) -> tensor<4x8x4xf32>
    %c = nn.transpose %h [0, 2, 1] : (tensor<4x8x4xf32>) -> tensor<4x4x8xf32>
    %s = nn.reduce sum %c dims [1] : (tensor<4x4x8xf32>) -> tensor<4x8xf32>
    %t = nn.top_k %s k 2 : (tensor<4x8xf32>) -> tensor<4x2xi64>
    %a = nn.reshape %t : (tensor<4x2xi64>) -> tensor<4x2x1xi64>
    %r = nn.gather_nd %h, %a {batch_dims = 1 : i64} : (tensor<4x8x4xf32>, tensor<4x2x1xi64>) -> tensor<4x2x4xf32>
    %y = nn.matmul %r, %w : (tensor<4x2x4xf32>, tensor<4x4x4xf32>) -> tensor<4x2x4xf32>
    return %y : tensor<4x2x4xf32>
  }
}

//--- none.mlir
module attributes {accel.phase = "train"} {
  nn.state @v : tensor<4x4xf32> = dense<1.0>
  func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %v: tensor<4x4xf32> {nn.state = @v}) -> (tensor<8x4xf32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.matmul %x, %v : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}

//--- biases.mlir
module attributes {accel.phase = "train"} {
  nn.state @b : tensor<4x6xf32> = dense<0.0>
  nn.state @r : tensor<6x4xf32> = dense<0.0>
  func.func @main(%o: tensor<8x1xf32> {nn.input = "o"}, %s: tensor<8x4xf32> {nn.input = "s"}, %b: tensor<4x6xf32> {nn.state = @b}, %r: tensor<6x4xf32> {nn.state = @r})
      -> (tensor<8x6xf32> {nn.output = "y"}, tensor<8x6xf32> {nn.output = "z"}) attributes {nn.entry} {
    %t = nn.top_k %s k 1 : (tensor<8x4xf32>) -> tensor<8x1xi64>
    %e = nn.reshape %t : (tensor<8x1xi64>) -> tensor<8xi64>
    %m = nn.reshape %b : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
    %y = nn.grouped_matmul %o, %m, %e : (tensor<8x1xf32>, tensor<4x1x6xf32>, tensor<8xi64>) -> tensor<8x6xf32>
    %n = nn.reshape %r : (tensor<6x4xf32>) -> tensor<4x1x6xf32>
    %z = nn.grouped_matmul %o, %n, %e : (tensor<8x1xf32>, tensor<4x1x6xf32>, tensor<8xi64>) -> tensor<8x6xf32>
    return %y, %z : tensor<8x6xf32>, tensor<8x6xf32>
  }
}
