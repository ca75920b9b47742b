// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @labels(%x: tensor<2x8xf32>, %l: tensor<3xi64>) {
  // expected-error @below {{expected labels of the logits' leading dimensions, found 'tensor<3xi64>' for 'tensor<2x8xf32>'}}
  // expected-error @below {{'nn.cross_entropy' op failed to infer returned types}}
  %0 = nn.cross_entropy %x, %l : (tensor<2x8xf32>, tensor<3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @scalar(%x: tensor<f32>, %l: tensor<i64>) {
  // expected-error @below {{expected labels of the logits' leading dimensions, found 'tensor<i64>' for 'tensor<f32>'}}
  // expected-error @below {{'nn.cross_entropy' op failed to infer returned types}}
  %0 = nn.cross_entropy %x, %l : (tensor<f32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @float_labels(%x: tensor<2x8xf32>, %l: tensor<2xf32>) {
  // expected-error @below {{'nn.cross_entropy' op operand #1 must be statically shaped tensor of i64 or i32, but got 'tensor<2xf32>'}}
  %0 = nn.cross_entropy %x, %l : (tensor<2x8xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}
