// RUN: acc-opt %s --dist-plan-reshards -verify-diagnostics

func.func @no_mesh(%x: tensor<8xf32, #dist.sharding<@m, [{a}]>>) {
  // expected-error @below {{no dist.mesh named @m}}
  %0 = dist.reshard %x : tensor<8xf32, #dist.sharding<@m, [{a}]>> -> tensor<8xf32, #dist.sharding<@m, [{}]>>
  return
}
