// Where the loss of the entry eval is a mean of what rows come to by themselves, the module
// says so, and on what it depends.
// RUN: acc-opt %s --split-input-file --nn-add-inference="loss=loss entries=eval" | FileCheck %s
// RUN: acc-opt %s --split-input-file --nn-add-inference="loss=loss entries=eval batch-dim=columns=1,shared=none" | FileCheck %s --check-prefix=COLUMNS

// A mean over the labels that count: their losses, and how many they are. Rows of 's' may not differ.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids", "labels", "s"], terms = [{denominator = "loss.term.0.denominator", numerator = "loss.term.0.numerator", plus = 0.000000e+00 : f64}]}}
// CHECK: func.func @eval
// CHECK-SAME: -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "loss.term.0.numerator"}, tensor<f32> {nn.output = "loss.term.0.denominator"})
// CHECK: %[[SUM:.*]] = nn.reduce sum
// CHECK: %[[COUNT:.*]] = nn.reduce sum
// CHECK: %[[LOSS:.*]] = nn.div %[[SUM]], %[[COUNT]]
// CHECK: return %[[LOSS]], %[[SUM]], %[[COUNT]]
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
// CHECK: module attributes {accel.separate_rows = {equal = [{dim = 1 : i64, input = "columns"}], ignored = array<i64>, inputs = ["x", "shared", "y"], terms = []}}
// COLUMNS: module attributes {accel.separate_rows = {equal = [{dim = 0 : i64, input = "shared"}], ignored = array<i64>, inputs = ["x", "columns", "y"], terms = []}}
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
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids"], terms = []}}
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

// -----

// Quotients that are added: of one denominator there is one term, and what is no quotient is a mean.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids"], terms = [{denominator = "loss.term.0.denominator", numerator = "loss.term.0.numerator", plus = 0.000000e+00 : f64}, {numerator = "loss.term.1.numerator"}, {denominator = "loss.term.2.denominator", numerator = "loss.term.2.numerator", plus = 1.000000e+00 : f64}]}}
// CHECK: func.func @eval
// CHECK: %[[A:.*]] = nn.reduce sum
// CHECK: %[[B:.*]] = nn.reduce sum
// CHECK: %[[TWICE:.*]] = nn.mul %[[A]], %{{.*}} : tensor<f32>
// CHECK: %[[NEG:.*]] = nn.neg %[[B]]
// CHECK: %[[BOTH:.*]] = nn.add %[[TWICE]], %[[NEG]]
// CHECK: return %{{.*}}, %[[BOTH]], %[[A]], %[[B]], %[[B]], %[[A]] :
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.div %a, %a : tensor<f32>
    %d = nn.mul %c, %two : tensor<f32>
    %e = nn.div %b, %a : tensor<f32>
    %f = nn.sub %d, %e : tensor<f32>
    %g = nn.add %f, %b : tensor<f32>
    %h = nn.add %one, %a : tensor<f32>
    %i = nn.div %b, %h : tensor<f32>
    %loss = nn.add %g, %i : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A denominator that is not let below a number, as torch.clamp and as max write it.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids"], terms = [{denominator = "loss.term.0.denominator", least = 2.000000e+00 : f64, numerator = "loss.term.0.numerator", plus = 0.000000e+00 : f64}]}}
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.compare lt %b, %two : tensor<f32>
    %d = nn.select %c, %two, %b : tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The count is of whole numbers, and cast when it is not below 1.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids"], terms = [{denominator = "loss.term.0.denominator", least = 1.000000e+00 : f64, numerator = "loss.term.0.numerator", plus = 1.000000e+00 : f64}]}}
// CHECK: func.func @eval
// CHECK: %[[COUNT:.*]] = nn.reduce sum %{{.*}} : (tensor<4x3xi64>)
// CHECK: %[[NUMBER:.*]] = nn.cast %[[COUNT]] : (tensor<i64>) -> tensor<f32>
// CHECK: return %{{.*}}, %{{.*}}, %[[NUMBER]] :
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %i = nn.constant dense<1> : tensor<i64>
    %n = nn.reduce sum %ids dims [0, 1] : (tensor<4x3xi64>) -> tensor<i64>
    %m = nn.add %n, %i : tensor<i64>
    %c = nn.max %i, %m : tensor<i64>
    %d = nn.cast %c : (tensor<i64>) -> tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is selected is not the larger of the two.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.compare gt %b, %two : tensor<f32>
    %d = nn.select %c, %two, %b : tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nor is it where another is compared.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.compare lt %a, %two : tensor<f32>
    %d = nn.select %c, %two, %b : tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A numerator to which something is added would be counted once a batch.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.add %a, %one : tensor<f32>
    %loss = nn.div %c, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A denominator that is added to after it was held above a number.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.max %b, %two : tensor<f32>
    %d = nn.add %c, %one : tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A quotient of quotients, a product of sums, and what is not linear in a quotient.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.div %a, %b : tensor<f32>
    %loss = nn.div %c, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.mul %a, %b : tensor<f32>
    %loss = nn.div %c, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.div %a, %b : tensor<f32>
    %loss = nn.exp %c : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A quotient of whole numbers is rounded, batch by batch.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %a = nn.reduce sum %ids dims [0, 1] : (tensor<4x3xi64>) -> tensor<i64>
    %q = nn.mul %ids, %ids : tensor<4x3xi64>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xi64>) -> tensor<i64>
    %c = nn.div %b, %a : tensor<i64>
    %loss = nn.cast %c : (tensor<i64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A count in a form that is no denominator: the loss is a mean as long as no label is ignored.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64: 0>, inputs = ["ids"], terms = []}}
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %zero = nn.constant dense<0> : tensor<4x3xi64>
    %none = nn.constant dense<0.0> : tensor<f32>
    %is = nn.compare ne %ids, %zero : tensor<4x3xi64>
    %ones = nn.cast %is : (tensor<4x3xi1>) -> tensor<4x3xf32>
    %count = nn.reduce sum %ones dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %c = nn.compare gt %count, %none : tensor<f32>
    %d = nn.select %c, %count, %one : tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Numbers that are put side by side and added up, and a sum times one over another.
// CHECK: module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["ids"], terms = [{denominator = "loss.term.0.denominator", numerator = "loss.term.0.numerator", plus = 0.000000e+00 : f64}, {numerator = "loss.term.1.numerator"}]}}
// CHECK: func.func @eval
// CHECK: %[[A:.*]] = nn.reduce sum
// CHECK: %[[B:.*]] = nn.reduce sum
// CHECK: %[[TWICE:.*]] = nn.mul %[[A]], %{{.*}} : tensor<f32>
// CHECK: %[[BOTH:.*]] = nn.add
// CHECK: return %{{.*}}, %[[BOTH]], %[[B]], %{{.*}} :
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.div %two, %b : tensor<f32>
    %d = nn.mul %c, %a : tensor<f32>
    %r = nn.reciprocal %b : tensor<f32>
    %e = nn.mul %a, %r : tensor<f32>
    %d1 = nn.reshape %d : (tensor<f32>) -> tensor<1xf32>
    %e1 = nn.reshape %e : (tensor<f32>) -> tensor<1xf32>
    %a1 = nn.reshape %a : (tensor<f32>) -> tensor<1xf32>
    %all = nn.concat %d1, %e1, %a1 dim 0 : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
    %loss = nn.reduce sum %all dims [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The largest of them is no sum.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %c = nn.div %a, %b : tensor<f32>
    %c1 = nn.reshape %c : (tensor<f32>) -> tensor<1xf32>
    %a1 = nn.reshape %a : (tensor<f32>) -> tensor<1xf32>
    %all = nn.concat %c1, %a1 dim 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %loss = nn.reduce max %all dims [0] : (tensor<2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nor is one over a sum times what is added to.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.add %a, %two : tensor<f32>
    %r = nn.reciprocal %b : tensor<f32>
    %loss = nn.mul %c, %r : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A value that is put in the place of another is not held above it.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.compare eq %b, %two : tensor<f32>
    %d = nn.select %c, %two, %b : tensor<f32>
    %loss = nn.div %a, %d : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Quotients of several numbers have no name.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0] : (tensor<4x3xf32>) -> tensor<3xf32>
    %b = nn.reduce sum %q dims [0] : (tensor<4x3xf32>) -> tensor<3xf32>
    %c = nn.div %a, %b : tensor<3xf32>
    %loss = nn.reduce sum %c dims [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What was taken apart in vain is not left there.
// CHECK: module {
// CHECK-NOT: separate_rows
// CHECK-NOT: nn.neg
// CHECK: func.func @eval
// CHECK-NOT: nn.neg
// CHECK: return
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    %c = nn.div %a, %b : tensor<f32>
    %d = nn.sub %a, %c : tensor<f32>
    %e = nn.exp %c : tensor<f32>
    %loss = nn.add %d, %e : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nor are several of a list of which one is a quotient.
// CHECK: module {
// CHECK-NOT: separate_rows
module {
  func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.cast %ids : (tensor<4x3xi64>) -> tensor<4x3xf32>
    %q = nn.mul %x, %x : tensor<4x3xf32>
    %a = nn.reduce sum %x dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %b = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
    %v = nn.reduce sum %q dims [0] : (tensor<4x3xf32>) -> tensor<3xf32>
    %c = nn.div %a, %b : tensor<f32>
    %c1 = nn.reshape %c : (tensor<f32>) -> tensor<1xf32>
    %all = nn.concat %c1, %v dim 0 : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
    %loss = nn.reduce sum %all dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
