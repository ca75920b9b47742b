// RUN: acc-opt %s -split-input-file --local-split-tasks -verify-diagnostics

// expected-error @below {{expected a dist.mesh, found none}}
module {
}

// -----
// A loss that divides by a sum of activations is not additive.
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %y = nn.mul %x, %w : tensor<4xf32>
  // expected-error @below {{is not additive over the batch: its sum over all micro-batches is needed before the backward can begin, and depends on @w; expected a loss that is a sum over samples, or such a sum divided by a count of the data: write it so, or use one micro-batch instead of 2}}
  %s = dist.accumulate sum %y in @a layout <@mesh [4]> : tensor<4xf32> -> tensor<4xf32>
  %q = nn.div %y, %s : tensor<4xf32>
  %t = dist.accumulate sum %q in @a layout <@mesh [4]> : tensor<4xf32> -> tensor<4xf32>
  %g = nn.gradient %t of @w : tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %s = dist.accumulate sum %x in @a layout <@mesh [4]> : tensor<4xf32> -> tensor<4xf32>
  %d = nn.sub %x, %s : tensor<4xf32>
  // expected-error @below {{needs a sum over all micro-batches of what itself needs such a sum; expected a loss that is a sum over samples, or such a sum divided by a count of the data: write it so, or use one micro-batch instead of 2}}
  %v = dist.accumulate sum %d in @a layout <@mesh [4]> : tensor<4xf32> -> tensor<4xf32>
  %q = nn.div %x, %v : tensor<4xf32>
  %t = dist.accumulate sum %q in @a layout <@mesh [4]> : tensor<4xf32> -> tensor<4xf32>
  %g = nn.gradient %t of @w : tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<8xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) -> (tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected a loss that is a sum over samples, or such a sum divided by a count of the data: write it so, or use one micro-batch instead of 2}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %g = nn.gradient %t of @w : tensor<8xf32>
  return %g : tensor<8xf32>
}

// -----
// Rows that are cut apart, and what goes by those before.
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected a slice to take rows that a micro-batch has: let those of a group follow each other (x.view(-1, n), x[k::n]) and a micro-batch hold whole groups, and cut sequences along their own dimension (h.chunk(n, 1)), not as rows, or use one micro-batch instead of 2}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %r = nn.reshape %t : (tensor<8xf32>) -> tensor<2x4xf32>
  %h = nn.slice %r starts [0, 0] sizes [1, 4] steps [1, 1] : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %v = nn.reshape %h : (tensor<1x4xf32>) -> tensor<4xf32>
  %g = nn.gradient %v of @w : tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----
// Rows that are joined behind each other.
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<16xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<16xf32> {dist.layout = #dist.layout<@mesh [16]>, nn.state = @w}) -> (tensor<16xf32> {dist.layout = #dist.layout<@mesh [16]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected rows that are joined to follow each other in each micro-batch: write torch.stack((a, b), 1).flatten(0, 1) in the place of torch.cat((a, b)), and take them apart by x[0::2], x[1::2], or use one micro-batch instead of 2}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %c = nn.concat %t, %t dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %g = nn.gradient %c of @w : tensor<16xf32>
  return %g : tensor<16xf32>
}

// -----
// Groups of rows that micro-batches cut.
dist.mesh @mesh ["mb" = 4]
nn.state @w : tensor<2x4xf32> = dense<1.0>
func.func @step(%x: tensor<2xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<2x4xf32> {dist.layout = #dist.layout<@mesh [2, 4]>, nn.state = @w}) -> (tensor<2x4xf32> {dist.layout = #dist.layout<@mesh [2, 4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected the rows of a micro-batch on a rank to be whole groups: 4 that follow each other, or a multiple, or use one micro-batch instead of 4}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<2xf32>) -> tensor<8xf32>
  %r = nn.reshape %t : (tensor<8xf32>) -> tensor<2x4xf32>
  %g = nn.gradient %r of @w : tensor<2x4xf32>
  return %g : tensor<2x4xf32>
}

// -----
// A table of rows that are no samples, or of samples.
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<8xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %i: tensor<8xi64> {dist.layout = #dist.layout<@mesh [8]>, nn.input = "i"}, %w: tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) -> (tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected rows that are looked up to be there for all samples: --batch-dim x=none, if the rows of input 'x' are no samples, or use one micro-batch instead of 2}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %r = nn.gather %t, %i dim 0 : (tensor<8xf32>, tensor<8xi64>) -> tensor<8xf32>
  %g = nn.gradient %r of @w : tensor<8xf32>
  return %g : tensor<8xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<8xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %y: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "y"}, %i: tensor<8xi64> {dist.layout = #dist.layout<@mesh [8]>, nn.input = "i"}, %w: tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) -> (tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  %s = nn.add %x, %y : tensor<4xf32>
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected a loss that is a sum over samples, or such a sum divided by a count of the data: write it so, or use one micro-batch instead of 2}}
  %t = dist.all_gather %s over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %r = nn.gather %t, %i dim 0 : (tensor<8xf32>, tensor<8xi64>) -> tensor<8xf32>
  %g = nn.gradient %r of @w : tensor<8xf32>
  return %g : tensor<8xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<8xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) -> (tensor<8xf32> {dist.layout = #dist.layout<@mesh [8]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{needs the samples of all micro-batches at once, which run one after another; expected nothing to go by what is chosen in samples before, as rows do that a mask gives places in turn: let each sample have its own (torch.where, torch.gather along the sequence), or use one micro-batch instead of 2}}
  %t = dist.all_gather %x over @mesh {mb} dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %c = nn.cumsum %t dim 0 {exclusive} : tensor<8xf32>
  %g = nn.gradient %c of @w : tensor<8xf32>
  return %g : tensor<8xf32>
}

// -----
dist.mesh @mesh ["mb" = 2]
nn.state @w : tensor<4xf32> = dense<1.0>
func.func @step(%x: tensor<4xf32> {dist.layout = #dist.layout<@mesh [8 by {mb}]>, nn.input = "x"}, %w: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
  // expected-error @below {{is of a single micro-batch, and the update, which runs once for all, reads it; expected a loss that is a sum over samples, or such a sum divided by a count of the data: write it so, or use one micro-batch instead of 2}}
  %y = nn.neg %x : tensor<4xf32>
  %t = dist.accumulate sum %x in @a layout <@mesh [4]> : tensor<4xf32> -> tensor<4xf32>
  %g = nn.gradient %t of @w : tensor<4xf32>
  %u = nn.sub %g, %y : tensor<4xf32>
  return %u : tensor<4xf32>
}

// -----
// The split obeys what was decided, and knows what it means.
module attributes {accel.decisions = {schedule = "1f1b:3"}} {
  dist.mesh @mesh ["mb" = 2]
  nn.state @w : tensor<4xf32> = dense<1.0>
  // expected-error @below {{expected at least the 3 micro-batches that schedule 1f1b:3 has in flight, found 2}}
  func.func @step(%w: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    return %w : tensor<4xf32>
  }
}

// -----
module attributes {accel.decisions = {schedule = "zigzag"}} {
  dist.mesh @mesh ["mb" = 2]
  nn.state @w : tensor<4xf32> = dense<1.0>
  // expected-error @below {{expected a decided schedule sequential, gpipe or 1f1b:D, found zigzag}}
  func.func @step(%w: tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    return %w : tensor<4xf32>
  }
}
