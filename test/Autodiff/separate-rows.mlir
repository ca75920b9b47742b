// Where the loss of the entry eval is a mean of what rows come to by themselves, the module
// says so, and on what it depends.
// RUN: acc-opt %s --split-input-file --nn-add-inference="loss=loss entries=eval" | FileCheck %s
// RUN: acc-opt %s --split-input-file --nn-add-inference="loss=loss entries=eval batch-dim=columns=1,shared=none" | FileCheck %s --check-prefix=COLUMNS

// A mean over labels: an ignored one would change the weights of rows, and rows of 's' may not differ.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64: -100>, inputs = ["ids", "labels", "s"]}}
module {
  nn.state @w : tensor<8x5xf32> = dense<1.0>
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}, %labels: tensor<4x3xi64> {nn.input = "labels"}, %s: tensor<4xf32> {nn.input = "s"}, %w: tensor<8x5xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %ignored = nn.constant dense<-100> : tensor<12xi64>
    %x = nn.gather %w, %ids dim 0 : (tensor<8x5xf32>, tensor<4x3xi64>) -> tensor<4x3x5xf32>
    %r = nn.reshape %s : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %b = nn.broadcast %r : (tensor<4x1x1xf32>) -> tensor<4x3x5xf32>
    %y = nn.mul %x, %b : tensor<4x3x5xf32>
    %flat = nn.reshape %y : (tensor<4x3x5xf32>) -> tensor<12x5xf32>
    %l = nn.reshape %labels : (tensor<4x3xi64>) -> tensor<12xi64>
    %losses = nn.cross_entropy %flat, %l : (tensor<12x5xf32>, tensor<12xi64>) -> tensor<12xf32>
    %sum = nn.reduce sum %losses dims [0] : (tensor<12xf32>) -> tensor<f32>
    %is = nn.compare ne %l, %ignored : tensor<12xi64>
    %ones = nn.cast %is : (tensor<12xi1>) -> tensor<12xf32>
    %count = nn.reduce sum %ones dims [0] : (tensor<12xf32>) -> tensor<f32>
    %loss = nn.div %sum, %count : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What rows come to together, before anything that is not linear in it, is no such mean.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %sum = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %loss = nn.exp %sum : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nor are pairs of rows, nor rows with constants of their own.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %a = nn.slice %x starts [0, 0] sizes [2, 3] steps [2, 1] : (tensor<4x3xf32>) -> tensor<2x3xf32>
    %loss = nn.reduce sum %a dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %weights = nn.constant dense<[[1.0], [2.0], [1.0], [1.0]]> : tensor<4x1xf32>
    %b = nn.broadcast %weights : (tensor<4x1xf32>) -> tensor<4x3xf32>
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %y = nn.mul %x, %b : tensor<4x3xf32>
    %loss = nn.reduce sum %y dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Rows of floating point beside labels, an input that all rows have, and one whose rows are along another dimension.
// CHECK: module attributes {accel.separate_rows = {equal = [{dim = 1 : i64, input = "columns"}], ignored = array<i64>, inputs = ["x", "shared", "y"]}}
// COLUMNS: module attributes {accel.separate_rows = {equal = [{dim = 0 : i64, input = "shared"}], ignored = array<i64>, inputs = ["x", "columns", "y"]}}
module {
  func.func @main(%x: tensor<4x3xf32> {nn.input = "x"}, %columns: tensor<3x4xf32> {nn.input = "columns"}, %shared: tensor<4x3xf32> {nn.input = "shared"}, %y: tensor<4xf32> {nn.input = "y"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %c = nn.transpose %columns [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %a = nn.mul %x, %c : tensor<4x3xf32>
    %b = nn.mul %a, %shared : tensor<4x3xf32>
    %s = nn.reduce sum %b dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
    %d = nn.sub %s, %y : tensor<4xf32>
    %q = nn.mul %d, %d : tensor<4xf32>
    %loss = nn.reduce sum %q dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// An input as long as the batch, which goes along sequences: tokens have rows, it has none.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids"]}}
module {
  func.func @main(%ids: tensor<4x4xi64> {nn.input = "ids"}, %positions: tensor<4xf32> {nn.input = "positions"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x4xi64>) -> tensor<4x4xf32>
    %p = nn.reshape %positions : (tensor<4xf32>) -> tensor<1x4xf32>
    %b = nn.broadcast %p : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %y = nn.mul %x, %b : tensor<4x4xf32>
    %loss = nn.reduce sum %y dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
