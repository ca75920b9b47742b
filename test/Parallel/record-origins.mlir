// RUN: acc-opt %s --dist-record-origins=by=first --dist-annotate --dist-record-origins=by=second --dist-split-weights --dist-record-origins=by=third | FileCheck %s

// What a constraint says first is its own, what one pass after another adds is theirs.
// CHECK: dist.origins = [
// CHECK-SAME: {axis = "dp_shard", by = "first", dim = 0 : i64, entry = "", kind = "state", name = "placed"}
// CHECK-SAME: {axis = "dp_replicate", by = "second", dim = 0 : i64, entry = "mlp", kind = "input", name = "x"}
// CHECK-SAME: {axis = "dp_shard", by = "second", dim = 0 : i64, entry = "mlp", kind = "input", name = "x"}
// CHECK-SAME: {axis = "tp", by = "third", dim = 1 : i64, entry = "", kind = "state", name = "up"}
// CHECK-SAME: {axis = "tp", by = "third", dim = 0 : i64, entry = "", kind = "state", name = "down"}
// CHECK-SAME: ]}
module {
dist.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2, "tp" = 2]
nn.state @up : tensor<8x32xf32> = dense<0.5>
nn.state @down : tensor<32x8xf32> = dense<0.5>
nn.state @placed : tensor<8xf32> = dense<0.5>
func.func @mlp(%x: tensor<512x8xf32> {nn.input = "x"}, %up: tensor<8x32xf32> {nn.state = @up}, %down: tensor<32x8xf32> {nn.state = @down}, %placed: tensor<8xf32> {nn.state = @placed}) -> (tensor<512x8xf32> {nn.output = "y"}) attributes {nn.entry} {
  %p = dist.constraint %placed to <@mesh, [{dp_shard}]> : tensor<8xf32>
  %h = nn.matmul %x, %up : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %g = nn.gelu erf %h : tensor<512x32xf32>
  %y = nn.matmul %g, %down : (tensor<512x32xf32>, tensor<32x8xf32>) -> tensor<512x8xf32>
  %b = nn.broadcast %p : (tensor<8xf32>) -> tensor<512x8xf32>
  %r = nn.add %y, %b : tensor<512x8xf32>
  %z = nn.add %r, %x : tensor<512x8xf32>
  return %z : tensor<512x8xf32>
}
}
