// Ranks that were a dimension are one on each of them: shares are joined and cut without
// that dimension, also where a collective stands between. A model's own heads, of which
// every second element is taken, stay a dimension.
// RUN: acc-opt %s --split-input-file --dist-plan-reshards --dist-localize | FileCheck %s

// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x2xf32>{{.*}}, %[[Y:[^:]*]]: tensor<8x2xf32>
// CHECK-NEXT: %[[A:.*]] = dist.all_slice %[[X]] over @mesh {cp} dim 0 {{.*}}: (tensor<8x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %[[B:.*]] = dist.all_slice %[[Y]] over @mesh {cp} dim 0 {{.*}}: (tensor<8x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %[[C:.*]] = nn.concat %[[A]], %[[B]] dim 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return %[[C]]
module {
dist.mesh @mesh ["cp" = 2, "tp" = 2]
func.func @joined(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>> {nn.input = "x"}, %y: tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>> {nn.input = "y"}) -> (tensor<8x8xf32, #dist.sharding<@mesh, [{cp}, {tp}]>> {nn.output = "z"}) attributes {nn.entry} {
  %0 = nn.reshape %x : (tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>) -> tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>
  %1 = dist.reshard %0 : tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>> -> tensor<8x2x2xf32, #dist.sharding<@mesh, [{cp}, {tp}, {}]>>
  %2 = nn.reshape %y : (tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>) -> tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>
  %3 = dist.reshard %2 : tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>> -> tensor<8x2x2xf32, #dist.sharding<@mesh, [{cp}, {tp}, {}]>>
  %4 = nn.concat %1, %3 dim 2 : (tensor<8x2x2xf32, #dist.sharding<@mesh, [{cp}, {tp}, {}]>>, tensor<8x2x2xf32, #dist.sharding<@mesh, [{cp}, {tp}, {}]>>) -> tensor<8x2x4xf32, #dist.sharding<@mesh, [{cp}, {tp}, {}]>>
  %5 = nn.reshape %4 : (tensor<8x2x4xf32, #dist.sharding<@mesh, [{cp}, {tp}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{cp}, {tp}]>>
  return %5 : tensor<8x8xf32, #dist.sharding<@mesh, [{cp}, {tp}]>>
}
}

// -----

// CHECK-LABEL: func.func @cut
// CHECK: nn.slice %{{.*}} starts [0, 2] sizes [8, 2] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x2xf32>
// CHECK: nn.slice %{{.*}} starts [0, 0, 1] sizes [8, 1, 2] steps [1, 1, 2] : (tensor<8x1x4xf32>) -> tensor<8x1x2xf32>
module {
dist.mesh @mesh ["tp" = 2]
func.func @cut(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{}, {tp}]>> {nn.input = "x"}) -> (tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>> {nn.output = "y"}, tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>> {nn.output = "z"}) attributes {nn.entry} {
  %0 = nn.reshape %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {tp}]>>) -> tensor<8x2x4xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>
  %1 = nn.slice %0 starts [0, 0, 2] sizes [8, 2, 2] steps [1, 1, 1] : (tensor<8x2x4xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>) -> tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>
  %2 = nn.reshape %1 : (tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>) -> tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>
  %3 = nn.slice %0 starts [0, 0, 1] sizes [8, 2, 2] steps [1, 1, 2] : (tensor<8x2x4xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>) -> tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>
  return %2, %3 : tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>, tensor<8x2x2xf32, #dist.sharding<@mesh, [{}, {tp}, {}]>>
}
}
