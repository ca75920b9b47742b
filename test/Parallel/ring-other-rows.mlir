// Rings of other rows than the keys that go round. What is split over more axes than these is a ring;
// what ranks of the ring have copies of is none, for each would add its terms in another order, and
// copies be of other bits. Of rows before their rank's keys none may be seen yet: they count for
// nothing until one is.
//
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{try} = accel-fuzz-programs --seed 1 --check
// RUN: %{try} %t/copies.mlir | FileCheck %s
// RUN: sed 's/cp=2/cp=4/' %t/copies.mlir > %t/copies.4.mlir && %{try} %t/copies.4.mlir | FileCheck %s
// RUN: sed 's/%x: tensor<8x3x12xf64>/%y: tensor<3x8x12xf64>/;s/\(^ *\)%0 = /\1%x = nn.transpose %y [1, 0, 2] : (tensor<3x8x12xf64>) -> tensor<8x3x12xf64>\n&/' %t/copies.mlir > %t/parts.mlir
// RUN: %{try} %t/parts.mlir | FileCheck %s
// RUN: sed 's/cp=2/cp=4/' %t/parts.mlir > %t/parts.4.mlir && %{try} %t/parts.4.mlir | FileCheck %s
// RUN: %{try} %t/keys.mlir | FileCheck %s
// CHECK: layout: right
// CHECK: gradients: right
// DEFINE: %{compile} = acc-opt --train --loss=loss --optimizer=sgd --set=optimizer.lr=1 --set=cp.strategy=ring --compile-to=local
// RUN: %{compile} %t/copies.mlir --mesh=cp=4,tp=2 --set=sequence_parallelism=true 2>&1 | FileCheck %s --check-prefix=COPIES
// RUN: %{compile} %t/parts.mlir --mesh=cp=4,tp=2 --set=sequence_parallelism=true 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: %{compile} %t/keys.mlir --mesh=cp=4 2>&1 | FileCheck %s --check-prefix=KEYS
// COPIES: warning: 'cp.strategy' is 'ring', but keys and values of this attention are gathered: its rows are not split over the axis of its keys
// COPIES-NOT: column_steps
// PARTS: @forward
// PARTS: nn.attention {{.*}}row_steps = {cp = 2 : i64, tp = 1 : i64}{{.*}}turn = 3
// PARTS-NOT: -1.79
// KEYS: @forward
// KEYS: nn.attention {{.*}}column_steps = {cp = 4 : i64}, row_steps = {cp = 2 : i64}
// KEYS: %[[LOWEST:.*]] = nn.constant dense<-1.79
// KEYS-NEXT: nn.max {{.*}}, %[[LOWEST]]

//--- copies.mlir
// flags: --optimizer sgd --set optimizer.lr=1 --mesh cp=2,tp=2 --set sequence_parallelism=true --set cp.strategy=ring
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<12x12xf64> = dense<0.125>
  nn.state @u : tensor<12x36xf64> = dense<0.0625>
  func.func @main(%x: tensor<8x3x12xf64> {nn.input = "x"}, %k: tensor<3x2x8x3xf64> {nn.input = "k"}, %w: tensor<12x12xf64> {nn.state = @w}, %u: tensor<12x36xf64> {nn.state = @u}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w {transpose_rhs} : (tensor<8x3x12xf64>, tensor<12x12xf64>) -> tensor<8x3x12xf64>
    %1 = nn.transpose %0 [1, 0, 2] : (tensor<8x3x12xf64>) -> tensor<3x8x12xf64>
    %2 = nn.reshape %1 : (tensor<3x8x12xf64>) -> tensor<3x8x4x3xf64>
    %3 = nn.transpose %2 [0, 2, 1, 3] : (tensor<3x8x4x3xf64>) -> tensor<3x4x8x3xf64>
    %result, %logs = nn.attention %3, %k, %k {causal, scale = 0.5 : f64} : (tensor<3x4x8x3xf64>, tensor<3x2x8x3xf64>, tensor<3x2x8x3xf64>) -> (tensor<3x4x8x3xf64>, tensor<3x4x8xf64>)
    %6 = nn.transpose %result [0, 2, 1, 3] : (tensor<3x4x8x3xf64>) -> tensor<3x8x4x3xf64>
    %7 = nn.reshape %6 : (tensor<3x8x4x3xf64>) -> tensor<3x8x12xf64>
    %8 = nn.matmul %7, %w {transpose_rhs} : (tensor<3x8x12xf64>, tensor<12x12xf64>) -> tensor<3x8x12xf64>
    %9 = nn.matmul %8, %u : (tensor<3x8x12xf64>, tensor<12x36xf64>) -> tensor<3x8x36xf64>
    %10 = nn.slice %9 starts [0, 0, 24] sizes [3, 8, 12] steps [1, 1, 1] : (tensor<3x8x36xf64>) -> tensor<3x8x12xf64>
    %11 = nn.add %8, %10 : tensor<3x8x12xf64>
    %12 = nn.reduce sum %11 dims [1] : (tensor<3x8x12xf64>) -> tensor<3x12xf64>
    %13 = nn.matmul %12, %12 {transpose_rhs} : (tensor<3x12xf64>, tensor<3x12xf64>) -> tensor<3x3xf64>
    %14 = nn.reduce sum %13 dims [0, 1] : (tensor<3x3xf64>) -> tensor<f64>
    return %14 : tensor<f64>
  }
}

//--- keys.mlir
// flags: --optimizer sgd --set optimizer.lr=1 --mesh cp=4 --set cp.strategy=ring
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<12x12xf64> = dense<0.125>
  func.func @main(%x: tensor<2x8x12xf64> {nn.input = "x"}, %z: tensor<2x16x12xf64> {nn.input = "z"}, %w: tensor<12x12xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %a = nn.matmul %x, %w : (tensor<2x8x12xf64>, tensor<12x12xf64>) -> tensor<2x8x12xf64>
    %b = nn.matmul %z, %w : (tensor<2x16x12xf64>, tensor<12x12xf64>) -> tensor<2x16x12xf64>
    %c = nn.reshape %a : (tensor<2x8x12xf64>) -> tensor<2x8x4x3xf64>
    %d = nn.reshape %b : (tensor<2x16x12xf64>) -> tensor<2x16x4x3xf64>
    %q = nn.transpose %c [0, 2, 1, 3] : (tensor<2x8x4x3xf64>) -> tensor<2x4x8x3xf64>
    %k = nn.transpose %d [0, 2, 1, 3] : (tensor<2x16x4x3xf64>) -> tensor<2x4x16x3xf64>
    %y, %l = nn.attention %q, %k, %k {causal, scale = 1.0 : f64} : (tensor<2x4x8x3xf64>, tensor<2x4x16x3xf64>, tensor<2x4x16x3xf64>) -> (tensor<2x4x8x3xf64>, tensor<2x4x8xf64>)
    %m = nn.mul %y, %y : tensor<2x4x8x3xf64>
    %r = nn.reduce sum %m dims [0, 1, 2, 3] : (tensor<2x4x8x3xf64>) -> tensor<f64>
    return %r : tensor<f64>
  }
}
