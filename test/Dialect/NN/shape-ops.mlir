// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @movement(
func.func @movement(%x: tensor<2x3x4xf32>, %zero: tensor<f32>, %table: tensor<9x4xf32>,
                    %ids: tensor<2x3xi64>, %pairs: tensor<2x2xi32>,
                    %tables: tensor<2x9x4xf32>, %few: tensor<3xi32>) {
  // CHECK: nn.reshape %{{.*}} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %0 = nn.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK: nn.transpose %{{.*}} [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = nn.transpose %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // CHECK: nn.broadcast %{{.*}} : (tensor<f32>) -> tensor<5x2xf32>
  %2 = nn.broadcast %zero : (tensor<f32>) -> tensor<5x2xf32>
  // CHECK: nn.slice %{{.*}} starts [0, 2, 0] sizes [2, 2, 4] steps [1, -2, 1] : {{.*}} -> tensor<2x2x4xf32>
  %3 = nn.slice %x starts [0, 2, 0] sizes [2, 2, 4] steps [1, -2, 1] : (tensor<2x3x4xf32>) -> tensor<2x2x4xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} dim 1 : {{.*}} -> tensor<2x6x4xf32>
  %4 = nn.concat %x, %x dim 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
  // CHECK: nn.pad %{{.*}}, %{{.*}} low [0, 1, 0] high [0, 0, 2] : {{.*}} -> tensor<2x4x6xf32>
  %5 = nn.pad %x, %zero low [0, 1, 0] high [0, 0, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 0 padding 1 : {{.*}} -> tensor<2x3x4xf32>
  %padded = nn.gather %table, %ids dim 0 padding 1 : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 0 padding 1 {non_negative} : {{.*}} -> tensor<2x3x4xf32>
  %embedded = nn.gather %table, %ids dim 0 padding 1 {non_negative} : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 0 : {{.*}} -> tensor<2x3x4xf32>
  %6 = nn.gather %table, %ids dim 0 : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  // CHECK: nn.gather_nd %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x4xf32>
  %7 = nn.gather_nd %x, %pairs : (tensor<2x3x4xf32>, tensor<2x2xi32>) -> tensor<2x4xf32>
  // CHECK: nn.gather_nd %{{.*}}, %{{.*}} {batch_dims = 1 : i64} : {{.*}} -> tensor<2xf32>
  %8 = nn.gather_nd %x, %pairs {batch_dims = 1} : (tensor<2x3x4xf32>, tensor<2x2xi32>) -> tensor<2xf32>
  // CHECK: nn.scatter_add %{{.*}}, %{{.*}}, %{{.*}} dim 0 : (tensor<9x4xf32>, tensor<2x3xi64>, tensor<2x3x4xf32>) -> tensor<9x4xf32>
  %9 = nn.scatter_add %table, %ids, %x dim 0 : (tensor<9x4xf32>, tensor<2x3xi64>, tensor<2x3x4xf32>) -> tensor<9x4xf32>
  // CHECK: nn.scatter_add %{{.*}} dim 1 : (tensor<2x9x4xf32>, tensor<3xi32>, tensor<2x3x4xf32>) -> tensor<2x9x4xf32>
  %10 = nn.scatter_add %tables, %few, %x dim 1 : (tensor<2x9x4xf32>, tensor<3xi32>, tensor<2x3x4xf32>) -> tensor<2x9x4xf32>
  // CHECK: nn.scatter_add %{{.*}} dim 1 {batch_dims = 1 : i64} : (tensor<2x9x4xf32>, tensor<2x3xi64>, tensor<2x3x4xf32>) -> tensor<2x9x4xf32>
  %11 = nn.scatter_add %tables, %ids, %x dim 1 {batch_dims = 1} : (tensor<2x9x4xf32>, tensor<2x3xi64>, tensor<2x3x4xf32>) -> tensor<2x9x4xf32>
  return
}
