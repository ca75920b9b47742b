// RUN: acc-opt %s -split-input-file --local-split-tasks -verify-diagnostics

// expected-error @below {{expected a dist.mesh, found none}}
module {
}

// -----
// expected-error @below {{splits entry @infer into micro-batches: expected a step that writes states}}
dist.mesh @mesh ["mb" = 2]
func.func @infer(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.input = "x"}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.output = "y"}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----
// A loss that divides by a sum of activations is not additive.
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> {init = dense<1.0> : tensor<4xf32>}
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) attributes {nn.entry} {
  %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{is not additive over the batch: its sum over all micro-batches is needed before the backward can begin, and depends on @w; expected a sum divided by a count of the data, or one micro-batch instead of 2}}
  %s = dist.all_reduce sum %y over @mesh {mb} : tensor<4xf32>
  %q = nn.div %y, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = dist.all_reduce sum %q over @mesh {mb} : tensor<4xf32>
  %g = nn.gradient %t of @w : (tensor<4xf32>) -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> {init = dense<1.0> : tensor<4xf32>}
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) attributes {nn.entry} {
  %s = dist.all_reduce sum %x over @mesh {mb} : tensor<4xf32>
  %d = nn.sub %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{needs a sum over all micro-batches of what itself needs such a sum: expected one count before the backward}}
  %v = dist.all_reduce sum %d over @mesh {mb} : tensor<4xf32>
  %q = nn.div %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = dist.all_reduce sum %q over @mesh {mb} : tensor<4xf32>
  %g = nn.gradient %t of @w : (tensor<4xf32>) -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> {init = dense<1.0> : tensor<4xf32>}
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) attributes {nn.entry} {
  // expected-error @below {{needs the max over all micro-batches: expected sums only}}
  %t = dist.all_reduce max %x over @mesh {mb} : tensor<4xf32>
  %g = nn.gradient %t of @w : (tensor<4xf32>) -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<8xf32> {init = dense<1.0> : tensor<8xf32>}
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.input = "x"}, %w: tensor<8xf32> {dist.layout = #dist.layout<@mesh, [8], [{}]>, nn.state = @w}) -> (tensor<8xf32> {dist.layout = #dist.layout<@mesh, [8], [{}]>, nn.state = @w}) attributes {nn.entry} {
  // expected-error @below {{needs a value of all micro-batches at once, found 2 that run one after another}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %g = nn.gradient %t of @w : (tensor<8xf32>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> {init = dense<1.0> : tensor<4xf32>}
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [8], [{mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh, [4], [{}]>, nn.state = @w}) attributes {nn.entry} {
  %t = dist.all_reduce sum %x over @mesh {mb} : tensor<4xf32>
  %g = nn.gradient %t of @w : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{is part of the update and reads a value of a single micro-batch: expected a sum over all}}
  %u = nn.sub %g, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %u : tensor<4xf32>
}
