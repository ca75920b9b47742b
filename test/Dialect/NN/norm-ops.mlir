// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @norms(
func.func @norms(%x: tensor<2x3x8xf32>, %s: tensor<8xf32>, %w: tensor<3x8xf32>) {
  // CHECK: nn.softmax %{{.*}} dim 2 : tensor<2x3x8xf32>
  %0 = nn.softmax %x dim 2 : tensor<2x3x8xf32>
  // CHECK: nn.softmax %{{.*}} dim 0 {log} :
  %1 = nn.softmax %x dim 0 {log} : tensor<2x3x8xf32>
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} dim 2 epsilon 1.0{{0*}}e-05 :
  %2 = nn.layer_norm %x, %s, %s dim 2 epsilon 1.0e-5 : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}} dim 1 epsilon {{.*}} : (tensor<2x3x8xf32>, tensor<3x8xf32>)
  %3 = nn.layer_norm %x, %w dim 1 epsilon 0.0 : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  return
}
