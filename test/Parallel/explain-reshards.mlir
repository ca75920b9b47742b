// RUN: acc-opt %s --dist-annotate --dist-record-origins=by=batch --dist-split-weights --dist-record-origins=by=dist-split-weights --dist-propagate --dist-explain-shardings --dist-materialize --dist-explain-reshards | FileCheck %s
// RUN: acc-opt %s --dist-annotate --dist-record-origins=by=batch --dist-split-weights --dist-record-origins=by=dist-split-weights --dist-propagate --dist-explain-shardings --dist-materialize --dist-explain-reshards --dist-plan-reshards --dist-localize | FileCheck %s --check-prefix=LOCAL

// A sum over split columns, by the weight that is split; a gradient's, by the batch; what is split, by
// who split it. Collectives keep the reason.
// CHECK-DAG: dist.reasons = {dp_replicate = "dp_replicate splits dimension 0 of the result of nn.matmul 'down'", tp = "a sum over tp: nn.matmul 'down' sums over dimension 0 of state 'down' (state 'up', through {{[0-9]}} ops, the nearest nn.matmul 'down'), which tp splits"}
// CHECK-DAG: dist.reasons = {dp_replicate = "a sum over dp_replicate: nn.matmul 'back' sums over dimension 0 of input 'x' (batch), which dp_replicate splits; for the gradient of 'whole'"}
// CHECK-DAG: dist.reasons = {tp = "tp splits dimension 0 of state 'down' (state 'up', through
// LOCAL-DAG: dist.all_reduce sum {{.*}} over @mesh {tp} {{.*}}dist.reasons = {{.*}}tp = "a sum over tp: nn.matmul 'down'
// LOCAL-DAG: dist.all_reduce sum {{.*}} over @mesh {dp_replicate} {{.*}}dist.reasons = {dp_replicate = "a sum over dp_replicate: nn.matmul 'back'
// LOCAL-DAG: dist.all_gather {{.*}} over @mesh {tp} {{.*}}dist.reasons = {tp = "tp splits dimension 0 of state 'down'
module {
dist.mesh @mesh ["dp_replicate" = 2, "tp" = 2]
nn.state @up : tensor<8x32xf32> = dense<0.5>
nn.state @down : tensor<32x8xf32> = dense<0.5>
nn.state @whole : tensor<8x8xf32> = dense<0.5>
func.func @mlp(%x: tensor<512x8xf32> {nn.input = "x"}, %up: tensor<8x32xf32> {nn.state = @up}, %down: tensor<32x8xf32> {nn.state = @down}, %whole: tensor<8x8xf32> {nn.state = @whole}) -> (tensor<512x8xf32> {nn.output = "y"}, tensor<32x8xf32> {nn.output = "copy"}, tensor<8x8xf32> {nn.output = "grad"}) attributes {nn.entry} {
  %h = nn.matmul %x, %up : (tensor<512x8xf32>, tensor<8x32xf32>) -> tensor<512x32xf32>
  %a = nn.gelu erf %h : tensor<512x32xf32>
  %y = nn.matmul %a, %down : (tensor<512x32xf32>, tensor<32x8xf32>) -> tensor<512x8xf32> loc("down")
  %copy = dist.constraint %down to <@mesh, [{}, {}]> : tensor<32x8xf32>
  %d = nn.matmul %x, %x {transpose_lhs} : (tensor<512x8xf32>, tensor<512x8xf32>) -> tensor<8x8xf32> loc("back")
  %g = nn.gradient %d of @whole : tensor<8x8xf32>
  return %y, %copy, %g : tensor<512x8xf32>, tensor<32x8xf32>, tensor<8x8xf32>
}
}
