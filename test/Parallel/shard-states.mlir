// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp=4 dp-axis=dp_shard" --dist-shard-states=stage=1 | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp=4 dp-axis=dp_shard" --dist-shard-states=stage=3 | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: acc-opt %s -split-input-file --dist-annotate="mesh=dp=4" --dist-shard-states=stage=3 | FileCheck %s --check-prefix=NOSHARD

// The first dimension that four ranks divide; a number stays whole, and so does
// a table that is not trained.

nn.state @w : tensor<6x8xf32> = dense<0.0>
nn.state moment @m : tensor<6x8xf32> = dense<0.0>
nn.state @scale : tensor<f32> = dense<0.0>
nn.state @table : tensor<4x6xf32> = dense<0.0> {frozen}

// NOSHARD-LABEL: func.func @step
// NOSHARD-NOT: dp_shard

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x6xf32> {nn.input = "x"}, %w: tensor<6x8xf32> {nn.state = @w},
                %m: tensor<6x8xf32> {nn.state = @m}, %scale: tensor<f32> {nn.state = @scale},
                %table: tensor<4x6xf32> {nn.state = @table})
    -> (tensor<4x8xf32> {nn.output = "y"}, tensor<6x8xf32> {nn.state = @w},
        tensor<6x8xf32> {nn.state = @m}) attributes {nn.entry = #nn<entry step>} {
  // ONE: %[[W:.*]] = dist.constraint %arg1 to #all-all
  // THREE: %[[PIECES:.*]] = dist.constraint %arg1 to #all-dp_shard
  // THREE: %[[W:.*]] = dist.constraint %[[PIECES]] to #all-all
  // CHECK: %[[M:.*]] = dist.constraint %arg2 to #all-dp_shard
  // CHECK: dist.constraint %arg3 to #scalar
  // CHECK: dist.constraint %arg4 to #all-all
  // CHECK: nn.matmul {{.*}}, %[[W]]
  %sum = nn.add %x, %table : tensor<4x6xf32>
  %y = nn.matmul %sum, %w : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %t = nn.transpose %sum [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %dw = nn.matmul %t, %y : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %ds = nn.reduce sum %y dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  // CHECK: %[[G:.*]] = nn.gradient {{.*}} of @w
  // CHECK: %[[GS:.*]] = dist.constraint %[[G]] to #all-dp_shard
  // CHECK: nn.gradient {{.*}} of @scale
  // CHECK: dist.constraint {{.*}} to #scalar
  %g = nn.gradient %dw of @w : tensor<6x8xf32>
  %gs = nn.gradient %ds of @scale : tensor<f32>
  // CHECK: nn.add %[[M]], %[[GS]]
  // ONE: nn.sub %[[W]]
  // THREE: nn.sub %[[PIECES]]
  %m1 = nn.add %m, %g : tensor<6x8xf32>
  %w1 = nn.sub %w, %m1 : tensor<6x8xf32>
  return %y, %w1, %m1 : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}
