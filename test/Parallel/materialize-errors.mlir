// RUN: acc-opt %s --dist-materialize -split-input-file -verify-diagnostics

// expected-error @below {{expected a dist.mesh, found none}}
module {
}

// -----
dist.mesh @m ["dp" = 2]
func.func private @g(tensor<4xf32>) -> tensor<4xf32>
func.func @no_rule(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'func.call' op has no sharding rule}}
  %0 = func.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
dist.mesh @m ["dp" = 2]
nn.state @w : tensor<4xf32> = dense<1.0>
func.func @one(%w: tensor<4xf32> {nn.state = @w}) {
  %0 = dist.constraint %w to <@m, [{dp}]> : tensor<4xf32>
  return
}
// expected-error @below {{state @w is sharded as #dist.sharding<@m, [{}]> here and as #dist.sharding<@m, [{dp}]> in another function}}
func.func @other(%w: tensor<4xf32> {nn.state = @w}) {
  return
}

// -----
// expected-warning @below {{mesh axis 'tp' of size 2 splits nothing: its ranks repeat each other's work}}
dist.mesh @m ["dp" = 2, "tp" = 2, "ep" = 1]
func.func @idle(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.constraint %x to <@m, [{dp}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
