The rows of a marked loss are taken in chunks, with the head, its bias and what caps logits, forward and
backward: what has a row for each is joined, what has added over them is added up. The count of labels is not
touched. All of it is in the backward; the forward keeps what the head reads.

RUN: sed -n '/^module/,$p' %s > %t.mlir
DEFINE: %{train} = acc-opt %t.mlir --train --loss loss --optimizer sgd --entries=step
RUN: %{train} --set loss_chunks=2 --compile-to=local -o %t.local.mlir
RUN: FileCheck %s < %t.local.mlir
RUN: %{train} --set loss_chunks=2 -o %t.accx
RUN: %{train} --set loss_chunks=4 -o %t.accx

CHECK-LABEL: func.func private @forward(
CHECK-NOT: tensor<{{[0-9]*}}x12xf32>
CHECK: nn.tanh %{{.*}} : tensor<8x4xf32>
CHECK: nn.compare ne {{.*}} : tensor<8xi64>
CHECK-NOT: nn.cross_entropy
CHECK-LABEL: func.func private @backward(
CHECK-NOT: tensor<8x12xf32>
CHECK: %[[H0:.*]] = nn.slice %[[H:.*]] starts [0, 0] sizes [4, 4] steps [1, 1] {dist.loss_chunk = 0 : i64}
CHECK: nn.matmul %[[H0]], %[[W:.*]] {dist.loss_chunk = 0 : i64, transpose_rhs}
CHECK: nn.tanh %{{.*}} {dist.loss_chunk = 0 : i64} : tensor<4x12xf32>
CHECK: %[[L0:.*]] = nn.cross_entropy %{{.*}} {dist.loss_chunk = 0 : i64}
CHECK: nn.softmax {{.*}} {dist.loss_chunk = 0 : i64}
CHECK: %[[DB0:.*]] = nn.reduce sum %[[DZ0:.*]] dims [0] {dist.loss_chunk = 0 : i64} : (tensor<4x12xf32>) -> tensor<12xf32>
CHECK: %[[DH0:.*]] = nn.matmul %[[DZ0]], %[[W]] {dist.loss_chunk = 0 : i64}
CHECK: %[[DW0:.*]] = nn.matmul %[[DZ0]], %[[H0]] {dist.loss_chunk = 0 : i64, transpose_lhs}
CHECK: %[[H1:.*]] = nn.slice %[[H]] starts [4, 0] sizes [4, 4] steps [1, 1] {dist.loss_chunk = 1 : i64}
CHECK: nn.matmul %[[H1]], %[[W]] {dist.loss_chunk = 1 : i64, transpose_rhs}
CHECK: %[[L1:.*]] = nn.cross_entropy
CHECK: %[[DB1:.*]] = nn.reduce sum %[[DZ1:.*]] dims [0]
CHECK: nn.add %[[DB0]], %[[DB1]] {dist.loss_chunk = 1 : i64} : tensor<12xf32>
CHECK: %[[DH1:.*]] = nn.matmul %[[DZ1]], %[[W]]
CHECK: %[[DW1:.*]] = nn.matmul %[[DZ1]], %[[H1]]
CHECK: nn.add %[[DW0]], %[[DW1]] {dist.loss_chunk = 1 : i64} : tensor<12x4xf32>
CHECK-DAG: nn.concat %[[L0]], %[[L1]] dim 0
CHECK-DAG: nn.concat %[[DH0]], %[[DH1]] dim 0
CHECK-NOT: loss_chunk

By hand: a number that no dimension divides leaves the loss whole, and so does an op that reads all rows.
RUN: %{train} --set loss_chunks=2 --compile-to=decided -o %t.decided.mlir
RUN: sed 's/dist.loss_chunks = 2/dist.loss_chunks = 3/' %t.decided.mlir > %t.three.mlir
RUN: acc-opt %t.three.mlir --compile-to=local -o - 2>&1 | FileCheck %s --check-prefix=THREE
THREE: remark: the rows of its loss are not taken in 3 chunks: the first dimension is no multiple of that
THREE-NOT: loss_chunk
RUN: sed 's/dist.loss_chunks = 2 : i64/dist.loss_chunks/' %t.decided.mlir | not acc-opt - 2>&1 | FileCheck %s --check-prefix=TYPE
TYPE: unexpected attribute 'dist.loss_chunks'

module attributes {accel.phase = "nn"} {
  nn.state @u : tensor<4x4xf32> = dense<0.5>
  nn.state @w : tensor<12x4xf32> = dense<0.25>
  nn.state @b : tensor<12xf32> = dense<0.125>
  func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %labels: tensor<8xi64> {nn.input = "labels"}, %u: tensor<4x4xf32> {nn.state = @u}, %w: tensor<12x4xf32> {nn.state = @w}, %b: tensor<12xf32> {nn.state = @b}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %y = nn.matmul %x, %u : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %h = nn.tanh %y : tensor<8x4xf32>
    %p = nn.matmul %h, %w {transpose_rhs} : (tensor<8x4xf32>, tensor<12x4xf32>) -> tensor<8x12xf32>
    %c = nn.broadcast %b : (tensor<12xf32>) -> tensor<8x12xf32>
    %z = nn.add %p, %c : tensor<8x12xf32>
    %t = nn.tanh %z : tensor<8x12xf32>
    %cap = nn.constant dense<30.0> : tensor<8x12xf32>
    %logits = nn.mul %t, %cap : tensor<8x12xf32>
    %l = nn.cross_entropy %logits, %labels : (tensor<8x12xf32>, tensor<8xi64>) -> tensor<8xf32>
    %sum = nn.reduce sum %l dims [0] : (tensor<8xf32>) -> tensor<f32>
    %none = nn.constant dense<-100> : tensor<8xi64>
    %is = nn.compare ne %labels, %none : tensor<8xi64>
    %ones = nn.cast %is : (tensor<8xi1>) -> tensor<8xf32>
    %count = nn.reduce sum %ones dims [0] : (tensor<8xf32>) -> tensor<f32>
    %loss = nn.div %sum, %count : tensor<f32>
    return %loss : tensor<f32>
  }
}
