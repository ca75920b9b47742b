// RUN: acc-opt %s --split-input-file --nn-mask-rows="loss=loss batch-dim=y=1" --verify-diagnostics | FileCheck %s

// A mean of a mean: sums leave rows out, and the count of one row's elements is that of what is added up in one go.

// CHECK: module attributes {accel.row_mask = {equal = [], input = "row_mask", inputs = ["x", "y", "row_mask"]}}
module {
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32> {nn.input = "x"}, %[[Y:.*]]: tensor<2x4xf32> {nn.input = "y"}, %[[MASK:.*]]: tensor<4xi1> {nn.input = "row_mask"}, %{{.*}}: tensor<3xf32> {nn.state = @w}
nn.state @w : tensor<3xf32> = dense<1.0>
func.func @main(%x: tensor<4x3xf32> {nn.input = "x"}, %y: tensor<2x4xf32> {nn.input = "y"},
                %w: tensor<3xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %b = nn.broadcast %w : (tensor<3xf32>) -> tensor<4x3xf32>
  // CHECK: %[[P:.*]] = nn.mul %[[X]], %{{.*}} : tensor<4x3xf32>
  %p = nn.mul %x, %b : tensor<4x3xf32>
  // CHECK: %[[F:.*]] = nn.cast %[[MASK]] : (tensor<4xi1>) -> tensor<4xf32>
  // CHECK: %[[COLUMN:.*]] = nn.reshape %[[F]] : (tensor<4xf32>) -> tensor<4x1xf32>
  // CHECK: %[[WIDE:.*]] = nn.broadcast %[[COLUMN]] : (tensor<4x1xf32>) -> tensor<4x3xf32>
  // CHECK: %[[KEPT:.*]] = nn.mul %[[P]], %[[WIDE]]
  // CHECK: %[[SUM:.*]] = nn.reduce sum %[[KEPT]] dims [0, 1]
  %s = nn.reduce sum %p dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  // CHECK: %[[ROWS:.*]] = nn.reduce sum %{{.*}} dims [0] : (tensor<4xf32>) -> tensor<f32>
  // CHECK: %[[NUMBER:.*]] = nn.mul %[[ROWS]], %{{.*}} : tensor<f32>
  // CHECK: %[[MEAN:.*]] = nn.div %[[SUM]], %[[NUMBER]]
  // CHECK-NOT: nn.mean
  %twelfth = nn.constant dense<0.083333333> : tensor<f32>
  %m = nn.mul %s, %twelfth {nn.mean} : tensor<f32>
  // A sum beside it, over the second dimension, and the mean over what is left.
  // CHECK: nn.reshape %{{.*}} : (tensor<4xf32>) -> tensor<1x4xf32>
  // CHECK: %[[Q:.*]] = nn.reduce sum %{{.*}} dims [1] : (tensor<2x4xf32>) -> tensor<2xf32>
  %q = nn.reduce sum %y dims [1] : (tensor<2x4xf32>) -> tensor<2xf32>
  %r = nn.reduce sum %q dims [0] : (tensor<2xf32>) -> tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<f32>
  %n = nn.mul %r, %half {nn.mean} : tensor<f32>
  %l = nn.add %m, %n : tensor<f32>
  return %l : tensor<f32>
}
}

// -----

// Random numbers are each row's own: with what is fed, and alone where they have the batch's size first.

module {
// CHECK-LABEL: func.func @noise
// CHECK-SAME: %[[MASK:.*]]: tensor<4xi1> {nn.input = "row_mask"}
nn.state @w : tensor<3xf32> = dense<1.0>
func.func @noise(%x: tensor<4x3xf32> {nn.input = "x"}, %w: tensor<3xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %b = nn.broadcast %w : (tensor<3xf32>) -> tensor<4x3xf32>
  %n = nn.rng normal site 0 : tensor<4x3xf32>
  %half = nn.constant dense<0.5> : tensor<4x3xf32>
  %z = nn.mul %n, %half : tensor<4x3xf32>
  // CHECK: %[[P:.*]] = nn.add %[[X:.*]], %{{.*}} : tensor<4x3xf32>
  %p = nn.add %x, %z : tensor<4x3xf32>
  // CHECK: %[[Q:.*]] = nn.mul %[[P]], %{{.*}} : tensor<4x3xf32>
  %q = nn.mul %p, %b : tensor<4x3xf32>
  // CHECK: %[[KEPT:.*]] = nn.mul %[[Q]], %{{.*}} : tensor<4x3xf32>
  // CHECK: nn.reduce sum %[[KEPT]] dims [0, 1]
  %s = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  // CHECK: %[[ALONE:.*]] = nn.mul %{{.*}}, %{{.*}} : tensor<4x3xf32>
  %g = nn.rng uniform site 1 : tensor<4x3xf32>
  %h = nn.mul %g, %b : tensor<4x3xf32>
  // CHECK: %[[KEPT2:.*]] = nn.mul %[[ALONE]], %{{.*}} : tensor<4x3xf32>
  // CHECK: nn.reduce sum %[[KEPT2]] dims [0, 1]
  %t = nn.reduce sum %h dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  %l = nn.add %s, %t : tensor<f32>
  return %l : tensor<f32>
}
}

// -----

func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %s = nn.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %quarter = nn.constant dense<0.25> : tensor<f32>
  // expected-error @below {{cannot tell whether this op scales a sum over rows by the size of the batch, with --row-mask: the model has a number here; take the mean of the rows (torch.mean), or divide by a sum over them}}
  %m = nn.mul %s, %quarter : tensor<f32>
  return %m : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %quarter = nn.constant dense<0.25> : tensor<4xf32>
  %p = nn.mul %x, %quarter : tensor<4xf32>
  // expected-error @below {{cannot tell whether this op scales a sum over rows by the size of the batch}}
  %s = nn.reduce sum %p dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %s = nn.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %four = nn.constant dense<4.0> : tensor<f32>
  // expected-error @below {{cannot tell whether this op scales a sum over rows by the size of the batch}}
  %m = nn.sub %s, %four : tensor<f32>
  return %m : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  // expected-error @below {{expected rows of a batch that do not depend on each other or on their place, with --row-mask, found that this op mixes them}}
  %s = nn.reduce max %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// expected-error @below {{expected an input with the rows of a batch, with --row-mask, found none}}
func.func @main(%x: tensor<f32> {nn.input = "x"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{expected a new name for the mask of --row-mask, found the input 'row_mask'}}
func.func @main(%x: tensor<4xf32> {nn.input = "row_mask"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %s = nn.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
