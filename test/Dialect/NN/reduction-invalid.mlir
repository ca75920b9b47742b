// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @order(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected ascending dimensions below 2, found [1, 0]}}
  // expected-error @below {{'nn.reduce' op failed to infer returned types}}
  %0 = nn.reduce sum %x dims [1, 0] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @range(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected ascending dimensions below 2, found [2]}}
  // expected-error @below {{'nn.reduce' op failed to infer returned types}}
  %0 = nn.reduce sum %x dims [2] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @cumsum(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'dim' in [0, 2), found 5}}
  // expected-error @below {{'nn.cumsum' op failed to infer returned types}}
  %0 = nn.cumsum %x dim 5 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
