// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK: nn.state @wte.weight : tensor<4x2xf32> {aliases = ["lm_head.weight"], init = #nn.file<"m.onnx"[512 : 32] hash 77 permutation[]>, initializers = [#nn.initializer<"w", [1, 0]>]}
nn.state @wte.weight : tensor<4x2xf32> {aliases = ["lm_head.weight"], initializers = [#nn.initializer<"w", [1, 0]>], init = #nn.file<"m.onnx" [512 : 32] hash 77 permutation []>}
// CHECK: nn.state @wide : tensor<2xf64> {init = #nn.file<"m.onnx"[0 : 8] hash 1 permutation[]>, stored = f32}
nn.state @wide : tensor<2xf64> {init = #nn.file<"m.onnx" [0 : 8] hash 1 permutation []>, stored = f32}
// CHECK: nn.state @buffer : tensor<2xi64> {frozen, init = dense<[1, 2]> : tensor<2xi64>}
nn.state @buffer : tensor<2xi64> {frozen, init = dense<[1, 2]> : tensor<2xi64>}
// CHECK: nn.state @padded : tensor<4x2xf32> {init = dense<1.000000e+00> : tensor<3x2xf32>, logical = array<i64: 3, 2>}
nn.state @padded : tensor<4x2xf32> {init = dense<1.0> : tensor<3x2xf32>, logical = array<i64: 3, 2>}
// CHECK: nn.state @"exp_avg/wte.weight" : tensor<4x2xf32> {init = dense<0.000000e+00> : tensor<4x2xf32>, role = #nn<role moment>}
nn.state @"exp_avg/wte.weight" : tensor<4x2xf32> {init = dense<0.0> : tensor<4x2xf32>, role = #nn<role moment>}
// CHECK: role = #nn<role accumulator>
nn.state @sum : tensor<f32> {init = dense<0.0> : tensor<f32>, role = #nn<role accumulator>}
// CHECK: role = #nn<role counter>
nn.state @n : tensor<i64> {init = dense<0> : tensor<i64>, role = #nn<role counter>}
// CHECK: role = #nn<role buffer>
nn.state @running : tensor<f32> {init = dense<0.0> : tensor<f32>, role = #nn<role buffer>}
// What a state is for unless it says otherwise.
// CHECK: nn.state @b : tensor<f32> {init = dense<0.000000e+00> : tensor<f32>}
nn.state @b : tensor<f32> {init = dense<0.0> : tensor<f32>, role = #nn<role parameter>}

// CHECK: func.func @main(%{{.*}}: tensor<4xi64> {nn.input = "ids"}, %{{.*}}: tensor<4x2xf32> {nn.state = @wte.weight}) -> (tensor<4x2xf32> {nn.output = "out"}) attributes {nn.entry}
func.func @main(%ids: tensor<4xi64> {nn.input = "ids"}, %w: tensor<4x2xf32> {nn.state = @wte.weight}) -> (tensor<4x2xf32> {nn.output = "out"}) attributes {nn.entry} {
  // CHECK: nn.constant dense<{{.*}}> : tensor<2xf32> : tensor<2xf32>
  %c = nn.constant dense<[0.5, 1.0]> : tensor<2xf32> : tensor<2xf32>
  // CHECK: nn.iota {dim = 1 : i64, start = 3 : i64} : tensor<2x4xi64>
  %i = nn.iota {dim = 1 : i64, start = 3 : i64} : tensor<2x4xi64>
  // CHECK: nn.gradient %{{.*}} of @wte.weight : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %g = nn.gradient %w of @wte.weight : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %w : tensor<4x2xf32>
}
