// RUN: not acc-eval %s 2>&1 | FileCheck %s
// UNSUPPORTED: asan

// CHECK: acc-eval: error: cannot allocate memory: expected a program whose tensors, of all ranks, fit into this machine's, as float64{{$}}
// CHECK-NOT: {{.}}
func.func @main(%x: tensor<1099511627776xf32> {nn.input = "x"}) -> (tensor<1099511627776xf32> {nn.output = "y"}) attributes {nn.entry} {
  %y = nn.neg %x : tensor<1099511627776xf32>
  return %y : tensor<1099511627776xf32>
}
