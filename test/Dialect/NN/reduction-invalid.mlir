// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @order(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected ascending dimensions below 2, found [1, 0]}}
  // expected-error @below {{'nn.reduce' op failed to infer returned types}}
  %0 = nn.reduce sum %x dims [1, 0] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @first_of_two(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'first' on a max or min over one dimension, found max over [0, 1]}}
  // expected-error @below {{'nn.reduce' op failed to infer returned types}}
  %0 = nn.reduce max %x dims [0, 1] {first} : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @first_of_a_sum(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'first' on a max or min over one dimension, found sum over [0]}}
  // expected-error @below {{'nn.reduce' op failed to infer returned types}}
  %0 = nn.reduce sum %x dims [0] {first} : (tensor<2x3xf32>) -> tensor<3xf32>
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
  %0 = nn.cumsum %x dim 5 : tensor<2x3xf32>
  return
}
