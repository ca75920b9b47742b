// States, constants and what binds a function to them print, and parse back.
// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// A file is called after itself, and written once.
// CHECK: #file_9_bin = #nn.file<"data/9.bin">
// CHECK: #m_onnx = #nn.file<"m.onnx">

// CHECK: nn.state @wte.weight : tensor<4x2xf32> from #m_onnx[512 : 32] hash 77 {aliases = ["lm_head.weight"], initializers = [#nn.initializer<"w", [1, 0]>]}
nn.state @wte.weight : tensor<4x2xf32> from #nn.file<"m.onnx">[512 : 32] hash 77 {aliases = ["lm_head.weight"], initializers = [#nn.initializer<"w", [1, 0]>]}
// CHECK: nn.state @wide : tensor<2xf64> from #m_onnx[0 : 8] hash 1 {stored = f32}
nn.state @wide : tensor<2xf64> from #nn.file<"m.onnx">[0 : 8] hash 1 {stored = f32}
// CHECK: nn.state @buffer : tensor<2xi64> = dense<[1, 2]> {frozen}
nn.state @buffer : tensor<2xi64> = dense<[1, 2]> {frozen}
// CHECK: nn.state @padded : tensor<4x2xf32> logical [3, 2] = dense<1.000000e+00>
nn.state @padded : tensor<4x2xf32> logical [3, 2] = dense<1.0>
// CHECK: nn.state @"rows.*" : tensor<2x3xf32> = [@rows.0, @rows.1] {frozen}
nn.state @"rows.*" : tensor<2x3xf32> = [@rows.0, @rows.1] {frozen}
nn.state @rows.0 : tensor<3xf32> = dense<0.0> {frozen}
nn.state @rows.1 : tensor<3xf32> = dense<0.0> {frozen}
// CHECK: nn.state moment @"exp_avg/wte.weight" : tensor<4x2xf32> = dense<0.000000e+00>
nn.state moment @"exp_avg/wte.weight" : tensor<4x2xf32> = dense<0.0>
// CHECK: nn.state accumulator @sum
nn.state accumulator @sum : tensor<f32> = dense<0.0>
// CHECK: nn.state counter @n
nn.state counter @n : tensor<i64> = dense<0>
// CHECK: nn.state buffer @running
nn.state buffer @running : tensor<f32> = dense<0.0>
// What a state is for unless it says otherwise.
// CHECK: nn.state @b : tensor<f32> = dense<0.000000e+00>
nn.state parameter @b : tensor<f32> = dense<0.0>
// No hash of what nobody read; the bytes of the transposed value.
// CHECK: nn.state @turned : tensor<4x2xf32> from #file_9_bin[0 : 32] transposed [1, 0]{{$}}
nn.state @turned : tensor<4x2xf32> from #nn.file<"data/9.bin">[0 : 32] transposed [1, 0]
// CHECK: {initializers = [#nn.initializer<"a">, #nn.initializer<"b", [1, 0]>]}
nn.state @twice : tensor<4x2xf32> = dense<0.0> {initializers = [#nn.initializer<"a">, #nn.initializer<"b", [1, 0]>]}
// Outside of a state, as another op may hold it.
// CHECK: some.range = #nn.range<#m_onnx[4 : 8] hash 3>
func.func private @range() attributes {some.range = #nn.range<#nn.file<"m.onnx">[4 : 8] hash 3>}

// CHECK: func.func @main(%{{.*}}: tensor<4xi64> {nn.input = "ids"}, %{{.*}}: tensor<4x2xf32> {nn.state = @wte.weight}) -> (tensor<4x2xf32> {nn.output = "out"}) attributes {nn.entry}
func.func @main(%ids: tensor<4xi64> {nn.input = "ids"}, %w: tensor<4x2xf32> {nn.state = @wte.weight}) -> (tensor<4x2xf32> {nn.output = "out"}) attributes {nn.entry} {
  // CHECK: nn.constant dense<{{.*}}> : tensor<2xf32>
  %c = nn.constant dense<[0.5, 1.0]> : tensor<2xf32>
  // CHECK: nn.constant dense<0.000000e+00> : tensor<4x2xf32, #all-dp>
  %p = nn.constant dense<0.0> : tensor<4x2xf32, #dist.sharding<@mesh, [{}, {dp}]>>
  // CHECK: nn.iota {dim = 1 : i64, start = 3 : i64} : tensor<2x4xi64>
  %i = nn.iota {dim = 1 : i64, start = 3 : i64} : tensor<2x4xi64>
  // CHECK: nn.gradient %{{.*}} of @wte.weight : tensor<4x2xf32>
  %g = nn.gradient %w of @wte.weight : tensor<4x2xf32>
  return %w : tensor<4x2xf32>
}
