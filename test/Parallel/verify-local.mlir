// RUN: acc-opt %s --local-verify -split-input-file -verify-diagnostics

dist.mesh @m ["a" = 2]
// expected-error @below {{expected tensors without encoding in phase local}}
func.func @sharded(%x: tensor<4xf32, #dist.sharding<@m, [{a}]>>) {
  return
}

// -----
dist.mesh @m ["a" = 2]
func.func @constrained(%x: tensor<4xf32>) {
  // expected-error @below {{is not legal in phase local: it is a statement about whole tensors}}
  %0 = dist.constraint %x to <@m, [{a}]> : tensor<4xf32>
  return
}

// -----
// expected-error @below {{expected a layout on argument 0, found none}}
func.func @main(%x: tensor<4xf32>) attributes {nn.entry} {
  return
}

// -----
dist.mesh @m []
// expected-error @below {{expected a layout on result 0, found none}}
func.func @main(%x: tensor<4xf32> {dist.layout = #dist.layout<@m [4]>}) -> tensor<4xf32> attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----
// expected-error @below {{no dist.schedule runs this entry}}
func.func @main() attributes {nn.entry} {
  return
}

// -----
module {
  // expected-error @below {{is not legal in phase local}}
  module @inner {
  }
}
