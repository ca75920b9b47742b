// A constraint whose lists are all open is a wish: it loses to what weights ask for,
// however small they are, whichever comes first in the program.
// RUN: acc-opt %s --dist-materialize | FileCheck %s
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<2x2xf32> = dense<1.0>

// CHECK-LABEL: @main
func.func @main(%x: tensor<64x2xf32> {nn.input = "x"}, %a: tensor<2x2xf32> {nn.state = @w}) -> (tensor<64x2xf32>, tensor<64x2xf32>, tensor<64x2xf32>) attributes {nn.entry} {
  %i = nn.neg %x : tensor<64x2xf32>
  %0 = dist.constraint %i to <@mesh, [{tp, ?}, {?}]> : tensor<64x2xf32>
  // Rows where nothing speaks against it,
  // CHECK: %[[E:.*]] = nn.exp %{{.*}} : tensor<64x2xf32, #tp-all>
  %e = nn.exp %0 : tensor<64x2xf32>
  %w = dist.constraint %a to <@mesh, [{}, {tp}]> : tensor<2x2xf32>
  // columns where a weight has them.
  // CHECK: %[[G:.*]] = dist.reshard %[[E]] {{.*}} -> tensor<64x2xf32, #all-all>
  // CHECK-NEXT: nn.matmul %[[G]], %{{.*}} -> tensor<64x2xf32, #all-tp>
  %y = nn.matmul %e, %w : (tensor<64x2xf32>, tensor<2x2xf32>) -> tensor<64x2xf32>
  %z = nn.tanh %y : tensor<64x2xf32>
  return %e, %z, %0 : tensor<64x2xf32>, tensor<64x2xf32>, tensor<64x2xf32>
}
