// RUN: acc-opt %s --dist-localize -split-input-file -verify-diagnostics

// expected-error @below {{expected a dist.mesh, found none}}
module {
}

// -----
// expected-error @below {{expected one micro-batch, found axis 'mb' of size 2}}
dist.mesh @m ["mb" = 2]

// -----
dist.mesh @m ["a" = 2]
// expected-error @below {{expected a sharding on every type, found 'tensor<4xf32>'}}
func.func @plain(%x: tensor<4xf32>) {
  return
}

// -----
dist.mesh @m ["a" = 2]
!t = tensor<4xf32, #dist.sharding<@m, [{a}]>>
func.func private @g(!t) -> !t
func.func @no_rule(%x: !t) -> !t {
  // expected-error @below {{has no local form: it has no sharding rule}}
  %0 = func.call @g(%x) : (!t) -> !t
  return %0 : !t
}
