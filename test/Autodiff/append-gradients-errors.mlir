// RUN: acc-opt %s --nn-append-gradients --split-input-file --verify-diagnostics

nn.state @w : tensor<2xf32> = dense<1.0>
func.func @no_rule(%x: tensor<2xf32>, %w: tensor<2xf32> {nn.state = @w}) -> tensor<f32> {
  %e = nn.exp %w : tensor<2xf32>
  // expected-error @below {{'nn.dropout' op has no gradient, on the way from the loss to parameter 'w'}}
  %d = nn.dropout %e ratio 0.5 site 0 : tensor<2xf32>
  %y = nn.reduce sum %d dims [0] : (tensor<2xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

nn.state @w : tensor<2x4x3xf32> = dense<1.0>
func.func @scatter_behind_another_dim(%i: tensor<2x1xi64>, %u: tensor<2x4x1xf32>, %w: tensor<2x4x3xf32> {nn.state = @w}) -> tensor<f32> {
  // expected-error @below {{expected a scatter along dimension 1, the first behind its batches, found 2}}
  %s = nn.scatter_add %w, %i, %u dim 2 {batch_dims = 1} : (tensor<2x4x3xf32>, tensor<2x1xi64>, tensor<2x4x1xf32>) -> tensor<2x4x3xf32>
  %y = nn.reduce sum %s dims [0, 1, 2] : (tensor<2x4x3xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// expected-error @below {{expected a scalar of floats as first result, found function type '(tensor<2xf32>) -> tensor<2xf32>'}}
func.func @no_scalar(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{expected a scalar of floats as first result, found function type '(tensor<f32>) -> tensor<i64>'}}
func.func @no_float(%x: tensor<f32>) -> tensor<i64> {
  %y = nn.cast %x : (tensor<f32>) -> tensor<i64>
  return %y : tensor<i64>
}

// -----

func.func @octets(%x: tensor<2x3xf8E5M2>, %w: tensor<3x4xf8E4M3FN>) -> tensor<f32> {
  // expected-error @below {{expected operands of 16 bits or more of a product that is differentiated, found 'tensor<2x3xf8E5M2>' and 'tensor<3x4xf8E4M3FN>'}}
  %p = nn.matmul %x, %w : (tensor<2x3xf8E5M2>, tensor<3x4xf8E4M3FN>) -> tensor<2x4xf32>
  %y = nn.reduce sum %p dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

nn.state @w : tensor<2xf32> = dense<1.0>
func.func @codes(%w: tensor<2xf32> {nn.state = @w}) -> tensor<f32> {
  %c = nn.cast %w {saturate} : (tensor<2xf32>) -> tensor<2xf4E2M1FN>
  // expected-error @below {{'nn.cast' op has no gradient: expected types that gradients are computed in, found 'tensor<2xf4E2M1FN>'; detach what it casts in the model}}
  %b = nn.cast %c : (tensor<2xf4E2M1FN>) -> tensor<2xf32>
  %y = nn.reduce sum %b dims [0] : (tensor<2xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
