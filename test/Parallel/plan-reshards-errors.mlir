// RUN: acc-opt %s --dist-plan-reshards -split-input-file -verify-diagnostics

func.func @no_mesh(%x: tensor<8xf32, #dist.sharding<@m, [{a}]>>) {
  // expected-error @below {{no dist.mesh named @m}}
  %0 = dist.reshard %x : tensor<8xf32, #dist.sharding<@m, [{a}]>> -> tensor<8xf32, #dist.sharding<@m, [{}]>>
  return
}

// -----
dist.mesh @m ["a" = 2, "b" = 4]
func.func @not_divided(%x: tensor<4xf32, #dist.sharding<@m, [{}]>>) {
  // expected-error @below {{dimension 0 of size 4 cannot be split into 8 equal parts}}
  %0 = dist.reshard %x : tensor<4xf32, #dist.sharding<@m, [{}]>> -> tensor<4xf32, #dist.sharding<@m, [{a, b}]>>
  return
}
