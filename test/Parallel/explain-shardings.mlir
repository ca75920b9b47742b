// RUN: acc-opt %s --dist-annotate --dist-record-origins=by=batch --dist-propagate --dist-explain-shardings | FileCheck %s

// The output has its axis from the input, and the input without a batch from it, too.
// CHECK: dist.origins = [
// CHECK-SAME: {axis = "dp_replicate", by = "batch", dim = 0 : i64, entry = "main", kind = "input", name = "x"}
// CHECK-SAME: {axis = "dp_replicate", by = "input 'x', through 2 ops, the nearest nn.add 'shift'", dim = 0 : i64, entry = "main", kind = "output", name = "y"}
// CHECK-SAME: ]}
module {
dist.mesh @mesh ["dp_replicate" = 2]
func.func @main(%x: tensor<4x8xf32> {nn.input = "x"}, %b: tensor<8xf32> {nn.input = "b"}) -> (tensor<4x8xf32> {nn.output = "y"}, tensor<8xf32> {nn.output = "same"}) attributes {nn.entry} {
  %c = dist.constraint %b to <@mesh, [{}]> : tensor<8xf32>
  %r = nn.gelu erf %x : tensor<4x8xf32>
  %s = nn.broadcast %c : (tensor<8xf32>) -> tensor<4x8xf32>
  %y = nn.add %r, %s : tensor<4x8xf32> loc("shift")
  return %y, %c : tensor<4x8xf32>, tensor<8xf32>
}
}
