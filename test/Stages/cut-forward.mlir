// RUN: acc-opt %s --nn-cut-forward=chunks=3 | FileCheck %s
// RUN: acc-opt %s --nn-cut-forward=chunks=1 | FileCheck %s --check-prefix=WHOLE
// RUN: not acc-opt %s --nn-cut-forward=chunks=9 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: acc-opt %s --nn-cut-forward=chunks=3 -o %t.mlir && acc-eval %t.mlir --compare %s --tolerance 0

// Three products of equal work. What is tied (@e) belongs to the first chunk that
// reads it, and goes straight to the last; what a residual carries over a chunk
// (%3 over chunk 1) does so too; a broadcast and a wider cast are made again
// behind the cut of what is narrower; a mask of inputs alone is not cut.
// WHOLE-NOT: nn.cut
// FEW: error: expected at least 8 places to cut the model into 9 chunks, found 5: take fewer stages, or fewer chunks on each

// CHECK: nn.state @e : tensor<64x64xf32> = dense<5.000000e-01>{{$}}
// CHECK: nn.state @scale : tensor<64xf32> = {{.*}} {chunk = 1 : i64}
// CHECK: nn.state @w1 : tensor<64x64xf32> = {{.*}} {chunk = 1 : i64}
nn.state @e : tensor<64x64xf32> = dense<0.5>
nn.state @scale : tensor<64xf32> = dense<2.0>
nn.state @w1 : tensor<64x64xf32> = dense<0.25>

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<512x64xf32> {nn.input = "x"}, %e: tensor<64x64xf32> {nn.state = @e},
                %scale: tensor<64xf32> {nn.state = @scale}, %w1: tensor<64x64xf32> {nn.state = @w1})
    -> (tensor<512x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  // CHECK: %[[MASK:.*]] = nn.relu %arg0
  %mask = nn.relu %x : tensor<512x64xf32>
  // CHECK: %[[H0:.*]] = nn.matmul %arg0, %arg1
  %0 = nn.matmul %x, %e : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  // CHECK: %[[C1:.*]] = nn.cut %[[H0]] from 0 to 1 : tensor<512x64xf32>
  // CHECK: nn.mul %[[C1]], %
  %s = nn.broadcast %scale : (tensor<64xf32>) -> tensor<512x64xf32>
  %1 = nn.mul %0, %s : tensor<512x64xf32>
  %2 = nn.matmul %1, %w1 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  // CHECK: nn.mul %{{.*}}, %[[MASK]]
  %3 = nn.mul %2, %mask : tensor<512x64xf32>
  // CHECK: %[[E2:.*]] = nn.cut %arg1 from 0 to 2 : tensor<64x64xf32>
  // CHECK: nn.matmul %{{.*}}, %[[E2]]
  %4 = nn.matmul %3, %e {transpose_rhs} : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  // CHECK: %[[H02:.*]] = nn.cut %[[H0]] from 0 to 2 : tensor<512x64xf32>
  // CHECK: nn.add %{{.*}}, %[[H02]]
  %5 = nn.add %4, %0 : tensor<512x64xf32>
  return %5 : tensor<512x64xf32>
}
