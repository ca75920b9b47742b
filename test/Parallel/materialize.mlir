// RUN: acc-opt %s --dist-materialize -split-input-file | FileCheck %s
// RUN: acc-opt %s --dist-materialize --dist-verify -split-input-file -o /dev/null

// A column-parallel matmul, then a row-parallel one: the partial sums pass the
// residual's reshape and are reduced before what is not linear.
dist.mesh @m ["tp" = 2]
nn.state @w1 : tensor<8x16xf32> = dense<1.0>
// CHECK: nn.state @w1 : tensor<8x16xf32, #all-tp>
// CHECK-LABEL: @mlp(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32, #all-all>
// CHECK-SAME: %[[W1:.*]]: tensor<8x16xf32, #all-tp>
// CHECK-SAME: %[[W2:.*]]: tensor<16x8xf32, #tp-all>
// CHECK-NOT: dist.constraint
// CHECK-NEXT: %[[H:.*]] = nn.matmul %[[X]], %[[W1]] {{.*}} -> tensor<4x16xf32, #all-tp>
// CHECK-NEXT: %[[A:.*]] = nn.relu %[[H]] {{.*}}tensor<4x16xf32, #all-tp>
// CHECK-NEXT: %[[P:.*]] = nn.matmul %[[A]], %[[W2]] {{.*}} -> tensor<4x8xf32, #all-all-sum_over_tp>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[P]] {{.*}} -> tensor<32xf32, #all-sum_over_tp>
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[R]] {dist.inserted_by = "dist-materialize"} : {{.*}} -> tensor<32xf32, #all>
// CHECK-NEXT: %[[E:.*]] = nn.exp %[[S]]
// CHECK-NEXT: nn.tanh %[[S]]
// CHECK-NEXT: return %[[E]]
func.func @mlp(%x: tensor<4x8xf32>, %w1: tensor<8x16xf32> {nn.state = @w1}, %w2: tensor<16x8xf32>) -> tensor<32xf32> {
  %0 = dist.constraint %w1 to <@m, [{}, {tp}]> : tensor<8x16xf32>
  %1 = nn.matmul %x, %0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %2 = nn.relu %1 : tensor<4x16xf32>
  %3 = nn.matmul %2, %w2 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %4 = nn.reshape %3 : (tensor<4x8xf32>) -> tensor<32xf32>
  %5 = nn.exp %4 : tensor<32xf32>
  %6 = nn.tanh %4 : tensor<32xf32>
  return %5 : tensor<32xf32>
}

// -----
// What an op cannot have split is gathered right before it; a value that is
// returned is never partial, but stays split.
dist.mesh @m ["dp" = 2]
// CHECK-LABEL: @gathered(
// CHECK-NEXT: %[[Y:.*]] = nn.exp
// CHECK-NEXT: %[[G:.*]] = dist.reshard %[[Y]] {{.*}} -> tensor<4x8xf32, #all-all>
// CHECK-NEXT: %[[C:.*]] = nn.cumsum %[[G]]
// CHECK-NEXT: %[[P:.*]] = nn.reduce sum %[[Y]] {{.*}} -> tensor<8xf32, #all-sum_over_dp>
// CHECK-NEXT: %[[M:.*]] = nn.reduce max %[[Y]] {{.*}} -> tensor<8xf32, #all-max_over_dp>
// CHECK-NEXT: %[[N:.*]] = dist.reshard %[[M]]
// CHECK-NEXT: %[[NEG:.*]] = nn.neg %[[N]]
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[P]] {{.*}} -> tensor<8xf32, #all>
// CHECK-NEXT: return %[[Y]], %[[C]], %[[S]], %[[NEG]]
func.func @gathered(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.constraint %x to <@m, [{dp}, {}]> : tensor<4x8xf32>
  %1 = nn.exp %0 : tensor<4x8xf32>
  %2 = nn.cumsum %1 dim 0 : tensor<4x8xf32>
  %3 = nn.reduce sum %1 dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  %4 = nn.reduce max %1 dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  %5 = nn.neg %4 : tensor<8xf32>
  return %1, %2, %3, %5 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----
// A new value of a state leaves in the state's sharding.
dist.mesh @m ["dp" = 2]
nn.state @w : tensor<4x8xf32> = dense<1.0>
// CHECK-LABEL: @update(
// CHECK: %[[N:.*]] = nn.add
// CHECK-NEXT: %[[R:.*]] = dist.reshard %[[N]] {{.*}} -> tensor<4x8xf32, #all-all>
// CHECK-NEXT: return %[[R]]
func.func @update(%w: tensor<4x8xf32> {nn.state = @w}, %g: tensor<4x8xf32>) -> (tensor<4x8xf32> {nn.state = @w}) {
  %0 = dist.constraint %w to <@m, [{}, {}]> : tensor<4x8xf32>
  %1 = dist.constraint %g to <@m, [{dp}, {}]> : tensor<4x8xf32>
  %2 = nn.add %0, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----
// A constant is made for each reader, where that works, and for a result: the
// gradient of what nothing reads is all of its zeros.
dist.mesh @m ["dp" = 2]
// CHECK-LABEL: @constant(
// CHECK-NOT: dist.reshard
// CHECK: nn.mul %arg0, %{{.*}}tensor<4x8xf32, #dp-all>
// CHECK-NEXT: nn.mul %arg1, %{{.*}}tensor<4x8xf32, #all-all>
// CHECK-NEXT: return {{.*}} : tensor<4x8xf32, #dp-all>, tensor<4x8xf32, #all-all>, tensor<4x8xf32, #all-all>
func.func @constant(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = dist.constraint %x to <@m, [{dp}, {}]> : tensor<4x8xf32>
  %1 = nn.constant dense<2.0> : tensor<4x8xf32>
  %2 = nn.mul %0, %1 : tensor<4x8xf32>
  %3 = nn.mul %w, %1 : tensor<4x8xf32>
  return %2, %3, %1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----
// Places that two readers share are those of the batch to one and of sequences
// to the other: who wants what is made of them in another way makes its own, and
// no rank asks another for it.
dist.mesh @mesh ["dp" = 2]
// CHECK-LABEL: @places(
// CHECK-NOT: dist.reshard
// CHECK: %[[L:.*]] = nn.compare ge %{{.*}} : tensor<8x8xi64, #dp-all>
// CHECK: nn.select %[[L]], %arg0
// CHECK: %[[B:.*]] = nn.broadcast %[[C:[^ ]*]] : (tensor<8x8xi1, #all-all>) -> tensor<8x1x8x8xi1, #dp-all-all-all>
// CHECK-NEXT: nn.select %[[B]], %arg1
// CHECK-NEXT: return
func.func @places(%x: tensor<8x8xf32>, %scores: tensor<8x1x8x8xf32>) -> (tensor<8x8xf32>, tensor<8x1x8x8xf32>) {
  %0 = dist.constraint %x to <@mesh, [{dp}, {}]> : tensor<8x8xf32>
  %1 = dist.constraint %scores to <@mesh, [{dp}, {}, {}, {}]> : tensor<8x1x8x8xf32>
  %rows = nn.iota {dim = 0} : tensor<8x8xi64>
  %columns = nn.iota {dim = 1} : tensor<8x8xi64>
  %three = nn.constant dense<3> : tensor<8x8xi64>
  %zero = nn.constant dense<0.0> : tensor<8x8xf32>
  %zeros = nn.constant dense<0.0> : tensor<8x1x8x8xf32>
  %late = nn.compare ge %columns, %three : tensor<8x8xi64>
  %2 = nn.select %late, %0, %zero : tensor<8x8xf32>
  %causal = nn.compare ge %rows, %columns : tensor<8x8xi64>
  %mask = nn.broadcast %causal : (tensor<8x8xi1>) -> tensor<8x1x8x8xi1>
  %3 = nn.select %mask, %1, %zeros : tensor<8x1x8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x1x8x8xf32>
}

// Of what comes from an input each rank has its part.
// CHECK-LABEL: @others(
// CHECK: %[[K:.*]] = nn.compare ge %arg0
// CHECK: dist.reshard %[[K]] {{.*}}tensor<8x8xi1, #dp-all> -> tensor<8x8xi1, #all-all>
func.func @others(%x: tensor<8x8xi64>, %scores: tensor<8x1x8x8xf32>) -> tensor<8x1x8x8xf32> {
  %0 = dist.constraint %x to <@mesh, [{dp}, {}]> : tensor<8x8xi64>
  %1 = dist.constraint %scores to <@mesh, [{dp}, {}, {}, {}]> : tensor<8x1x8x8xf32>
  %columns = nn.iota {dim = 1} : tensor<8x8xi64>
  %zeros = nn.constant dense<0.0> : tensor<8x1x8x8xf32>
  %kept = nn.compare ge %0, %columns : tensor<8x8xi64>
  %mask = nn.broadcast %kept : (tensor<8x8xi1>) -> tensor<8x1x8x8xi1>
  %2 = nn.select %mask, %1, %zeros : tensor<8x1x8x8xf32>
  return %2 : tensor<8x1x8x8xf32>
}

// Of a number that is still a sum of terms nobody makes his own.
// CHECK-LABEL: @spread(
// CHECK: %[[P:.*]] = nn.reduce sum %arg0 {{.*}} -> tensor<f32, #scalar-sum_over_dp>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[P]] {{.*}} -> tensor<4xf32, #all-sum_over_dp>
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[B]] {{.*}} -> tensor<4xf32, #all>
// CHECK-NEXT: nn.exp %[[S]]
func.func @spread(%x: tensor<8xf32>) -> tensor<4xf32> {
  %0 = dist.constraint %x to <@mesh, [{dp}]> : tensor<8xf32>
  %sum = nn.reduce sum %0 dims [0] : (tensor<8xf32>) -> tensor<f32>
  %each = nn.broadcast %sum : (tensor<f32>) -> tensor<4xf32>
  %1 = nn.exp %each : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// So are views of such: the gradient of a mean, of rows that are counted place by
// place. Where a view cannot be split as its reader wants, that takes a part of it.
// CHECK-LABEL: @views(
// CHECK: %[[T:.*]] = nn.transpose %{{.*}} [1, 0] : (tensor<8x4xf32, #all-all>) -> tensor<4x8xf32, #all-all>
// CHECK: %[[R:.*]] = nn.reshape %[[T]] {{.*}} -> tensor<32xf32, #all>
// CHECK-NEXT: nn.mul %arg1, %[[R]]
// CHECK: %[[V:.*]] = nn.reshape %{{.*}}tensor<32xi64, #all>) -> tensor<8x4xi64, #all-all>
// CHECK-NEXT: dist.reshard %[[V]] {{.*}} -> tensor<8x4xi64, #all-dp>
// CHECK-NOT: dist.reshard
func.func @views(%x: tensor<8x4xf32>, %w: tensor<32xf32>, %y: tensor<8x4xi64>) -> (tensor<8x4xf32>, tensor<32xf32>, tensor<8x4xi64>) {
  %0 = dist.constraint %x to <@mesh, [{dp}, {}]> : tensor<8x4xf32>
  %1 = dist.constraint %w to <@mesh, [{}]> : tensor<32xf32>
  %2 = dist.constraint %y to <@mesh, [{}, {dp}]> : tensor<8x4xi64>
  %half = nn.constant dense<0.5> : tensor<f32>
  %g = nn.broadcast %half : (tensor<f32>) -> tensor<8x4xf32>
  %e = nn.exp %g : tensor<8x4xf32>
  %3 = nn.mul %0, %e : tensor<8x4xf32>
  %t = nn.transpose %e [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %r = nn.reshape %t : (tensor<4x8xf32>) -> tensor<32xf32>
  %4 = nn.mul %1, %r : tensor<32xf32>
  %places = nn.iota {dim = 0} : tensor<32xi64>
  %v = nn.reshape %places : (tensor<32xi64>) -> tensor<8x4xi64>
  %5 = nn.add %2, %v : tensor<8x4xi64>
  return %3, %4, %5 : tensor<8x4xf32>, tensor<32xf32>, tensor<8x4xi64>
}

// -----
// What counts the places of all samples in the order in which a mask chooses them is made
// of masks that each micro-batch holds whole, and so is their number: none waits for
// another one.
dist.mesh @mesh ["mb" = 2, "dp" = 2]
// CHECK-LABEL: @chosen(
// CHECK-SAME: %[[MASK:.*]]: tensor<8x3xf32, #all-all>
// CHECK-NEXT: %[[PART:.*]] = dist.reshard %[[MASK]] {{.*}} -> tensor<8x3xf32, #mb_dp-all>
// CHECK-NOT: dist.reshard
// CHECK: %[[ALL:.*]] = nn.cast %{{.*}} -> tensor<24xi64, #all>
// CHECK: nn.cumsum %[[ALL]] dim 0
// CHECK-NOT: dist.reshard
// CHECK: %[[COUNT:.*]] = nn.reduce sum %[[ALL]] dims [0] {{.*}} -> tensor<i64, #scalar>
// CHECK: nn.compare eq %[[COUNT]]
// CHECK-NEXT: nn.exp %[[PART]]
func.func @chosen(%mask: tensor<8x3xf32> {nn.input = "mask"}) -> (tensor<24xi64>, tensor<i1>, tensor<8x3xf32>) {
  %0 = dist.constraint %mask to <@mesh, [{mb, dp}, {}]> : tensor<8x3xf32>
  %half = nn.constant dense<0.5> : tensor<8x3xf32>
  %1 = nn.compare gt %0, %half : tensor<8x3xf32>
  %2 = nn.reshape %1 : (tensor<8x3xi1>) -> tensor<24xi1>
  %3 = nn.cast %2 : (tensor<24xi1>) -> tensor<24xi64>
  %4 = nn.cumsum %3 dim 0 {exclusive} : tensor<24xi64>
  %5 = nn.reduce sum %3 dims [0] : (tensor<24xi64>) -> tensor<i64>
  %twelve = nn.constant dense<12> : tensor<i64>
  %6 = nn.compare eq %5, %twelve : tensor<i64>
  %7 = nn.exp %0 : tensor<8x3xf32>
  return %4, %6, %7 : tensor<24xi64>, tensor<i1>, tensor<8x3xf32>
}

// Not what a state has a share in, nor a number that is still a sum, nor what comes of
// several elements; and of numbers that are trained on micro-batches have their own.
// CHECK-LABEL: @trained(
// CHECK-SAME: tensor<8xi64, #mb>
// CHECK: %[[M:.*]] = nn.mul %arg0
// CHECK-NEXT: %[[G:.*]] = dist.reshard %[[M]] {{.*}} -> tensor<8xi64, #all>
// CHECK-NEXT: nn.cumsum %[[G]]
// CHECK: %[[S:.*]] = nn.mul %arg0, %{{.*}} -> tensor<8xi64, #mb-sum_over_dp>
// CHECK-NEXT: %[[H:.*]] = dist.reshard %[[S]] {{.*}} -> tensor<8xi64, #all-sum_over_dp>
// CHECK-NEXT: nn.cumsum %[[H]]
// CHECK: %[[R:.*]] = nn.add %arg1
// CHECK-NEXT: %[[I:.*]] = dist.reshard %[[R]] {{.*}} -> tensor<8x2xi64, #all-all>
// CHECK-NEXT: nn.cumsum %[[I]]
// CHECK: %[[E:.*]] = nn.exp %arg4
// CHECK-NEXT: %[[J:.*]] = dist.reshard %[[E]] {{.*}} -> tensor<8xf32, #all>
// CHECK-NEXT: nn.cumsum %[[J]]
func.func @trained(%x: tensor<8xi64> {nn.input = "x"}, %z: tensor<8x2xi64> {nn.input = "z"}, %y: tensor<4xi64> {nn.input = "y"}, %w: tensor<8xi64> {nn.state = @w}, %f: tensor<8xf32> {nn.input = "f"}) -> (tensor<8xi64>, tensor<8xi64>, tensor<8x2xi64>, tensor<8xf32>) {
  %0 = dist.constraint %x to <@mesh, [{mb}]> : tensor<8xi64>
  %1 = dist.constraint %y to <@mesh, [{dp}]> : tensor<4xi64>
  %2 = nn.mul %0, %w : tensor<8xi64>
  %3 = nn.cumsum %2 dim 0 : tensor<8xi64>
  %sum = nn.reduce sum %1 dims [0] : (tensor<4xi64>) -> tensor<i64>
  %each = nn.broadcast %sum : (tensor<i64>) -> tensor<8xi64>
  %4 = nn.mul %0, %each : tensor<8xi64>
  %5 = nn.cumsum %4 dim 0 : tensor<8xi64>
  %6 = dist.constraint %z to <@mesh, [{mb}, {}]> : tensor<8x2xi64>
  %7 = nn.cumsum %6 dim 1 : tensor<8x2xi64>
  %8 = nn.add %6, %7 : tensor<8x2xi64>
  %9 = nn.cumsum %8 dim 0 : tensor<8x2xi64>
  %10 = dist.constraint %f to <@mesh, [{mb}]> : tensor<8xf32>
  %11 = nn.exp %10 : tensor<8xf32>
  %12 = nn.cumsum %11 dim 0 : tensor<8xf32>
  return %3, %5, %9, %12 : tensor<8xi64>, tensor<8xi64>, tensor<8x2xi64>, tensor<8xf32>
}
nn.state @w : tensor<8xi64> = dense<1>

// -----
// What is chosen from partial sums and zeros is partial: zeros are so on every
// rank. From anything else it is not.
dist.mesh @m ["dp" = 2]
// CHECK-LABEL: @select(
// CHECK: %[[P:.*]] = nn.reduce sum %arg0 {{.*}}sum_over_dp
// CHECK-NEXT: nn.select %{{.*}}, %[[P]], %{{.*}}tensor<8xf32, #all-sum_over_dp
// CHECK-NEXT: nn.select %{{.*}}, %{{.*}}, %[[P]] {{.*}}tensor<8xf32, #all-sum_over_dp
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[P]] {{.*}} -> tensor<8xf32, #all>
// CHECK-NEXT: nn.select %{{.*}}, %[[S]], %{{.*}}tensor<8xf32, #all>
// CHECK-NEXT: nn.select %{{.*}}, %{{.*}}, %[[S]] {{.*}}tensor<8xf32, #all>
func.func @select(%x: tensor<4x8xf32> {nn.input = "x"}, %mask: tensor<8xi1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.constraint %x to <@m, [{dp}, {}]> : tensor<4x8xf32>
  %zero = nn.constant dense<0.0> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %1 = nn.reduce sum %0 dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  %2 = nn.select %mask, %1, %zero : tensor<8xf32>
  %3 = nn.select %mask, %zero, %1 : tensor<8xf32>
  %4 = nn.select %mask, %1, %one : tensor<8xf32>
  %5 = nn.select %mask, %one, %1 : tensor<8xf32>
  return %2, %3, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----
// Terms that go two ways and are needed as sums at the end of each are summed where they part;
// those that come together again are one sum, as late as can be. (Over axes of the batch sums
// wait: @select.)
dist.mesh @m ["tp" = 2]
// CHECK-LABEL: @branch(
// CHECK: %[[P:.*]] = nn.matmul {{.*}}sum_over_tp
// CHECK-NEXT: %[[S:.*]] = dist.reshard %[[P]] {{.*}} -> tensor<4x8xf32, #all-all>
// CHECK-NEXT: nn.neg %[[S]]
// CHECK-NEXT: nn.mul %[[S]]
// CHECK-NOT: dist.reshard
// CHECK: return
func.func @branch(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = dist.constraint %w to <@m, [{tp}, {}]> : tensor<6x8xf32>
  %1 = nn.matmul %x, %0 : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %2 = nn.neg %1 : tensor<4x8xf32>
  %3 = nn.mul %1, %y : tensor<4x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}
// CHECK-LABEL: @together(
// CHECK: nn.matmul {{.*}}sum_over_tp
// CHECK-NEXT: nn.neg {{.*}}sum_over_tp
// CHECK-NEXT: nn.mul {{.*}}sum_over_tp
// CHECK-NEXT: %[[T:.*]] = nn.add {{.*}}sum_over_tp
// CHECK-NEXT: dist.reshard %[[T]]
// CHECK-NEXT: return
func.func @together(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = dist.constraint %w to <@m, [{tp}, {}]> : tensor<6x8xf32>
  %1 = nn.matmul %x, %0 : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %2 = nn.neg %1 : tensor<4x8xf32>
  %3 = nn.mul %1, %y : tensor<4x8xf32>
  %4 = nn.add %2, %3 : tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}
