// What is no convolution.
// RUN: acc-opt %s -split-input-file -verify-diagnostics

func.func @no_space(%x: tensor<2x3xf32>, %w: tensor<5x3xf32>) {
  // expected-error @below {{expected one to three dimensions of space, found 0}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [] strides [] dilations [] low [] : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @lists(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x3x3xf32>) {
  // expected-error @below {{expected strides, dilations and low paddings of 2 dimensions of space, found 1, 2 and 2}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4, 4] strides [2] dilations [1, 1] low [1, 1] : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
  return
}

// -----

func.func @ranks(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x3x3xf32>) {
  // expected-error @below {{expected operands of 5 dimensions, or of 6 with groups, found 'tensor<2x3x8x8xf32>' and 'tensor<5x3x3x3xf32>'}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4, 4, 4] strides [2, 2, 2] dilations [1, 1, 1] low [1, 1, 1] : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
  return
}

// -----

func.func @elements(%x: tensor<2x3x8xf32>, %w: tensor<5x3x3xf64>) {
  // expected-error @below {{expected one element type, found 'tensor<2x3x8xf32>' and 'tensor<5x3x3xf64>'}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4] strides [2] dilations [1] low [1] : (tensor<2x3x8xf32>, tensor<5x3x3xf64>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @strides(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x3x3xf32>) {
  // expected-error @below {{expected strides and dilations of at least 1, found [2, 0] and [1, 1]}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4, 4] strides [2, 0] dilations [1, 1] low [1, 1] : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
  return
}

// -----

func.func @low(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x3x3xf32>) {
  // expected-error @below {{expected low paddings and sizes of at least 0, found [1, -1] and [4, 4]}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4, 4] strides [2, 2] dilations [1, 1] low [1, -1] : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
  return
}

// -----

func.func @channels(%x: tensor<2x3x8xf32>, %w: tensor<5x4x3xf32>) {
  // expected-error @below {{expected as many channels, found 3 and 4}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4] strides [2] dilations [1] low [1] : (tensor<2x3x8xf32>, tensor<5x4x3xf32>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @groups(%x: tensor<2x2x3x8xf32>, %w: tensor<3x5x3x3xf32>) {
  // expected-error @below {{expected as many groups, found 2 and 3}}
  // expected-error @below {{'nn.conv' op failed to infer returned types}}
  %0 = nn.conv %x, %w sizes [4] strides [2] dilations [1] low [1] : (tensor<2x2x3x8xf32>, tensor<3x5x3x3xf32>) -> tensor<2x2x5x4xf32>
  return
}

// -----

func.func @channels_of_gradient(%x: tensor<2x4x8xf32>, %w: tensor<5x4x3xf32>) {
  // expected-error @below {{expected as many channels, found 4 and 5}}
  // expected-error @below {{'nn.conv_input_grad' op failed to infer returned types}}
  %0 = nn.conv_input_grad %x, %w sizes [8] strides [1] dilations [1] low [1] : (tensor<2x4x8xf32>, tensor<5x4x3xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @groups_of_gradient(%x: tensor<2x4x5x8xf32>, %w: tensor<2x5x4x3xf32>) {
  // expected-error @below {{expected as many groups, found 4 and 2}}
  // expected-error @below {{'nn.conv_input_grad' op failed to infer returned types}}
  %0 = nn.conv_input_grad %x, %w sizes [8] strides [1] dilations [1] low [1] : (tensor<2x4x5x8xf32>, tensor<2x5x4x3xf32>) -> tensor<2x4x4x8xf32>
  return
}

// -----

func.func @samples(%x: tensor<2x4x8xf32>, %y: tensor<3x5x8xf32>) {
  // expected-error @below {{expected as many samples, found 2 and 3}}
  // expected-error @below {{'nn.conv_weight_grad' op failed to infer returned types}}
  %0 = nn.conv_weight_grad %x, %y sizes [3] strides [1] dilations [1] low [1] : (tensor<2x4x8xf32>, tensor<3x5x8xf32>) -> tensor<5x4x3xf32>
  return
}

// -----

func.func @groups_of_weight(%x: tensor<2x4x1x8xf32>, %y: tensor<2x5x1x8xf32>) {
  // expected-error @below {{expected as many groups, found 4 and 5}}
  // expected-error @below {{'nn.conv_weight_grad' op failed to infer returned types}}
  %0 = nn.conv_weight_grad %x, %y sizes [3] strides [1] dilations [1] low [1] : (tensor<2x4x1x8xf32>, tensor<2x5x1x8xf32>) -> tensor<4x1x1x3xf32>
  return
}
