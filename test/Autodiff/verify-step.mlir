// RUN: acc-opt %s --split-input-file --nn-verify-step --verify-diagnostics

nn.state @w : tensor<2xf32> = dense<1.0>
// expected-error @below {{writes parameter 'w', expected only a step to}}
func.func @main(%w: tensor<2xf32> {nn.state = @w}) -> (tensor<2xf32> {nn.state = @w}) attributes {nn.entry} {
  return %w : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
  // expected-error @below {{draws anew in every step of training, expected --train or a model exported for inference}}
  %y = nn.dropout %x ratio 0.5 site 0 : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

module attributes {accel.reports = ["loss", "grad_norm", "lr", "verdict"]} {
// expected-error @below {{expected a scalar output 'grad_norm', found none}}
// expected-error @below {{expected a scalar output 'lr', found none}}
// expected-error @below {{expected a scalar output 'verdict' of type i32, found one of type 'f32'}}
func.func @step(%x: tensor<f32> {nn.input = "x"}, %z: tensor<1xf32> {nn.input = "z"}) -> (tensor<f32> {nn.output = "loss"}, tensor<1xf32> {nn.output = "lr"}, tensor<f32> {nn.output = "verdict"}) attributes {nn.entry = #nn<entry step>} {
  return %x, %z, %x : tensor<f32>, tensor<1xf32>, tensor<f32>
}
}

// -----

// expected-error @below {{expected a module that lists what its step reports in 'accel.reports', found none}}
func.func @step(%x: tensor<f32> {nn.input = "x"}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry = #nn<entry step>} {
  return %x : tensor<f32>
}

// -----

module attributes {accel.reports = ["loss", "verdict"]} {
nn.state @w : tensor<2xf32> = dense<1.0>
nn.state @f : tensor<2xf32> = dense<1.0> {frozen}
// expected-error @below {{is not written by the step}}
nn.state moment @m : tensor<2xf32> = dense<1.0>
// expected-error @below {{writes state 'f', which is frozen}}
// expected-error @below {{writes state 'w' twice}}
// expected-error @below {{writes 'tensor<f32>' to state 'w', expected 'tensor<2xf32>'}}
func.func @step(%x: tensor<f32> {nn.input = "x"}, %w: tensor<2xf32> {nn.state = @w}, %f: tensor<2xf32> {nn.state = @f})
    -> (tensor<f32> {nn.output = "loss"}, tensor<i32> {nn.output = "verdict"},
        tensor<2xf32> {nn.state = @w}, tensor<2xf32> {nn.state = @f}, tensor<f32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %g = nn.gradient %w of @w : tensor<2xf32>
  %h = nn.gradient %f of @f : tensor<2xf32>
  %done = nn.constant dense<0> : tensor<i32>
  return %x, %done, %g, %h, %x : tensor<f32>, tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>
}
}

// -----

module attributes {accel.reports = ["loss", "verdict"]} {
nn.state @v : tensor<2xf32> = dense<1.0>
nn.state @w : tensor<2xf32> = dense<1.0>
// expected-error @below {{writes parameter 'v' without a gradient of it}}
func.func @step(%x: tensor<f32> {nn.input = "x"}, %v: tensor<2xf32> {nn.state = @v}, %w: tensor<2xf32> {nn.state = @w})
    -> (tensor<f32> {nn.output = "loss"}, tensor<i32> {nn.output = "verdict"},
        tensor<2xf32> {nn.state = @v}, tensor<2xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %g = nn.gradient %w of @w : tensor<2xf32>
  %e = nn.exp %g : tensor<2xf32>
  // expected-error @below {{marks a value of the update, expected one of forward and backward}}
  // expected-error @below {{is a second gradient of 'w'}}
  %h = nn.gradient %e of @w : tensor<2xf32>
  %done = nn.constant dense<0> : tensor<i32>
  return %x, %done, %v, %h : tensor<f32>, tensor<i32>, tensor<2xf32>, tensor<2xf32>
}
}

// -----

// expected-error @below {{gives output "y" twice}}
func.func @main(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}, tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
  return %x, %x : tensor<2xf32>, tensor<2xf32>
}
