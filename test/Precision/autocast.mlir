// RUN: acc-opt %s --nn-autocast=lists=cuda | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: acc-opt %s --nn-autocast=lists=cpu | FileCheck %s --check-prefixes=CHECK,CPU

// What the lists say is there to be read; of which calls nodes were, no more.
// CUDA: module attributes {nn.autocast = "cuda"}
// CPU: module attributes {nn.autocast = "cpu"}
module attributes {nn.calls = {
    pow = "%pow = pow", add = "%add = add", other = "%other = gelu",
    sum = "%mean = mean", times = "%mean = mean", twice = ""}} {

// A linear layer is of 16 bits with its bias; a product stays what it is; what
// is added to a float32 is one; a result is of the model's type.
// CHECK-LABEL: @residual(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8xf32>)
// CUDA-DAG: %[[WN:.*]] = nn.cast %[[W]] {nn.reason = "matmul: bf16 by the cuda list"} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// CPU-DAG: %[[WN:.*]] = nn.cast %[[W]] {nn.reason = "matmul: bf16 by the cpu list"} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// CHECK-DAG: %[[XN:.*]] = nn.cast %[[X]]
// CHECK-DAG: %[[BN:.*]] = nn.cast %[[B]] {{.*}} -> tensor<8xbf16>
// CHECK: %[[Y:.*]] = nn.matmul %[[XN]], %[[WN]]
// CHECK: nn.add %[[Y]], %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.gelu tanh %{{.*}} : tensor<4x8xbf16>
// CHECK: %[[Z:.*]] = nn.matmul %{{.*}}, %[[WN]] {{.*}} -> tensor<4x8xbf16>
// CHECK: nn.cast %[[Z]] {nn.reason = "add: the widest of its operands"} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: nn.add {{.*}} : tensor<4x8xf32>
func.func @residual(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
  %2 = nn.add %0, %1 : tensor<4x8xf32>
  %3 = nn.gelu tanh %2 : tensor<4x8xf32>
  %4 = nn.matmul %3, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %5 = nn.add %x, %4 : tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// What an op stands for by itself: on CUDA these compute in float32.
// CHECK-LABEL: @on_cuda(
// CUDA: nn.exp %{{.*}} : tensor<4x8xf32>
// CUDA: nn.log %{{.*}} : tensor<4x8xf32>
// CUDA: nn.log1p %{{.*}} : tensor<4x8xf32>
// CUDA: nn.rsqrt %{{.*}} : tensor<4x8xf32>
// CUDA: nn.reciprocal %{{.*}} : tensor<4x8xf32>
// CUDA: nn.pow %{{.*}} : tensor<4x8xf32>
// CUDA: nn.softmax %{{.*}} : tensor<4x8xf32>
// CUDA: nn.cumsum %{{.*}} : tensor<4x8xf32>
// CUDA: nn.reduce sum %{{.*}} -> tensor<4xf32>
// CPU: nn.exp %{{.*}} : tensor<4x8xbf16>
// CPU: nn.log %{{.*}} : tensor<4x8xbf16>
// CPU: nn.log1p %{{.*}} : tensor<4x8xbf16>
// CPU: nn.rsqrt %{{.*}} : tensor<4x8xbf16>
// CPU: nn.reciprocal %{{.*}} : tensor<4x8xbf16>
// CPU: nn.pow %{{.*}} : tensor<4x8xbf16>
// CPU: nn.softmax %{{.*}} : tensor<4x8xbf16>
// CPU: nn.cumsum %{{.*}} : tensor<4x8xbf16>
// CPU: nn.reduce sum %{{.*}} -> tensor<4xbf16>
func.func @on_cuda(%x: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xbf16>) {
  %0 = nn.exp %x : tensor<4x8xbf16>
  %1 = nn.log %x : tensor<4x8xbf16>
  %2 = nn.log1p %x : tensor<4x8xbf16>
  %3 = nn.rsqrt %x : tensor<4x8xbf16>
  %4 = nn.reciprocal %x : tensor<4x8xbf16>
  %5 = nn.pow %x, %x : tensor<4x8xbf16>
  %6 = nn.softmax %x dim 1 : tensor<4x8xbf16>
  %7 = nn.cumsum %x dim 1 : tensor<4x8xbf16>
  %8 = nn.reduce sum %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xbf16>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xbf16>
}

// Losses and products of many numbers do so everywhere; these nowhere.
// CHECK-LABEL: @alike(
// CHECK: nn.cross_entropy %{{.*}} -> tensor<4xf32>
// CHECK: nn.reduce prod %{{.*}} -> tensor<4xf32>
// CHECK: nn.tanh %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.sigmoid %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.sqrt %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.reduce max %{{.*}} -> tensor<4xbf16>
// CHECK: nn.reshape %{{.*}} -> tensor<32xbf16>
func.func @alike(%x: tensor<4x8xbf16>, %i: tensor<4xi64>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xbf16>, tensor<32xbf16>) {
  %0 = nn.cross_entropy %x, %i : (tensor<4x8xbf16>, tensor<4xi64>) -> tensor<4xbf16>
  %1 = nn.reduce prod %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xbf16>
  %2 = nn.tanh %x : tensor<4x8xbf16>
  %3 = nn.sigmoid %x : tensor<4x8xbf16>
  %4 = nn.sqrt %x : tensor<4x8xbf16>
  %5 = nn.reduce max %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xbf16>
  %6 = nn.reshape %x : (tensor<4x8xbf16>) -> tensor<32xbf16>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4xbf16>, tensor<4xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xbf16>, tensor<32xbf16>
}

// The calls of the nodes decide before that: a square of `pow`, a sum of `add`
// of what looks like a bias, an exponential in `gelu`. Nodes of one name and
// two calls say nothing.
// CHECK-LABEL: @calls(
// CUDA: nn.mul %{{.*}} : tensor<4x8xf32>
// CPU: nn.mul %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.mul %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.exp %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.matmul
// CHECK: nn.add {{.*}} : tensor<4x8xf32>
func.func @calls(%x: tensor<4x8xbf16>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xf32>) {
  %0 = nn.mul %x, %x : tensor<4x8xbf16> loc("pow")
  %1 = nn.mul %x, %x : tensor<4x8xbf16> loc("twice")
  %2 = nn.exp %x : tensor<4x8xbf16> loc("other")
  %3 = nn.cast %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %4 = nn.matmul %3, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %5 = nn.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
  %6 = nn.add %4, %5 : tensor<4x8xf32> loc("add")
  return %0, %1, %2, %6 : tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xf32>
}

// A mean follows its operand, and is rounded once: of nodes that say so, and of
// a sum times one over the number of its terms.
// CHECK-LABEL: @means(
// CHECK: nn.reduce sum %{{.*}} -> tensor<4xf32>
// CHECK: %[[M:.*]] = nn.mul %{{.*}} : tensor<4xf32>
// CHECK: %[[R:.*]] = nn.cast %[[M]] {nn.reason = "mean: f32 sums, rounded once"} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: nn.neg %[[R]] : tensor<4xbf16>
// CHECK: nn.reduce sum %{{.*}} -> tensor<4xf32>
// CHECK: nn.mul %{{.*}} : tensor<4xf32>
// CHECK: nn.cast %{{.*}} -> tensor<4xbf16>
// CHECK: nn.reduce sum %{{.*}} -> tensor<4xf32>
// CHECK-NEXT: nn.mul %{{.*}} : tensor<4xf32>
// CHECK-NEXT: return
func.func @means(%x: tensor<4x8xbf16>, %y: tensor<4x8xf32>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>) {
  %c = nn.constant dense<0.125> : tensor<4xbf16>
  %d = nn.constant dense<0.125> : tensor<4xf32>
  %0 = nn.reduce sum %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xbf16> loc("sum")
  %1 = nn.mul %0, %c : tensor<4xbf16> loc("times")
  %2 = nn.neg %1 : tensor<4xbf16>
  %3 = nn.reduce sum %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xbf16>
  %4 = nn.mul %3, %c : tensor<4xbf16>
  %5 = nn.reduce sum %y dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %6 = nn.mul %5, %d : tensor<4xf32>
  return %2, %4, %6 : tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>
}

// Numbers widen nothing. One that 16 bits do not hold is not rounded.
// CHECK-LABEL: @numbers(
// CHECK: nn.mul %{{.*}} : tensor<4x8xbf16>
// CHECK: %[[P:.*]] = nn.mul %{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: nn.cast %[[P]] {nn.reason = "mul: of its operand's type"} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK: %[[S:.*]] = nn.add %{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: nn.cast %[[S]] {{.*}} -> tensor<4x8xbf16>
// CHECK: nn.select %{{.*}} : tensor<4x8xbf16>
func.func @numbers(%x: tensor<4x8xbf16>, %s: tensor<f32>, %i: tensor<4x8xi1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = nn.cast %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %e = nn.constant dense<0.5> : tensor<8x8xf32>
  %x0 = nn.matmul %w, %e : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %half = nn.constant dense<0.5> : tensor<4x8xf32>
  %tenth = nn.constant dense<0.1> : tensor<4x8xf32>
  %0 = nn.mul %x0, %half : tensor<4x8xf32>
  %1 = nn.mul %x0, %tenth : tensor<4x8xf32>
  %2 = nn.broadcast %s : (tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.add %x0, %2 : tensor<4x8xf32>
  %4 = nn.select %i, %x0, %tenth : tensor<4x8xf32>
  return %0, %1, %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// A normalisation on CPUs follows its input, whatever its parameters are.
// CHECK-LABEL: @normal(
// CHECK: %[[N:.*]] = nn.layer_norm %{{.*}} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CUDA-NEXT: nn.neg %[[N]] : tensor<4x8xf32>
// CPU-NEXT: %[[R:.*]] = nn.cast %[[N]] {nn.reason = "layer_norm: of its operand's type"}
// CPU-NEXT: nn.neg %[[R]] : tensor<4x8xbf16>
func.func @normal(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.layer_norm %0, %s, %s dim 1 epsilon 1.0e-05 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = nn.neg %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// Floats of 64 bits and integers are nobody's.
// CHECK-LABEL: @others(
// CHECK-NOT: nn.cast
// CHECK: return
func.func @others(%x: tensor<4x8xf64>, %w: tensor<8x8xf64>, %i: tensor<4xi64>) -> (tensor<4x8xf64>, tensor<4xi64>) {
  %0 = nn.matmul %x, %w : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64>
  %1 = nn.neg %i : tensor<4xi64>
  return %0, %1 : tensor<4x8xf64>, tensor<4xi64>
}
}
