// What is made of nothing is known, and means the same; a program that has such tensors compiles
// for ranks that share its rows and columns.
// RUN: acc-opt %s --nn-fold-empty -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: acc-eval %s --compare %t.mlir
// RUN: acc-opt %s --mesh dp=2 --compile-to=plan -o /dev/null
// RUN: acc-opt %s --mesh tp=2 --compile-to=plan -o /dev/null
module attributes {accel.phase = "nn"} {
  // CHECK: func.func @main(%[[X:.*]]: tensor<4x3xf32> {nn.input = "x"}, %[[V:.*]]: tensor<f32> {nn.input = "v"},
  // CHECK-NEXT: %[[EMPTY:.*]] = nn.constant dense<> : tensor<4x0xf32>
  // CHECK-NEXT: %[[SUM:.*]] = nn.constant dense<0.0{{.*}}> : tensor<4xf32>
  // CHECK-NEXT: %[[MAX:.*]] = nn.constant dense<0xFF800000> : tensor<4xf32>
  // CHECK-NEXT: %[[LEAST:.*]] = nn.constant dense<9223372036854775807> : tensor<i64>
  // CHECK-NEXT: %[[ALL:.*]] = nn.constant dense<true> : tensor<i1>
  // CHECK-NEXT: %[[ONE:.*]] = nn.constant dense<1.0{{.*}}> : tensor<3xf32>
  // CHECK-NEXT: %[[PRODUCT:.*]] = nn.constant dense<0.0{{.*}}> : tensor<3x3xf32>
  // CHECK-NEXT: %[[PADDED:.*]] = nn.broadcast %[[V]] : (tensor<f32>) -> tensor<4x2xf32>
  // CHECK-NEXT: %[[GROUPED:.*]] = nn.constant dense<0.0{{.*}}> : tensor<4x5xf32>
  // CHECK-NEXT: return %[[SUM]], %[[MAX]], %[[LEAST]], %[[ALL]], %[[ONE]], %[[PRODUCT]], %[[PADDED]], %[[X]], %[[GROUPED]], %[[EMPTY]]
  func.func @main(%x: tensor<4x3xf32> {nn.input = "x"}, %v: tensor<f32> {nn.input = "v"}, %n: tensor<0x3xf32> {nn.input = "n"})
      -> (tensor<4xf32> {nn.output = "sum"}, tensor<4xf32> {nn.output = "max"}, tensor<i64> {nn.output = "least"}, tensor<i1> {nn.output = "all"},
          tensor<3xf32> {nn.output = "one"}, tensor<3x3xf32> {nn.output = "product"}, tensor<4x2xf32> {nn.output = "padded"},
          tensor<4x3xf32> {nn.output = "added"}, tensor<4x5xf32> {nn.output = "grouped"}, tensor<4x0xf32> {nn.output = "empty"}) attributes {nn.entry} {
    %0 = nn.neg %x : tensor<4x3xf32>
    %1 = nn.slice %0 starts [0, 1] sizes [4, 0] steps [1, 1] : (tensor<4x3xf32>) -> tensor<4x0xf32>
    %2 = nn.exp %1 : tensor<4x0xf32>
    %sum = nn.reduce sum %2 dims [1] : (tensor<4x0xf32>) -> tensor<4xf32>
    %max = nn.reduce max %2 dims [1] : (tensor<4x0xf32>) -> tensor<4xf32>
    %i = nn.cast %2 : (tensor<4x0xf32>) -> tensor<4x0xi64>
    %least = nn.reduce min %i dims [0, 1] : (tensor<4x0xi64>) -> tensor<i64>
    %b = nn.compare gt %2, %1 : tensor<4x0xf32>
    %all = nn.reduce min %b dims [0, 1] : (tensor<4x0xi1>) -> tensor<i1>
    %one = nn.reduce prod %n dims [0] : (tensor<0x3xf32>) -> tensor<3xf32>
    %product = nn.matmul %n, %n {transpose_lhs} : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<3x3xf32>
    %padded = nn.pad %2, %v low [0, 1] high [0, 1] : (tensor<4x0xf32>, tensor<f32>) -> tensor<4x2xf32>
    %places = nn.reduce sum %i dims [0] : (tensor<4x0xi64>) -> tensor<0xi64>
    %added = nn.scatter_add %x, %places, %n dim 0 : (tensor<4x3xf32>, tensor<0xi64>, tensor<0x3xf32>) -> tensor<4x3xf32>
    %w = nn.constant dense<> : tensor<2x0x5xf32>
    %g = nn.constant dense<[0, 1, 0, 1]> : tensor<4xi64>
    %grouped = nn.grouped_matmul %2, %w, %g : (tensor<4x0xf32>, tensor<2x0x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
    return %sum, %max, %least, %all, %one, %product, %padded, %added, %grouped, %2
        : tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<i1>, tensor<3xf32>, tensor<3x3xf32>, tensor<4x2xf32>, tensor<4x3xf32>, tensor<4x5xf32>, tensor<4x0xf32>
  }
}
