// RUN: acc-opt %s --split-input-file --nn-build-step="loss=cross_entropy:z,labels" --verify-diagnostics

module {
  nn.state @w : tensor<2xf32> = dense<1.0>
  // expected-error @below {{expected a new name for the labels of --loss, found the input 'labels'}}
  func.func @main(%x: tensor<2xi64> {nn.input = "labels"}, %w: tensor<2xf32> {nn.state = @w}) -> (tensor<2xf32> {nn.output = "z"}) attributes {nn.entry} {
    %z = nn.exp %w : tensor<2xf32>
    return %z : tensor<2xf32>
  }
}

// -----

module {
  nn.state @w : tensor<f32> = dense<1.0>
  func.func @main(%w: tensor<f32> {nn.state = @w}) -> (tensor<f32> {nn.output = "z"}) attributes {nn.entry} {
    // expected-error @below {{expected logits of floats, of rank 1 or more, found output 'z' of type 'tensor<f32>'}}
    %z = nn.exp %w : tensor<f32>
    return %z : tensor<f32>
  }
}
