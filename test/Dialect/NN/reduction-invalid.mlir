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

// -----

func.func @top_of_few(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'k' in [1, 3], the elements of a row, found 4}}
  // expected-error @below {{'nn.top_k' op failed to infer returned types}}
  %0 = nn.top_k %x k 4 : (tensor<2x3xf32>) -> tensor<2x4xi64>
  return
}

// -----

func.func @top_of_none(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'k' in [1, 3], the elements of a row, found 0}}
  // expected-error @below {{'nn.top_k' op failed to infer returned types}}
  %0 = nn.top_k %x k 0 : (tensor<2x3xf32>) -> tensor<2x0xi64>
  return
}

// -----

func.func @top_of_a_number(%x: tensor<f32>) {
  // expected-error @below {{expected rows, found 'tensor<f32>'}}
  // expected-error @below {{'nn.top_k' op failed to infer returned types}}
  %0 = nn.top_k %x k 1 : (tensor<f32>) -> tensor<1xi64>
  return
}
