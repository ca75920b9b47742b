// Products of linear layers become products of codes; scales are states, or made of the tensor.
// RUN: acc-opt %s --train-quantize-products="amax-history-len=4 margin=1" | FileCheck %s
// RUN: acc-opt %s --train-quantize-products="override-linear-precision=false,true,true" | FileCheck %s --check-prefix=OVERRIDE
// RUN: acc-opt %s --train-quantize-products="recipe=current blocks=2" | FileCheck %s --check-prefix=CURRENT
// RUN: acc-opt %s --train-quantize-products="recipe=rowwise_with_gw_hp" | FileCheck %s --check-prefix=ROWS
// RUN: acc-opt %s --train-quantize-products="recipe=mxfp8" | FileCheck %s --check-prefix=BLOCKS
// RUN: acc-opt %s --train-quantize-products="recipe=msamp_o2 blocks=4 gradient-parts=2" | FileCheck %s --check-prefix=MSAMP
// RUN: acc-opt %s --train-quantize-products="recipe=nvfp4" | FileCheck %s --check-prefix=NVFP4
// RUN: acc-opt %s --train-quantize-products="recipe=nvfp4 random-hadamard-transform=false stochastic-rounding=false fp4-2d-quantization=false" | FileCheck %s --check-prefix=PLAIN --implicit-check-not=random_uniform --implicit-check-not=Hadamard
// RUN: acc-opt %s --train-quantize-products="recipe=current power-2-scale=true" | FileCheck %s --check-prefix=POWER2
// RUN: acc-opt %s --train-quantize-products="recipe=block power-2-scale=false" | FileCheck %s --check-prefix=EXACT --implicit-check-not=nn.floor_power2
// RUN: not acc-opt %s --train-quantize-products="recipe=mxfp8 stochastic-rounding=false" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: expected 'fp8.recipe=nvfp4' with 'fp8.random_hadamard_transform', 'fp8.stochastic_rounding' or 'fp8.fp4_2d_quantization', found mxfp8
// RUN: not acc-opt %s --train-quantize-products="recipe=current power-2-scale=maybe" 2>&1 | FileCheck %s --check-prefix=MAYBE
// MAYBE: error: expected true or false as 'fp8.power_2_scale', found 'maybe'
// RUN: not acc-opt %s --train-quantize-products="recipe=rowwise_with_gw_hp blocks=2" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: expected 'fp8.recipe=current' (or another whose scales are of parts of a batch) with 2 parts, found rowwise_with_gw_hp
// RUN: sed 's|nn.state counter|nn.state quantizer|' %s > %t.mlir && not acc-opt %t.mlir --train-quantize-products="recipe=nvfp4" 2>&1 | FileCheck %s --check-prefix=CALLS
// CALLS: error: expected a step that counts its calls, to round the gradients of 'w' stochastically, found no counter
// RUN: not acc-opt %s --train-quantize-products="recipe=current blocks=3" 2>&1 | FileCheck %s --check-prefix=PARTS
// PARTS: error: cannot give 3 parts of a batch scales of their own: expected the batch first, in a multiple of as many rows, in what the linear layer 'w' multiplies, found 'tensor<4x16xbf16>' and 'tensor<32x16xbf16>'; use --set fp8.recipe=delayed
// RUN: not acc-opt %s --train-quantize-products="recipe=nvfp2" 2>&1 | FileCheck %s --check-prefix=RECIPE
// RECIPE: error: expected delayed, current, block, mxfp8, nvfp4, tensorwise, rowwise, rowwise_with_gw_hp, msamp_o1 or msamp_o2 as 'fp8.recipe', found 'nvfp2'
// RUN: not acc-opt %s --train-quantize-products="format=e5m2" 2>&1 | FileCheck %s --check-prefix=E5M2
// E5M2: error: expected hybrid or e4m3 as 'fp8.format', found 'e5m2': numbers with two bits behind the point train no model
// RUN: not acc-opt %s --train-quantize-products="amax-history-len=0" 2>&1 | FileCheck %s --check-prefix=LENGTH
// LENGTH: error: expected at least one step as 'fp8.amax_history_len', found 0

// A scale and a history for each tensor, of the chunk that reads it, in front of the counters.
// CHECK: nn.state quantizer @"fp8/w/input/scale" : tensor<f32> = dense<1.0{{.*}}>
// CHECK: nn.state quantizer @"fp8/w/input/amax_history" : tensor<4xf32> = dense<0.0{{.*}}>
// CHECK: nn.state quantizer @"fp8/w/weight/scale"
// CHECK: nn.state quantizer @"fp8/w/gradient/scale"
// CHECK-LABEL: func.func @step(
// CHECK: %[[XS:[^ ]*]]: tensor<f32> {nn.state = @"fp8/w/input/scale"}
// CHECK: %[[WS:[^ ]*]]: tensor<f32> {nn.state = @"fp8/w/weight/scale"}
// CHECK: %[[GS:[^ ]*]]: tensor<f32> {nn.state = @"fp8/w/gradient/scale"}
// CHECK: {nn.state = @"counter/call"}
// The weight is quantized from its own values, once for both that read it.
// CHECK: %[[XC:.*]] = nn.cast %{{.*}} {saturate} : (tensor<4x16xf32>) -> tensor<4x16xf8E4M3FN>
// CHECK: nn.abs %[[W:[^ ]*]] : tensor<32x16xf32>
// CHECK: %[[WM:.*]] = nn.mul %[[W]], %{{.*}} : tensor<32x16xf32>
// CHECK-NEXT: %[[WC:.*]] = nn.cast %[[WM]] {saturate} : (tensor<32x16xf32>) -> tensor<32x16xf8E4M3FN>
// CHECK: nn.matmul %[[XC]], %[[WC]] {nn.product = #nn.product<"w", fprop>, nn.reason = "fp8 delayed: scales of the steps before", transpose_rhs} : {{.*}} -> tensor<4x32xf32>
// CHECK: nn.cast %{{.*}} : (tensor<4x32xf32>) -> tensor<4x32xbf16>
// CHECK: %[[GC:.*]] = nn.cast %{{.*}} {saturate} : (tensor<4x32xf32>) -> tensor<4x32xf8E5M2>
// CHECK: nn.matmul %[[GC]], %[[WC]] {nn.product = #nn.product<"w", dgrad>, {{.*}}}
// CHECK: nn.matmul %[[GC]], %[[XC]] {nn.product = #nn.product<"w", wgrad>, {{.*}}transpose_lhs}
// 448 / 2 over the largest of what is there: unless the step fails.
// CHECK: nn.compare eq %{{.*}}, %{{.*}} : tensor<i32>
// CHECK: nn.constant dense<2.240000e+02>
// CHECK: nn.select
// CHECK: return

// OVERRIDE-COUNT-1: f8E4M3FN>) -> tensor<4x32xf32>
// OVERRIDE: nn.matmul {{.*}}dgrad{{.*}} : (tensor<4x32xbf16>
// OVERRIDE: nn.matmul {{.*}}wgrad{{.*}} : (tensor<4x32xbf16>

// Each half of the batch has a scale; the gradient of the weight is the sum of theirs.
// CURRENT-NOT: nn.state quantizer
// CURRENT: nn.reshape %{{.*}} : (tensor<4xf32>) -> tensor<2x2xf32>
// CURRENT-NEXT: nn.reduce max %{{.*}} dims [1] : (tensor<2x2xf32>) -> tensor<2xf32>
// CURRENT: nn.matmul {{.*}}wgrad{{.*}} : (tensor<2x2x32xf8E5M2>, tensor<2x2x16xf8E4M3FN>) -> tensor<2x32x16xf32>
// CURRENT: nn.reduce sum %{{.*}} dims [0] : (tensor<2x32x16xf32>) -> tensor<32x16xf32>

// MS-AMP: each part of the batch has a scale of its own until the counter is at 16; the gradients of the two
// ranks are rounded with one scale before they are added up, and so is the weight, to 16 bits.
// MSAMP: nn.state quantizer @"fp8/w/input/amax_history" : tensor<16xf32>
// MSAMP: nn.state quantizer @"fp8/w/input/amax_counter" : tensor<i64> = dense<0>
// MSAMP-NOT: fp8/w/weight
// MSAMP: nn.compare lt %{{.*}}, %{{.*}} : tensor<i64>
// MSAMP: %[[IN:.*]] = nn.floor_power2 %{{.*}} : tensor<4xf32>
// MSAMP: nn.select %{{.*}}, %[[IN]], %{{.*}} : tensor<4xf32>
// MSAMP: nn.matmul {{.*}}wgrad{{.*}} -> tensor<4x32x16xf32>
// MSAMP: nn.reduce sum %{{.*}} dims [0] : (tensor<2x2x32x16xf32>) -> tensor<2x32x16xf32>
// MSAMP-NEXT: %[[SUM:.*]] = nn.complete %{{.*}} {nn.reason = "fp8 MS-AMP: {{.*}}"} : tensor<2x32x16xf32>
// MSAMP: %[[CODES:.*]] = nn.cast %{{.*}} {saturate} : (tensor<2x32x16xf32>) -> tensor<2x32x16xf8E4M3FN>
// MSAMP: nn.reduce sum %{{.*}} dims [0] : (tensor<2x32x16xf32>) -> tensor<32x16xf32>
// In more than the 16 bits of a product's result.
// MSAMP: nn.gradient %{{.*}} of @w : tensor<32x16xf32>
// MSAMP: nn.cast %{{.*}} {saturate} : (tensor<32x16xf32>) -> tensor<32x16xf16>

// ROWS: nn.reduce max %{{.*}} dims [1] : (tensor<4x16xf32>) -> tensor<4xf32>
// ROWS: nn.floor_power2
// ROWS: nn.matmul {{.*}}wgrad{{.*}} : (tensor<4x32xbf16>

// The last of its blocks is smaller where 32 elements do not divide what is summed over.
// BLOCKS: nn.pad %{{.*}} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x32xf32>
// BLOCKS: nn.reshape %{{.*}} : (tensor<4x32xf32>) -> tensor<4x1x32xf32>
// BLOCKS: nn.cast %{{.*}} {saturate} : (tensor<4x1xf32>) -> tensor<4x1xf8E8M0FNU>
// BLOCKS: nn.cast %{{.*}} {saturate} : (tensor<4x1x32xf32>) -> tensor<4x1x32xf8E4M3FN>
// BLOCKS: nn.slice

// A scale of f8E4M3FN for 16 of what is summed over, 16 x 16 of weights; numbers of E2M1 times these.
// NVFP4: nn.reshape %{{.*}} : (tensor<4x16xf32>) -> tensor<4x1x16xf32>
// NVFP4: nn.constant dense<2.688000e+03>
// NVFP4: nn.cast %{{.*}} {saturate} : (tensor<4x1xf32>) -> tensor<4x1xf8E4M3FN>
// NVFP4: nn.cast %{{.*}} {saturate} : (tensor<4x1x16xf32>) -> tensor<4x1x16xf4E2M1FN>
// NVFP4: nn.cast %{{.*}} {saturate} : (tensor<2x1xf32>) -> tensor<2x1xf8E4M3FN>
// NVFP4: nn.matmul {{.*}}fprop>, nn.reason = "fp8 nvfp4: E2M1
// The gradient is rounded by chance.
// NVFP4: nn.random_uniform {{.*}} -> tensor<4x32xf32>
// NVFP4: %[[POWER:.*]] = nn.floor_power2
// NVFP4: nn.max %[[POWER]]
// NVFP4: nn.floor %
// NVFP4: nn.compare lt
// NVFP4: nn.cast %{{.*}} {saturate} : ({{.*}}) -> {{.*}}f4E2M1FN>
// NVFP4: nn.matmul {{.*}}dgrad>
// What is summed over is filled up and rotated, of both operands.
// NVFP4: nn.random_uniform {{.*}} -> tensor<4x32xf32>
// NVFP4: nn.pad {{.*}} -> tensor<16x32xf32>
// NVFP4: nn.matmul {{.*}}Hadamard{{.*}}, transpose_lhs} : (tensor<1x16x32xf32>, tensor<16x16xf32>) -> tensor<1x32x16xf32>
// NVFP4: nn.matmul {{.*}}Hadamard{{.*}}, transpose_lhs} : (tensor<1x16x16xf32>, tensor<16x16xf32>) -> tensor<1x16x16xf32>
// NVFP4: nn.matmul {{.*}}wgrad>{{.*}} : (tensor<16x32xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
// PLAIN: nn.cast %{{.*}} {saturate} : (tensor<32x1xf32>) -> tensor<32x1xf8E4M3FN>
// PLAIN: nn.matmul {{.*}}wgrad>
// POWER2: nn.floor_power2 %{{.*}} : tensor<f32>
// POWER2: nn.matmul {{.*}} : (tensor<4x16xf8E4M3FN>
// EXACT: nn.matmul {{.*}}fp8 block
module attributes {accel.reports = ["loss", "verdict"]} {
  nn.state @w : tensor<32x16xf32> = dense<0.0>
  nn.state counter @"counter/step" : tensor<i64> = dense<0>
  nn.state counter @"counter/call" : tensor<i64> = dense<0>
  func.func @step(%x: tensor<4x16xbf16> {nn.input = "x"}, %g: tensor<4x32xbf16> {nn.input = "g"}, %v: tensor<i32> {nn.input = "v"}, %l: tensor<f32> {nn.input = "l"}, %w: tensor<32x16xf32> {nn.state = @w}, %n: tensor<i64> {nn.state = @"counter/step"}, %c: tensor<i64> {nn.state = @"counter/call"}) -> (tensor<f32> {nn.output = "loss"}, tensor<i32> {nn.output = "verdict"}, tensor<4x32xbf16> {nn.output = "y"}, tensor<4x16xbf16> {nn.output = "dx"}, tensor<32x16xf32> {nn.state = @w}, tensor<i64> {nn.state = @"counter/step"}, tensor<i64> {nn.state = @"counter/call"}) attributes {nn.entry = #nn<entry step>} {
    %w16 = nn.cast %w : (tensor<32x16xf32>) -> tensor<32x16xbf16>
    %y = nn.matmul %x, %w16 {nn.product = #nn.product<"w", fprop>, transpose_rhs} : (tensor<4x16xbf16>, tensor<32x16xbf16>) -> tensor<4x32xbf16>
    %dx = nn.matmul %g, %w16 {nn.product = #nn.product<"w", dgrad>} : (tensor<4x32xbf16>, tensor<32x16xbf16>) -> tensor<4x16xbf16>
    %dw = nn.matmul %g, %x {nn.product = #nn.product<"w", wgrad>, transpose_lhs} : (tensor<4x32xbf16>, tensor<4x16xbf16>) -> tensor<32x16xbf16>
    %dw32 = nn.cast %dw : (tensor<32x16xbf16>) -> tensor<32x16xf32>
    %m = nn.gradient %dw32 of @w : tensor<32x16xf32>
    %new = nn.sub %w, %m : tensor<32x16xf32>
    return %l, %v, %y, %dx, %new, %n, %c : tensor<f32>, tensor<i32>, tensor<4x32xbf16>, tensor<4x16xbf16>, tensor<32x16xf32>, tensor<i64>, tensor<i64>
  }
}
