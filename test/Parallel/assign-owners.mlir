// RUN: acc-opt %s -split-input-file --dist-assign-owners=stage=1 | FileCheck %s
// RUN: acc-opt %s -split-input-file --dist-assign-owners | FileCheck %s --check-prefix=ALONE

// Two matrices of a type for two ranks. What is made of the first waits for the
// second; one that is left over, one of another type, and one of other steps
// stay as they are.

dist.mesh @mesh ["dp_replicate" = 4, "dp_shard" = 2]

// ALONE-LABEL: func.func @pairs
// ALONE-NOT: nn.concat
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: %[[A:.*]]: tensor<8x16xbf16>, %[[B:.*]]: tensor<8x16xbf16>, %[[C:.*]]: tensor<8x16xbf16>, %[[T:.*]]: tensor<16x8xbf16>)
func.func @pairs(%a: tensor<8x16xbf16>, %b: tensor<8x16xbf16>, %c: tensor<8x16xbf16>, %t: tensor<16x8xbf16>)
    -> (tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<16x8xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>)
    attributes {nn.entry = #nn<entry step>} {
  // CHECK: %[[T1:.*]] = nn.newton_schulz %[[T]] steps 5 coefficients [3.000000e+00, -4.000000e+00, 2.000000e+00] : tensor<16x8xbf16>
  // CHECK: %[[A0:.*]] = nn.reshape %[[A]] : (tensor<8x16xbf16>) -> tensor<1x8x16xbf16>
  // CHECK: %[[B0:.*]] = nn.reshape %[[B]] : (tensor<8x16xbf16>) -> tensor<1x8x16xbf16>
  // CHECK: %[[ALL:.*]] = nn.concat %[[A0]], %[[B0]] dim 0
  // CHECK: %[[OWN:.*]] = dist.constraint %[[ALL]] to #[[OF:.*]] : tensor<2x8x16xbf16>
  // CHECK: %[[MADE:.*]] = nn.newton_schulz %[[OWN]] steps 5 {{.*}} : tensor<2x8x16xbf16>
  // CHECK: %[[BACK:.*]] = dist.constraint %[[MADE]] to #[[OF]]
  // CHECK: %[[A1:.*]] = nn.slice %[[BACK]] starts [0, 0, 0] sizes [1, 8, 16] steps [1, 1, 1]
  // CHECK: %[[A2:.*]] = nn.reshape %[[A1]] : (tensor<1x8x16xbf16>) -> tensor<8x16xbf16>
  // CHECK: %[[B1:.*]] = nn.slice %[[BACK]] starts [1, 0, 0] sizes [1, 8, 16] steps [1, 1, 1]
  // CHECK: %[[B2:.*]] = nn.reshape %[[B1]]
  // CHECK: %[[NEXT:.*]] = nn.neg %[[A2]]
  // CHECK: %[[CHAIN:.*]] = nn.newton_schulz %[[NEXT]] steps 5
  // CHECK: %[[C1:.*]] = nn.newton_schulz %[[C]] steps 5
  // CHECK: %[[FEW:.*]] = nn.newton_schulz %[[C]] steps 4
  // CHECK: return %[[A2]], %[[B2]], %[[C1]], %[[T1]], %[[CHAIN]], %[[FEW]]
  %a1 = nn.newton_schulz %a steps 5 coefficients [3.0, -4.0, 2.0] : tensor<8x16xbf16>
  %next = nn.neg %a1 : tensor<8x16xbf16>
  %t1 = nn.newton_schulz %t steps 5 coefficients [3.0, -4.0, 2.0] : tensor<16x8xbf16>
  %chain = nn.newton_schulz %next steps 5 coefficients [3.0, -4.0, 2.0] : tensor<8x16xbf16>
  %b1 = nn.newton_schulz %b steps 5 coefficients [3.0, -4.0, 2.0] : tensor<8x16xbf16>
  %c1 = nn.newton_schulz %c steps 5 coefficients [3.0, -4.0, 2.0] : tensor<8x16xbf16>
  %few = nn.newton_schulz %c steps 4 coefficients [3.0, -4.0, 2.0] : tensor<8x16xbf16>
  return %a1, %b1, %c1, %t1, %chain, %few : tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<16x8xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>
}

// -----

// Ranks that share states, and those of tp: four own matrices; where states are
// not shared, the two of tp.

dist.mesh @mesh ["dp_shard" = 2, "tp" = 2]

// CHECK: #[[$OF:.*]] = #dist.sharding<@mesh, [{dp_shard, tp}, {}, {}]>
// ALONE: #[[$OF:.*]] = #dist.sharding<@mesh, [{tp}, {}, {}]>
// CHECK-LABEL: func.func @three
// CHECK: %[[ZEROS:.*]] = nn.constant dense<0.000000e+00> : tensor<1x4x4xf64>
// CHECK: %[[ALL:.*]] = nn.concat %{{.*}}, %{{.*}}, %{{.*}}, %[[ZEROS]] dim 0
// CHECK: dist.constraint %[[ALL]] to #[[$OF]] : tensor<4x4x4xf64>
// CHECK-COUNT-1: nn.newton_schulz
// CHECK-COUNT-3: nn.slice
// CHECK-NOT: nn.newton_schulz
// ALONE-LABEL: func.func @three
// ALONE: dist.constraint %{{.*}} to #[[$OF]] : tensor<2x4x4xf64>
// ALONE: nn.newton_schulz %{{.*}} : tensor<2x4x4xf64>
// ALONE: nn.newton_schulz %{{.*}} : tensor<4x4xf64>
func.func @three(%a: tensor<4x4xf64>, %b: tensor<4x4xf64>, %c: tensor<4x4xf64>)
    -> (tensor<4x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>) attributes {nn.entry = #nn<entry step>} {
  %a1 = nn.newton_schulz %a steps 1 coefficients [3.0, -4.0, 2.0] : tensor<4x4xf64>
  %b1 = nn.newton_schulz %b steps 1 coefficients [3.0, -4.0, 2.0] : tensor<4x4xf64>
  %c1 = nn.newton_schulz %c steps 1 coefficients [3.0, -4.0, 2.0] : tensor<4x4xf64>
  return %a1, %b1, %c1 : tensor<4x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>
}

// -----

// Matrices of two stages, and what is a stack already, have owners without that.

dist.mesh @mesh ["dp_shard" = 2, "pp" = 2]
nn.state @a : tensor<4x4xf64> = dense<0.0>
nn.state @b : tensor<4x4xf64> = dense<0.0> {chunk = 1 : i64}

// CHECK-LABEL: func.func @stages
// CHECK-NOT: nn.concat
func.func @stages(%a: tensor<4x4xf64> {nn.state = @a}, %b: tensor<4x4xf64> {nn.state = @b}, %c: tensor<2x4x4xf64>)
    -> (tensor<4x4xf64> {nn.state = @a}, tensor<4x4xf64> {nn.state = @b}, tensor<2x4x4xf64>) attributes {nn.entry = #nn<entry step>} {
  %a1 = nn.newton_schulz %a steps 1 coefficients [3.0, -4.0, 2.0] : tensor<4x4xf64>
  %b1 = nn.newton_schulz %b steps 1 coefficients [3.0, -4.0, 2.0] : tensor<4x4xf64>
  %c1 = nn.newton_schulz %c steps 1 coefficients [3.0, -4.0, 2.0] : tensor<2x4x4xf64>
  return %a1, %b1, %c1 : tensor<4x4xf64>, tensor<4x4xf64>, tensor<2x4x4xf64>
}
