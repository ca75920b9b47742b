// RUN: acc-opt %s --dist-localize -split-input-file -verify-diagnostics

// expected-error @below {{expected a dist.mesh, found none}}
module {
}

// -----
// expected-error @below {{dist-localize comes too early: expected what dist-materialize establishes (types with shardings), found none: run dist-materialize before it}}
module {
dist.mesh @m ["a" = 2]
func.func @plain(%x: tensor<4xf32>) {
  return
}
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

// -----
dist.mesh @m ["a" = 2]
func.func @plain_result() {
  // expected-error @below {{expected a sharding on every type, found 'tensor<4xf32>'}}
  %0 = nn.constant dense<1.0> : tensor<4xf32>
  return
}

// -----
dist.mesh @m ["a" = 2]
// expected-error @below {{expected shardings over mesh @m, found}}
func.func @other_mesh(%x: tensor<4xf32, #dist.sharding<@n, [{a}]>>) {
  return
}

// -----
dist.mesh @m ["a" = 3]
// expected-error @below {{dimension 0 of size 4 cannot be split into 3 equal parts}}
func.func @divides(%x: tensor<4xf32, #dist.sharding<@m, [{a}]>>) {
  return
}
