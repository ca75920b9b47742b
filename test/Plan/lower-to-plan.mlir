// RUN: acc-opt %s -split-input-file --local-lower-to-plan -verify-diagnostics | FileCheck %s

// Attention reads slices of one product without a copy and writes in the order
// in which the next product wants it.
// CHECK-LABEL: plan.program @main stage 0 ranks 1
// CHECK-DAG: plan.buffer @x : input device 256 bytes part [2, 4, 8]{{$}}
// CHECK-DAG: plan.buffer @w : state device 768 bytes source @w
// CHECK-DAG: plan.buffer [[QKV:@[a-z0-9_]+]] : activation device 768 bytes
// CHECK: plan.body @load_states
// CHECK: plan.read state "w" -> @w[8x24xf32]{{$}}
// CHECK: plan.body @read_inputs
// CHECK: plan.read input "x"
// CHECK: plan.body @forward
// CHECK-NEXT: plan.gemm @x[8x8xf32], @w[8x24xf32] + @b[24xf32] -> [[QKV]][8x24xf32]{{$}}
// CHECK-NEXT: plan.attention [[QKV]][2x2x4x4xf32 strides [96, 4, 24, 1]], [[QKV]][2x2x4x4xf32 at 32 strides [96, 4, 24, 1]], [[QKV]][2x2x4x4xf32 at 64 strides [96, 4, 24, 1]] -> [[O:@[a-z0-9_]+]][2x2x4x4xf32 strides [32, 4, 8, 1]] scale 5.000000e-01 causal
// CHECK-NEXT: plan.gemm [[O]][8x8xf32], @p[8x8xf32 strides [1, 8]]
// CHECK-NEXT: }
// CHECK: plan.body @write_outputs
// CHECK-NEXT: plan.write {{@[a-z]+}}[2x4x8xf32] -> output "y"{{$}}
// CHECK: plan.entry @load
// CHECK: plan.run @load_states
// CHECK: plan.entry @forward
// CHECK: plan.run @read_inputs
// CHECK: plan.segment cpu capturable
// CHECK-NEXT: plan.run @forward
// CHECK: plan.run @write_outputs
nn.state @w : tensor<8x24xf32> = dense<0.0>
nn.state @b : tensor<24xf32> = dense<0.0>
nn.state @p : tensor<8x8xf32> = dense<0.0>
func.func @main(%x: tensor<2x4x8xf32> {nn.input = "x"}, %w: tensor<8x24xf32> {nn.state = @w}, %b: tensor<24xf32> {nn.state = @b}, %p: tensor<8x8xf32> {nn.state = @p}) -> (tensor<2x4x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %m = nn.matmul %x, %w : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
  %bb = nn.broadcast %b : (tensor<24xf32>) -> tensor<2x4x24xf32>
  %qkv = nn.add %m, %bb : tensor<2x4x24xf32>
  %q0 = nn.slice %qkv starts [0, 0, 0] sizes [2, 4, 8] steps [1, 1, 1] : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %q1 = nn.reshape %q0 : (tensor<2x4x8xf32>) -> tensor<2x4x2x4xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : (tensor<2x4x2x4xf32>) -> tensor<2x2x4x4xf32>
  %k0 = nn.slice %qkv starts [0, 0, 8] sizes [2, 4, 8] steps [1, 1, 1] : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %k1 = nn.reshape %k0 : (tensor<2x4x8xf32>) -> tensor<2x4x2x4xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : (tensor<2x4x2x4xf32>) -> tensor<2x2x4x4xf32>
  %v0 = nn.slice %qkv starts [0, 0, 16] sizes [2, 4, 8] steps [1, 1, 1] : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %v1 = nn.reshape %v0 : (tensor<2x4x8xf32>) -> tensor<2x4x2x4xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : (tensor<2x4x2x4xf32>) -> tensor<2x2x4x4xf32>
  %a:2 = nn.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> (tensor<2x2x4x4xf32>, tensor<2x2x4xf32>)
  %t = nn.transpose %a#0 [0, 2, 1, 3] : (tensor<2x2x4x4xf32>) -> tensor<2x4x2x4xf32>
  %f = nn.reshape %t : (tensor<2x4x2x4xf32>) -> tensor<2x4x8xf32>
  %y = nn.matmul %f, %p {transpose_rhs} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// Kernels read whole tensors; constants are buffers that hold their value, one
// for equal values; a view that an output needs whole is copied.
// CHECK-LABEL: plan.program @main
// CHECK: plan.buffer @{{.*}} : constant {{.*}} value dense<[1.0
// CHECK-NOT: role constant
// CHECK: plan.body @forward
// CHECK-NEXT: plan.kernel @kernel_0(@x[{{.*}}], @constant{{.*}}]) -> {{.*}} rows 2{{$}}
// CHECK-NEXT: plan.kernel @kernel_0
// CHECK-NEXT: plan.copy @x[3x2xf32 strides [1, 3]] -> @x.copy[3x2xf32] {plan.inserted_by = "local-lower-to-plan"}
// CHECK: plan.body @write_outputs
// CHECK: plan.write @x.copy[
func.func private @kernel_0(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
  %c = nn.broadcast %b : (tensor<3xf32>) -> tensor<2x3xf32>
  %d = nn.mul %a, %c : tensor<2x3xf32>
  return %d : tensor<2x3xf32>
}
func.func @main(%x: tensor<2x3xf32> {nn.input = "x"}) -> (tensor<2x3xf32> {nn.output = "y"}, tensor<3x2xf32> {nn.output = "z"}) attributes {nn.entry} {
  %c = nn.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %d = nn.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %y = call @kernel_0(%x, %c) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %z = call @kernel_0(%y, %d) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %t = nn.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %z, %t : tensor<2x3xf32>, tensor<3x2xf32>
}

// -----

func.func @main(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
  // expected-error @below {{expected an op that a command of the plan executes}}
  %y = nn.neg %x : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// expected-error @below {{expected argument 0 to carry 'nn.state' or 'nn.input'}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{expected result 0 to carry 'nn.output'}}
func.func @main(%x: tensor<2xf32> {nn.input = "x"}) -> tensor<2xf32> attributes {nn.entry} {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{expected a function with 'nn.entry', found none}}
module {}

// -----

// Attention's gradient reads slices of one product and writes each result in
// the order in which its only reader wants it; what has gaps in its rows is
// copied.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.copy @g[2x2x4x4xf32 strides [32, 16, 1, 4]] -> [[G:@[a-z0-9_.]+]][
// CHECK-NEXT: plan.attention_grad @qkv[2x2x4x4xf32 strides [96, 4, 24, 1]], @qkv[2x1x4x4xf32 at 32 strides [96, 24, 24, 1]], @qkv[2x1x4x4xf32 at 48 strides [96, 24, 24, 1]] output @o[2x2x4x4xf32], @l[2x2x4xf32] gradient [[G]][2x2x4x4xf32], @l[2x2x4xf32] mask @m[1x1x4x4xi1 strides [0, 0, 4, 1]] -> [[DQ:@[a-z0-9_]+]][2x2x4x4xf32 strides [32, 4, 8, 1]], [[DK:@[a-z0-9_]+]][2x1x4x4xf32], [[DV:@[a-z0-9_]+]][2x1x4x4xf32] scale 5.000000e-01 causal zero_masked_rows row_offset 3{{$}}
func.func @main(%qkv: tensor<2x4x24xf32> {nn.input = "qkv"}, %g: tensor<2x2x4x4xf32> {nn.input = "g"}, %m: tensor<4x4xi1> {nn.input = "m"}, %o: tensor<2x2x4x4xf32> {nn.input = "o"}, %l: tensor<2x2x4xf32> {nn.input = "l"}) -> (tensor<2x4x8xf32> {nn.output = "dq"}, tensor<2x1x4x4xf32> {nn.output = "dk"}, tensor<2x1x4x4xf32> {nn.output = "dv"}) attributes {nn.entry} {
  %q0 = nn.slice %qkv starts [0, 0, 0] sizes [2, 4, 8] steps [1, 1, 1] : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %q1 = nn.reshape %q0 : (tensor<2x4x8xf32>) -> tensor<2x4x2x4xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : (tensor<2x4x2x4xf32>) -> tensor<2x2x4x4xf32>
  %k0 = nn.slice %qkv starts [0, 0, 8] sizes [2, 4, 4] steps [1, 1, 1] : (tensor<2x4x24xf32>) -> tensor<2x4x4xf32>
  %k1 = nn.reshape %k0 : (tensor<2x4x4xf32>) -> tensor<2x4x1x4xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : (tensor<2x4x1x4xf32>) -> tensor<2x1x4x4xf32>
  %v0 = nn.slice %qkv starts [0, 0, 12] sizes [2, 4, 4] steps [1, 1, 1] : (tensor<2x4x24xf32>) -> tensor<2x4x4xf32>
  %v1 = nn.reshape %v0 : (tensor<2x4x4xf32>) -> tensor<2x4x1x4xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : (tensor<2x4x1x4xf32>) -> tensor<2x1x4x4xf32>
  %gt = nn.transpose %g [0, 1, 3, 2] : (tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %m0 = nn.reshape %m : (tensor<4x4xi1>) -> tensor<1x1x4x4xi1>
  %m1 = nn.broadcast %m0 : (tensor<1x1x4x4xi1>) -> tensor<2x2x4x4xi1>
  %d:3 = nn.attention_grad %q, %k, %v output %o, %l gradient %gt, %l mask %m1 {causal, zero_masked_rows, row_offset = 3, scale = 0.5} : (tensor<2x2x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4x4xi1>) -> (tensor<2x2x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>)
  %dq = nn.transpose %d#0 [0, 2, 1, 3] : (tensor<2x2x4x4xf32>) -> tensor<2x4x2x4xf32>
  %dqf = nn.reshape %dq : (tensor<2x4x2x4xf32>) -> tensor<2x4x8xf32>
  return %dqf, %d#1, %d#2 : tensor<2x4x8xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>
}

// -----

// What attention gives its gradient is written in the order that its other
// reader wants; the log-sum-exp has bytes where somebody reads it.
// CHECK-LABEL: plan.program @main
// CHECK: plan.body @forward
// CHECK-NEXT: plan.attention @q[{{.*}} -> [[O:@[a-z0-9_]+]][2x2x4x4xf32 strides [32, 4, 8, 1]], [[L:@[a-z0-9_]+]][2x2x4xf32] scale
// CHECK-NEXT: plan.attention_grad {{.*}} output [[O]][2x2x4x4xf32 strides [32, 4, 8, 1]], [[L]][2x2x4xf32] gradient @q[
// CHECK-NEXT: }
func.func @main(%q: tensor<2x2x4x4xf32> {nn.input = "q"}) -> (tensor<2x4x8xf32> {nn.output = "y"}, tensor<2x2x4x4xf32> {nn.output = "dq"}) attributes {nn.entry} {
  %o:2 = nn.attention %q, %q, %q {scale = 0.5} : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> (tensor<2x2x4x4xf32>, tensor<2x2x4xf32>)
  %t = nn.transpose %o#0 [0, 2, 1, 3] : (tensor<2x2x4x4xf32>) -> tensor<2x4x2x4xf32>
  %y = nn.reshape %t : (tensor<2x4x2x4xf32>) -> tensor<2x4x8xf32>
  %d:3 = nn.attention_grad %q, %q, %q output %o#0, %o#1 gradient %q {scale = 0.5} : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4xf32>, tensor<2x2x4x4xf32>) -> (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>)
  return %y, %d#0 : tensor<2x4x8xf32>, tensor<2x2x4x4xf32>
}
