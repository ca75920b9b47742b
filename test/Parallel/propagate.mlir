// RUN: acc-opt %s --dist-propagate=print-origins -split-input-file -verify-diagnostics | FileCheck %s

dist.mesh @mesh ["dp" = 2, "tp" = 2]
// Forward through a reshape that merges, along what a matmul keeps, and back to
// a constant; nothing is changed.
// CHECK-LABEL: @batch(
// CHECK: dist.constraint
// CHECK-NOT: tensor<{{.*}}#
// expected-remark @below {{argument 0: [{dp}, {}, {}]; 'dp' through dist.constraint}}
// expected-remark @below {{argument 1: [{}, {}]}}
func.func @batch(%x: tensor<4x11x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x11x6xf32> {
  // expected-remark @below {{[{dp}, {}, {}]; 'dp' through dist.constraint}}
  %0 = dist.constraint %x to <@mesh, [{dp}, {?}, {?}]> : tensor<4x11x8xf32>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.reshape}}
  %1 = nn.reshape %0 : (tensor<4x11x8xf32>) -> tensor<44x8xf32>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.matmul}}
  %2 = nn.matmul %1, %w : (tensor<44x8xf32>, tensor<8x6xf32>) -> tensor<44x6xf32>
  // expected-remark @below {{[{dp}, {}, {}]; 'dp' through nn.reshape}}
  %3 = nn.reshape %2 : (tensor<44x6xf32>) -> tensor<4x11x6xf32>
  // expected-remark @below {{[{dp}, {}, {}]; 'dp' through nn.add}}
  %4 = nn.constant dense<1.0> : tensor<4x11x6xf32>
  // expected-remark @below {{[{dp}, {}, {}]; 'dp' through nn.add}}
  %5 = nn.add %3, %4 : tensor<4x11x6xf32>
  return %5 : tensor<4x11x6xf32>
}

// -----
dist.mesh @mesh ["dp" = 2, "tp" = 2]
// A closed dimension takes nothing from others, an open one does, at its minor
// end.
// expected-remark @below {{argument 0: [{dp}, {tp}]}}
// expected-remark @below {{argument 1: [{}, {}]}}
func.func @closed(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @below {{[{dp}, {tp}]}}
  %0 = dist.constraint %x to <@mesh, [{dp, ?}, {tp}]> : tensor<4x8xf32>
  // expected-remark @below {{[{}, {}]}}
  %1 = dist.constraint %y to <@mesh, [{}, {}]> : tensor<4x8xf32>
  // expected-remark @below {{[{dp}, {tp}]; 'dp' through nn.add; 'tp' through nn.add}}
  %2 = nn.add %0, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----
dist.mesh @mesh ["a" = 2, "b" = 2]
// One axis, two factors: of two values without constraint the larger wins, and
// a constraint wins against size.
// expected-remark @below {{argument 0: [{a}, {}]}}
func.func @conflict(%x: tensor<4x8xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  // expected-remark @below {{[{a}, {}]}}
  %0 = dist.constraint %x to <@mesh, [{a}, {}]> : tensor<4x8xf32>
  // expected-remark @below {{[{a}, {}]}}
  %1 = nn.exp %0 : tensor<4x8xf32>
  // expected-remark @below {{[{}, {a}]}}
  %2 = nn.constant dense<1.0> : tensor<8x64xf32>
  // expected-remark @below {{[{}, {a}]}}
  %3 = dist.constraint %2 to <@mesh, [{}, {a}]> : tensor<8x64xf32>
  // expected-remark @below {{[{}, {a}]}}
  %4 = nn.exp %3 : tensor<8x64xf32>
  // expected-remark @below {{[{}, {a}]; 'a' through nn.matmul}}
  %5 = nn.matmul %1, %4 : (tensor<4x8xf32>, tensor<8x64xf32>) -> tensor<4x64xf32>
  // expected-remark @below {{[{a}, {}]; 'a' through nn.matmul}}
  %6 = nn.matmul %0, %4 : (tensor<4x8xf32>, tensor<8x64xf32>) -> tensor<4x64xf32>
  return %5, %6 : tensor<4x64xf32>, tensor<4x64xf32>
}

// -----
dist.mesh @mesh ["a" = 2, "b" = 2]
// A factor that is not wholly split shields those minor to it in a dimension.
// expected-remark @below {{argument 0: [{}, {b}, {}]}}
func.func @minor(%x: tensor<4x6x8xf32>) -> tensor<24x8xf32> {
  // expected-remark @below {{[{}, {b}, {}]}}
  %0 = dist.constraint %x to <@mesh, [{}, {b}, {}]> : tensor<4x6x8xf32>
  // expected-remark @below {{[{}, {}]}}
  %1 = nn.reshape %0 : (tensor<4x6x8xf32>) -> tensor<24x8xf32>
  return %1 : tensor<24x8xf32>
}

// -----
dist.mesh @mesh ["dp" = 2]
// A constant is made where it is wanted: that it is split for one reader says
// nothing to the other. Alone it says where its reader works.
// expected-remark @below {{argument 0: [{dp}, {}]}}
// expected-remark @below {{argument 1: [{}, {}]}}
func.func @constant(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // expected-remark @below {{[{dp}, {}]}}
  %0 = dist.constraint %x to <@mesh, [{dp}, {}]> : tensor<4x8xf32>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.mul}}
  %1 = nn.constant dense<2.0> : tensor<4x8xf32>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.mul}}
  %2 = nn.mul %0, %1 : tensor<4x8xf32>
  // expected-remark @below {{[{}, {}]}}
  %3 = nn.mul %w, %1 : tensor<4x8xf32>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.exp}}
  %4 = nn.exp %1 : tensor<4x8xf32>
  return %2, %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----
dist.mesh @mesh ["dp" = 2]
// Places have no say, nor has a mask that is made of them: that the batch splits
// some says nothing of the scores that others are held beside.
// expected-remark @below {{argument 0: [{dp}, {}]}}
// expected-remark @below {{argument 1: [{}, {}, {}]}}
func.func @places(%x: tensor<8x8xi64>, %scores: tensor<3x8x8xf32>) -> (tensor<8x8xi64>, tensor<3x8x8xf32>) {
  // expected-remark @below {{[{dp}, {}]; 'dp' through dist.constraint}}
  %0 = dist.constraint %x to <@mesh, [{dp}, {?}]> : tensor<8x8xi64>
  // expected-remark @below {{[{dp}, {}]}}
  %rows = nn.iota {dim = 0} : tensor<8x8xi64>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.add}}
  %columns = nn.iota {dim = 1} : tensor<8x8xi64>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.add}}
  %1 = nn.add %0, %columns : tensor<8x8xi64>
  // expected-remark @below {{[{dp}, {}]; 'dp' through nn.compare}}
  %causal = nn.compare ge %rows, %columns : tensor<8x8xi64>
  // expected-remark @below {{[{}, {dp}, {}]; 'dp' through nn.broadcast}}
  %mask = nn.broadcast %causal : (tensor<8x8xi1>) -> tensor<3x8x8xi1>
  // expected-remark @below {{[{}, {}, {}]}}
  %2 = nn.select %mask, %scores, %scores : tensor<3x8x8xf32>
  return %1, %2 : tensor<8x8xi64>, tensor<3x8x8xf32>
}
