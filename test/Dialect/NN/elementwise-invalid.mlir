// Every verifier message of the elementwise ops.
// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @shapes(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{'nn.add' op expected operand #1 to have the result's shape [2], found 'tensor<3xf32>'}}
  %0 = nn.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @elements(%x: tensor<2xf32>, %y: tensor<2xf64>) {
  // expected-error @below {{expected one element type, found 'f32' and 'f64'}}
  // expected-error @below {{'nn.mul' op failed to infer returned types}}
  %0 = nn.mul %x, %y : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @result(%x: tensor<2xf32>) {
  // expected-error @below {{'nn.exp' op inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<2xf64>'}}
  // expected-error @below {{'nn.exp' op failed to infer returned types}}
  %0 = nn.exp %x : (tensor<2xf32>) -> tensor<2xf64>
  return
}

// -----

func.func @integers(%x: tensor<2xi64>) {
  // expected-error @below {{'nn.tanh' op operand #0 must be statically shaped tensor of floats, but got 'tensor<2xi64>'}}
  %0 = nn.tanh %x : tensor<2xi64>
  return
}

// -----

func.func @dynamic(%x: tensor<?xf32>) {
  // expected-error @below {{'nn.neg' op operand #0 must be statically shaped tensor of numbers to compute with, but got 'tensor<?xf32>'}}
  %0 = nn.neg %x : tensor<?xf32>
  return
}

// -----

func.func @cast_shape(%x: tensor<2xf32>) {
  // expected-error @below {{'nn.cast' op expected operand #0 to have the result's shape [3], found 'tensor<2xf32>'}}
  %0 = nn.cast %x : (tensor<2xf32>) -> tensor<3xf64>
  return
}

// -----

func.func @dropout_of_everything(%x: tensor<2xf32>) {
  // expected-error @below {{expected 'ratio' in [0, 1), found 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.dropout %x ratio 1.0 site 0 : tensor<2xf32>
  return
}

// -----

func.func @random_key(%n: tensor<4xi64>, %key: tensor<i64>) {
  // expected-error @below {{'nn.random_uniform' op}}
  %0 = nn.random_uniform %n, %key : (tensor<4xi64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @no_tensor(%x: tensor<2xf32>) {
  // expected-error @below {{expected a tensor or a function type, found 'f32'}}
  %0 = nn.exp %x : f32
  return
}

// -----

func.func @operands(%x: tensor<2xf32>) {
  // expected-error @below {{expected a function type of 2 operands and one result, found '(tensor<2xf32>) -> tensor<2xf32>'}}
  %0 = nn.add %x, %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @results(%x: tensor<2xf32>) {
  // expected-error @below {{expected a function type of 1 operands and one result, found '(tensor<2xf32>) -> ()'}}
  %0 = nn.exp %x : (tensor<2xf32>) -> ()
  return
}

// -----

// Numbers of four bits, and powers of two, are cast and moved.
func.func @codes(%x: tensor<2xf4E2M1FN>) {
  // expected-error @below {{'nn.add' op operand #0 must be statically shaped tensor of numbers to compute with, but got 'tensor<2xf4E2M1FN>'}}
  %0 = nn.add %x, %x : tensor<2xf4E2M1FN>
  return
}
