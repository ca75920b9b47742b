// RUN: acc-opt %s -split-input-file -verify-diagnostics --dist-annotate="mesh=dp=2 dp-axis=dp_shard" --dist-pad-states | FileCheck %s

// Two ranks cannot split five: forward and backward see five, the update six, and
// the sum of squares all six, of which one is zero.

// CHECK: nn.state @b : tensor<6xf32> logical [5] =
// CHECK: nn.state moment @m : tensor<6xf32> logical [5] =
// CHECK: nn.state {{.*}}@even : tensor<4xf32> =
nn.state @b : tensor<5xf32> = dense<0.0>
nn.state moment @m : tensor<5xf32> = dense<0.0>
nn.state @even : tensor<4xf32> = dense<0.0>
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x5xf32> {nn.input = "x"}, %b: tensor<5xf32> {nn.state = @b},
                %m: tensor<5xf32> {nn.state = @m}, %even: tensor<4xf32> {nn.state = @even})
    -> (tensor<4x5xf32> {nn.output = "y"}, tensor<f32> {nn.output = "norm"}, tensor<5xf32> {nn.output = "b.grad"},
        tensor<5xf32> {nn.state = @b}, tensor<5xf32> {nn.state = @m}) attributes {nn.entry = #nn<entry step>} {
  // CHECK: %[[B:.*]] = dist.constraint %arg1
  // CHECK: %[[M:.*]] = dist.constraint %arg2
  // CHECK: %[[CUT:.*]] = nn.slice %[[B]] starts [0] sizes [5] steps [1]
  // CHECK: nn.broadcast %[[CUT]]
  %bs = nn.broadcast %b : (tensor<5xf32>) -> tensor<4x5xf32>
  %y = nn.add %x, %bs : tensor<4x5xf32>
  %db = nn.reduce sum %y dims [0] : (tensor<4x5xf32>) -> tensor<5xf32>
  // CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<f32>
  // CHECK: %[[PAD:.*]] = nn.pad {{.*}}, %[[ZERO]] low [0] high [1]
  // CHECK: %[[G:.*]] = nn.gradient %[[PAD]] of @b : tensor<6xf32>
  %g = nn.gradient %db of @b : tensor<5xf32>
  // CHECK: %[[SQ:.*]] = nn.mul %[[G]], %[[G]] : tensor<6xf32>
  // CHECK: nn.reduce sum %[[SQ]] dims [0] : (tensor<6xf32>) -> tensor<f32>
  %sq = nn.mul %g, %g : tensor<5xf32>
  %norm = nn.reduce sum %sq dims [0] : (tensor<5xf32>) -> tensor<f32>
  // CHECK: %[[S:.*]] = nn.broadcast {{.*}} -> tensor<6xf32>
  %scale = nn.broadcast %norm : (tensor<f32>) -> tensor<5xf32>
  // CHECK: %[[GS:.*]] = nn.mul %[[G]], %[[S]]
  // CHECK: %[[M1:.*]] = nn.add %[[M]], %[[GS]]
  // CHECK: %[[B1:.*]] = nn.sub %[[B]], %[[M1]]
  %gs = nn.mul %g, %scale : tensor<5xf32>
  %m1 = nn.add %m, %gs : tensor<5xf32>
  %b1 = nn.sub %b, %m1 : tensor<5xf32>
  // CHECK: %[[OUT:.*]] = nn.slice %[[G]]
  // CHECK: return %{{.*}}, %{{.*}}, %[[OUT]], %[[B1]], %[[M1]]
  return %y, %norm, %g, %b1, %m1 : tensor<4x5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}

// -----

// What looks at neighbours is given what there was, and zeros follow what it makes.
nn.state @b : tensor<5xf32> = dense<0.0>
func.func @step(%x: tensor<4x5xf32> {nn.input = "x"}, %b: tensor<5xf32> {nn.state = @b})
    -> (tensor<4x5xf32> {nn.output = "y"}, tensor<5xf32> {nn.state = @b}) attributes {nn.entry = #nn<entry step>} {
  %bs = nn.broadcast %b : (tensor<5xf32>) -> tensor<4x5xf32>
  %y = nn.add %x, %bs : tensor<4x5xf32>
  %db = nn.reduce sum %y dims [0] : (tensor<4x5xf32>) -> tensor<5xf32>
  // CHECK: %[[G:.*]] = nn.gradient {{.*}} : tensor<6xf32>
  // CHECK: %[[CUT:.*]] = nn.slice %[[G]] starts [0] sizes [5]
  // CHECK: %[[SOFT:.*]] = nn.softmax %[[CUT]] dim 0 : tensor<5xf32>
  // CHECK: %[[PAD:.*]] = nn.pad %[[SOFT]], {{.*}} low [0] high [1]
  // CHECK: return %{{.*}}, %[[PAD]]
  %g = nn.gradient %db of @b : tensor<5xf32>
  %soft = nn.softmax %g dim 0 : tensor<5xf32>
  return %y, %soft : tensor<4x5xf32>, tensor<5xf32>
}

// -----

// Each rank would hold one row of one: it is not split, and not padded.
// CHECK: nn.state @row : tensor<1x5xf32> =
// CHECK: nn.state @rows : tensor<4x5xf32> logical [3, 5] =
nn.state @row : tensor<1x5xf32> = dense<0.0>
nn.state @rows : tensor<3x5xf32> = dense<0.0>
func.func @step(%x: tensor<4x5xf32> {nn.input = "x"}, %row: tensor<1x5xf32> {nn.state = @row},
                %rows: tensor<3x5xf32> {nn.state = @rows})
    -> (tensor<4x5xf32> {nn.output = "y"}, tensor<1x5xf32> {nn.state = @row}, tensor<3x5xf32> {nn.state = @rows})
    attributes {nn.entry = #nn<entry step>} {
  %all = nn.broadcast %row : (tensor<1x5xf32>) -> tensor<4x5xf32>
  %y = nn.add %x, %all : tensor<4x5xf32>
  %sum = nn.reduce sum %y dims [0] : (tensor<4x5xf32>) -> tensor<5xf32>
  %wide = nn.broadcast %sum : (tensor<5xf32>) -> tensor<3x5xf32>
  %g = nn.gradient %wide of @rows : tensor<3x5xf32>
  %one = nn.reshape %sum : (tensor<5xf32>) -> tensor<1x5xf32>
  // CHECK: nn.gradient %{{.*}} of @row : tensor<1x5xf32>
  %h = nn.gradient %one of @row : tensor<1x5xf32>
  %rows1 = nn.sub %rows, %g : tensor<3x5xf32>
  %row1 = nn.sub %row, %h : tensor<1x5xf32>
  return %y, %row1, %rows1 : tensor<4x5xf32>, tensor<1x5xf32>, tensor<3x5xf32>
}
