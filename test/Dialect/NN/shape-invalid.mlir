// Every verifier message of the ops that move elements.
// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @reshape_count(%x: tensor<2x3xf32>) {
  // expected-error @below {{'nn.reshape' op expected 8 elements, found 6}}
  %0 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @reshape_element(%x: tensor<2x3xf32>) {
  // expected-error @below {{'nn.reshape' op expected element type 'f64', found 'f32'}}
  %0 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<6xf64>
  return
}

// -----

func.func @transpose(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected a permutation of 2 dimensions, found [0, 0]}}
  // expected-error @below {{'nn.transpose' op failed to infer returned types}}
  %0 = nn.transpose %x [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @transpose_short(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected a permutation of 2 dimensions, found [0]}}
  // expected-error @below {{'nn.transpose' op failed to infer returned types}}
  %0 = nn.transpose %x [0] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @broadcast_shape(%x: tensor<2x1xf32>) {
  // expected-error @below {{'nn.broadcast' op expected a shape that broadcasts to [3, 4], found [2, 1]}}
  %0 = nn.broadcast %x : (tensor<2x1xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @broadcast_element(%x: tensor<2x1xf32>) {
  // expected-error @below {{'nn.broadcast' op expected element type 'f16', found 'f32'}}
  %0 = nn.broadcast %x : (tensor<2x1xf32>) -> tensor<2x4xf16>
  return
}

// -----

func.func @slice_rank(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 2 starts, sizes and steps, found 1, 2 and 2}}
  // expected-error @below {{'nn.slice' op failed to infer returned types}}
  %0 = nn.slice %x starts [0] sizes [2, 3] steps [1, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_bounds(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected a slice within dimension 1 of size 3, found elements 1 to 3}}
  // expected-error @below {{'nn.slice' op failed to infer returned types}}
  %0 = nn.slice %x starts [0, 1] sizes [2, 3] steps [1, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_backwards(%x: tensor<3xf32>) {
  // expected-error @below {{expected a slice within dimension 0 of size 3, found elements 1 to -1}}
  // expected-error @below {{'nn.slice' op failed to infer returned types}}
  %0 = nn.slice %x starts [1] sizes [3] steps [-1] : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @concat_dim(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected 'dim' in [0, 2), found 2}}
  // expected-error @below {{'nn.concat' op failed to infer returned types}}
  %0 = nn.concat %x dim 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_shape(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  // expected-error @below {{expected inputs that agree with 'tensor<2x3xf32>' outside dimension 1, found 'tensor<3x3xf32>'}}
  // expected-error @below {{'nn.concat' op failed to infer returned types}}
  %0 = nn.concat %x, %y dim 1 : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_nothing() {
  // expected-error @below {{expected at least one input, found none}}
  // expected-error @below {{'nn.concat' op failed to infer returned types}}
  %0 = "nn.concat"() {dim = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @pad_value(%x: tensor<2xf32>, %v: tensor<1xf32>) {
  // expected-error @below {{expected a scalar of 'f32' to pad with, found 'tensor<1xf32>'}}
  // expected-error @below {{'nn.pad' op failed to infer returned types}}
  %0 = nn.pad %x, %v low [0] high [0] : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @pad_rank(%x: tensor<2xf32>, %v: tensor<f32>) {
  // expected-error @below {{expected 1 low and high paddings, found 2 and 1}}
  // expected-error @below {{'nn.pad' op failed to infer returned types}}
  %0 = nn.pad %x, %v low [0, 0] high [0] : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<2xf32>, %v: tensor<f32>) {
  // expected-error @below {{expected paddings of at least 0, found -1}}
  // expected-error @below {{'nn.pad' op failed to infer returned types}}
  %0 = nn.pad %x, %v low [-1] high [0] : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
  return
}

// -----

func.func @gather_dim(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{expected 'dim' in [0, 2), found 2}}
  // expected-error @below {{'nn.gather' op failed to infer returned types}}
  %0 = nn.gather %x, %i dim 2 : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_nd_batch(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>) {
  // expected-error @below {{expected 1 common batch dimensions, found 'tensor<2x3xf32>' and 'tensor<4x1xi64>'}}
  // expected-error @below {{'nn.gather_nd' op failed to infer returned types}}
  %0 = nn.gather_nd %x, %i {batch_dims = 1} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gather_nd_tuple(%x: tensor<2x3xf32>, %i: tensor<4x3xi64>) {
  // expected-error @below {{expected index tuples of at most 2 entries, found 3}}
  // expected-error @below {{'nn.gather_nd' op failed to infer returned types}}
  %0 = nn.gather_nd %x, %i : (tensor<2x3xf32>, tensor<4x3xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @scatter_add_dim(%x: tensor<2x3xf32>, %i: tensor<4xi64>, %u: tensor<2x4xf32>) {
  // expected-error @below {{expected 'dim' in [0, 2), found 2}}
  // expected-error @below {{'nn.scatter_add' op failed to infer returned types}}
  %0 = nn.scatter_add %x, %i, %u dim 2 : (tensor<2x3xf32>, tensor<4xi64>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_add_batches(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>, %u: tensor<2x1xf32>) {
  // expected-error @below {{expected 1 common batch dimensions, found 'tensor<2x3xf32>' and 'tensor<4x1xi64>'}}
  // expected-error @below {{'nn.scatter_add' op failed to infer returned types}}
  %0 = nn.scatter_add %x, %i, %u dim 1 {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_add_batch_dim(%x: tensor<2x3xf32>, %i: tensor<2x1xi64>, %u: tensor<2x1xf32>) {
  // expected-error @below {{expected 'dim' in [1, 2), found 0}}
  // expected-error @below {{'nn.scatter_add' op failed to infer returned types}}
  %0 = nn.scatter_add %x, %i, %u dim 0 {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_add_updates(%x: tensor<2x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf32>) {
  // expected-error @below {{expected updates of type 'tensor<2x4xf32>', found 'tensor<4x3xf32>'}}
  // expected-error @below {{'nn.scatter_add' op failed to infer returned types}}
  %0 = nn.scatter_add %x, %i, %u dim 1 : (tensor<2x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}
