// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @softmax_dim(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'dim' in [0, 2), found 2}}
  // expected-error @below {{'nn.softmax' op failed to infer returned types}}
  %0 = nn.softmax %x dim 2 : tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_dim(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{expected 'dim' in [0, 2), found -1}}
  // expected-error @below {{'nn.layer_norm' op failed to infer returned types}}
  %0 = nn.layer_norm %x, %s dim -1 epsilon 0.0 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{expected scale and bias of shape [3] and element type 'f32', found 'tensor<2xf32>'}}
  // expected-error @below {{'nn.layer_norm' op failed to infer returned types}}
  %0 = nn.layer_norm %x, %s, %b dim 1 epsilon 0.0 : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_element(%x: tensor<2x3xf32>, %s: tensor<3xf64>) {
  // expected-error @below {{expected scale and bias of shape [3] and element type 'f32', found 'tensor<3xf64>'}}
  // expected-error @below {{'nn.layer_norm' op failed to infer returned types}}
  %0 = nn.layer_norm %x, %s dim 1 epsilon 0.0 : (tensor<2x3xf32>, tensor<3xf64>) -> tensor<2x3xf32>
  return
}
