// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @inner(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) {
  // expected-error @below {{expected equal inner sizes, found 8 and 4}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @inner_transposed(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) {
  // expected-error @below {{expected equal inner sizes, found 4 and 8}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @batch(%x: tensor<2x4x8xf32>, %y: tensor<3x8x4xf32>) {
  // expected-error @below {{expected batch dimensions [2] or none in the right operand, found 'tensor<3x8x4xf32>'}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<2x4x8xf32>, tensor<3x8x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @vector(%x: tensor<8xf32>, %y: tensor<8x4xf32>) {
  // expected-error @below {{expected matrices, found 'tensor<8xf32>' and 'tensor<8x4xf32>'}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @elements(%x: tensor<4x8xf32>, %y: tensor<8x4xf16>) {
  // expected-error @below {{expected one element type, found 'tensor<4x8xf32>' and 'tensor<8x4xf16>'}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<4x8xf32>, tensor<8x4xf16>) -> tensor<4x4xf32>
  return
}
