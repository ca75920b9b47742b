// RUN: acc-opt %s --split-input-file --nn-build-step="loss=y trainable=w* emit-gradients" --verify-diagnostics | FileCheck %s

// What the loss does not depend on: a warning, a gradient of zeros, and no update.
// CHECK: func.func @step(
// CHECK-SAME: tensor<2xf32> {nn.output = "w.grad"}, tensor<3xf32> {nn.output = "w_unused.grad"}, tensor<2xf32> {nn.state = @w}, tensor<2xf32> {nn.state = @"exp_avg/w"}, tensor<2xf32> {nn.state = @"exp_avg_sq/w"}, tensor<i64> {nn.state = @"counter/step"}, tensor<i64> {nn.state = @"counter/call"})
module {
  nn.state @w : tensor<2xf32> = dense<1.0>
  nn.state @w_unused : tensor<3xf32> = dense<1.0>
  // expected-warning @below {{the loss does not depend on parameters 'w_unused': their gradients are zero, and the update leaves them as they are}}
  func.func @main(%w: tensor<2xf32> {nn.state = @w}, %u: tensor<3xf32> {nn.state = @w_unused}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.reduce sum %w dims [0] : (tensor<2xf32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  nn.state @w : tensor<2xf32> = dense<1.0>
  // expected-error @below {{expected one of the outputs ('a', 'b') in --loss, found 'y'}}
  func.func @main(%w: tensor<2xf32> {nn.state = @w}) -> (tensor<2xf32> {nn.output = "a"}, tensor<2xf32> {nn.output = "b"}) attributes {nn.entry} {
    return %w, %w : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

module {
  nn.state @w : tensor<2xf32> = dense<1.0>
  func.func @main(%w: tensor<2xf32> {nn.state = @w}) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
    // expected-error @below {{expected a loss of one float, found output 'y' of type 'tensor<2xf32>'}}
    %y = nn.exp %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

module {
  nn.state @w : tensor<2xf32> = dense<1.0>
  func.func @main(%w: tensor<2xf32> {nn.state = @w}) -> (tensor<i1> {nn.output = "y"}) attributes {nn.entry} {
    %s = nn.reduce sum %w dims [0] : (tensor<2xf32>) -> tensor<f32>
    // expected-error @below {{expected a loss of one float, found output 'y' of type 'tensor<i1>'}}
    %y = nn.is_nan %s : tensor<f32>
    return %y : tensor<i1>
  }
}

// -----

// A parameter that reaches the loss through what has no rule.
module {
  nn.state @w : tensor<1x1x1x1xf32> = dense<1.0>
  func.func @main(%w: tensor<1x1x1x1xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %l = nn.reshape %w : (tensor<1x1x1x1xf32>) -> tensor<1x1x1xf32>
    // expected-error @below {{'nn.attention_grad' op has no gradient, on the way from the loss to parameter 'w'}}
    %d:3 = nn.attention_grad %w, %w, %w output %w, %l gradient %w {scale = 1.0 : f64} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1x1xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>)
    %y = nn.reduce sum %d#0 dims [0, 1, 2, 3] : (tensor<1x1x1x1xf32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  nn.state @w : tensor<2xf32> = dense<1.0>
  func.func @main(%x: tensor<2xf32> {nn.input = "x"}, %w: tensor<2xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    // expected-error @below {{expected a loss that depends on a trained parameter, found none}}
    %y = nn.reduce sum %x dims [0] : (tensor<2xf32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  nn.state @v : tensor<f32> = dense<1.0>
  // expected-error @below {{pattern 'w*' of --trainable matches no parameter, the nearest are 'v'}}
  func.func @main(%v: tensor<f32> {nn.state = @v}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    return %v : tensor<f32>
  }
}

// -----

module {
  // expected-error @below {{expected a parameter of f64, f32, bf16 or f16 to train, found 'w' of type 'tensor<f8E5M2>': leave it as it is by --frozen=PATTERN}}
  nn.state @w : tensor<f8E5M2> = dense<1.0>
  func.func @main(%w: tensor<f8E5M2> {nn.state = @w}) -> (tensor<f8E5M2> {nn.output = "y"}) attributes {nn.entry} {
    return %w : tensor<f8E5M2>
  }
}

// -----

module {
  // expected-error @below {{expected --trainable to match parameters, found state 'w' of role buffer}}
  nn.state buffer @w : tensor<f32> = dense<1.0>
  func.func @main(%w: tensor<f32> {nn.state = @w}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    return %w : tensor<f32>
  }
}

// -----

// Names that training needs.
module {
  nn.state @w : tensor<f32> = dense<1.0>
  // expected-error @below {{expected no symbol 'exp_avg/w' in a forward program: training needs the name}}
  nn.state @"exp_avg/w" : tensor<f32> = dense<1.0>
  func.func @main(%w: tensor<f32> {nn.state = @w}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.exp %w : tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  // expected-error @below {{expected no symbol 'step' in a forward program: training needs the name}}
  nn.state @step : tensor<f32> = dense<1.0>
  func.func @main(%w: tensor<f32> {nn.state = @step}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    return %w : tensor<f32>
  }
}

// -----

module attributes {accel.untrainable = "its bias is not in it"} {
  nn.state @w : tensor<f32> = dense<1.0>
  // expected-error @below {{cannot train this module: its bias is not in it}}
  func.func @main(%w: tensor<f32> {nn.state = @w}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    return %w : tensor<f32>
  }
}

// -----

// expected-error @below {{expected a forward entry, found none}}
module {
}


// -----

// Of what is stacked each member has its gradient by its own name, and the moments are one.
// CHECK: nn.state moment @"exp_avg/w.*" : tensor<2x3xf32>
// CHECK: func.func @step(
// CHECK-SAME: -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"}, tensor<f32> {nn.output = "lr"}, tensor<i32> {nn.output = "verdict"}, tensor<3xf32> {nn.output = "w.0.grad"}, tensor<3xf32> {nn.output = "w.1.grad"}, tensor<2x3xf32> {nn.state = @"w.*"}
// CHECK: %[[G:.*]] = nn.gradient {{.*}} of @"w.*"
// CHECK: %[[S:.*]] = nn.slice %[[G]] starts [1, 0] sizes [1, 3]
// CHECK: nn.reshape %[[S]] : (tensor<1x3xf32>) -> tensor<3xf32>
module {
  nn.state @w.0 : tensor<3xf32> = dense<1.0>
  nn.state @w.1 : tensor<3xf32> = dense<1.0>
  nn.state @"w.*" : tensor<2x3xf32> = [@w.0, @w.1]
  func.func @main(%w: tensor<2x3xf32> {nn.state = @"w.*"}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.reduce sum %w dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

// One that --trainable=w* does not name stays frozen, where the other is trained.
module {
  nn.state @w.0 : tensor<3xf32> = dense<1.0> {frozen}
  // expected-error @below {{expected 'v.1' to be trained where 'w.0' is, because 's' holds both: compile from the model, where patterns are known before parameters are stacked}}
  nn.state @v.1 : tensor<3xf32> = dense<1.0> {frozen}
  nn.state @s : tensor<2x3xf32> = [@w.0, @v.1] {frozen}
  func.func @main(%w: tensor<2x3xf32> {nn.state = @s}) -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.reduce sum %w dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}
