What the backward reads of a segment is made again from what the segment reads, in front of its first reader.
A choice (of numbers that are rounded) and what the forward behind the segment reads are kept; draws are made
again of their coordinates. With dist.discard what the forward reads is made again, too.

RUN: sed -n '/^module/,$p' %s > %t.mlir
RUN: acc-opt %t.mlir --train --loss loss --optimizer sgd --entries=step --compile-to=decided -o %t.decided.mlir
RUN: sed -e '/%%\(y\|m\|s\|d_12\|d_13\|d_14\|d_15\|k\|g\) = /s/ : / {dist.recompute = "h.0"} : /' %t.decided.mlir > %t.kept.mlir
RUN: sed 's/{dist.recompute/{dist.discard, dist.recompute/' %t.kept.mlir > %t.discarded.mlir
RUN: acc-opt %t.kept.mlir --dist-recompute | FileCheck %s
RUN: acc-opt %t.discarded.mlir --dist-recompute | FileCheck %s --check-prefix=DISCARD
RUN: acc-opt %t.mlir --train --loss loss --optimizer sgd --entries=step --compile-to=train -o %t.train.mlir
RUN: acc-opt %t.discarded.mlir --proved-against=%t.train.mlir -o %t.accx

RUN: not acc-opt %t.mlir --train --loss loss --recompute=h.* -o %t.accx 2>&1 | FileCheck %s --check-prefix=NAMES
NAMES: error: expected a module of the forward to compute again, found none whose path is 'h.*'; the exporter named no modules
RUN: not acc-opt %t.mlir --train --loss loss --recompute=full -o %t.accx 2>&1 | FileCheck %s --check-prefix=LAYERS
LAYERS: error: expected layers that are numbered in a list (torch.nn.ModuleList) to compute again, found none: name modules by patterns
RUN: not acc-opt %t.mlir --train --loss loss --recompute=full:block:0 -o %t.accx 2>&1 | FileCheck %s --check-prefix=NONE
NONE: acc-opt: error: expected full:uniform:N or full:block:N with N of at least 1, found 'full:block:0'
RUN: sed 's/{dist.recompute = "h.0"}/{dist.recompute}/' %t.kept.mlir | not acc-opt - 2>&1 | FileCheck %s --check-prefix=TYPE
TYPE: unexpected attribute 'dist.recompute'

CHECK-LABEL: func.func @step(
CHECK: %[[Y:.*]] = nn.matmul %[[X:[a-z0-9]*]], %[[W:[a-z0-9.]*]] :
CHECK: %[[M:.*]] = nn.compare gt %[[Y]]
CHECK: %[[G:.*]] = nn.gelu tanh
CHECK: nn.reduce sum
CHECK: nn.matmul %[[G]], %{{.*}} {transpose_lhs}
CHECK-NEXT: %[[Y1:.*]] = nn.matmul %[[X]], %[[W]] {dist.recomputed = "h.0"}
CHECK-NOT: {{gt|gelu.*recomputed}}
CHECK: %[[S1:.*]] = nn.select %[[M]], %[[Y1]], %{{.*}} {dist.recomputed = "h.0"}
CHECK: %[[D1:.*]] = nn.random_uniform %{{.*}} {dist.recomputed = "h.0"}
CHECK: %[[MASK1:.*]] = nn.compare lt %[[D1]], %{{.*}} {dist.recomputed = "h.0"}
CHECK: %[[SCALED:.*]] = nn.mul %[[S1]], %{{.*}} {dist.recomputed = "h.0"}
CHECK: %[[DROPPED:.*]] = nn.select %[[MASK1]], %{{.*}}, %[[SCALED]] {dist.recomputed = "h.0"}
CHECK: %[[K1:.*]] = nn.tanh %[[DROPPED]] {dist.recomputed = "h.0"}
CHECK-NEXT: nn.mul %[[K1]], %[[K1]]
CHECK-NOT: recomputed
CHECK: nn.select %[[MASK1]]
CHECK: nn.select %[[M]]
CHECK: nn.gradient

DISCARD-LABEL: func.func @step(
DISCARD: nn.reduce sum
DISCARD: %[[K1:.*]] = nn.tanh %{{.*}} {dist.recomputed = "h.0"}
DISCARD-NEXT: %[[G1:.*]] = nn.gelu tanh %[[K1]] {dist.recomputed = "h.0"}
DISCARD-NEXT: nn.matmul %[[G1]], %{{.*}} {transpose_lhs}

module attributes {accel.phase = "nn"} {
  nn.state @h.0.w : tensor<8x8xf32> = dense<0.5>
  nn.state @h.1.w : tensor<8x8xf32> = dense<0.25>
  func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %w0: tensor<8x8xf32> {nn.state = @h.0.w}, %w1: tensor<8x8xf32> {nn.state = @h.1.w}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<4x8xf32>
    %y = nn.matmul %x, %w0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %m = nn.compare gt %y, %zero : tensor<4x8xf32>
    %s = nn.select %m, %y, %zero : tensor<4x8xf32>
    %d = nn.dropout %s ratio 0.5 site 0 : tensor<4x8xf32>
    %k = nn.tanh %d : tensor<4x8xf32>
    %g = nn.gelu tanh %k : tensor<4x8xf32>
    %z = nn.matmul %g, %w1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %q = nn.mul %z, %z : tensor<4x8xf32>
    %loss = nn.reduce sum %q dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
