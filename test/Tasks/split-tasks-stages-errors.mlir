// RUN: acc-opt %s --split-input-file --local-split-tasks --verify-diagnostics

// A program that nobody has cut has no stages.
module attributes {accel.decisions = {schedule = "gpipe"}} {
  dist.mesh @mesh ["pp" = 2]
  nn.state @w : tensor<4xf32> = dense<0.5>
  // expected-error @below {{expected the model cut into the 2 chunks that schedule gpipe has on 2 stages, found 1}}
  func.func @main(%w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %0 = nn.exp %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// Nor has one stage several chunks.
module attributes {accel.decisions = {}} {
  dist.mesh @mesh ["mb" = 2]
  nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 1 : i64}
  // expected-error @below {{expected one chunk on one stage, found 2}}
  func.func @main(%w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry = #nn<entry step>} {
    %0 = nn.exp %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {accel.decisions = {schedule = "interleaved:2"}} {
  dist.mesh @mesh ["pp" = 2]
  nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 1 : i64}
  // expected-error @below {{expected the model cut into the 4 chunks that schedule interleaved:2 has on 2 stages, found 2}}
  func.func @main(%w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %0 = nn.exp %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// What asks for outputs alone may need fewer, and no more.
module attributes {accel.decisions = {schedule = "gpipe"}} {
  dist.mesh @mesh ["pp" = 2]
  nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 2 : i64}
  // expected-error @below {{expected the model cut into the 2 chunks that schedule gpipe has on 2 stages, found 3}}
  func.func @main(%w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
    %0 = nn.exp %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A schedule is looked for where each stage has one chunk.
module attributes {accel.decisions = {schedule = "auto"}} {
  dist.mesh @mesh ["pp" = 2]
  nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 3 : i64}
  // expected-error @below {{expected the model cut into the 2 chunks that schedule auto has on 2 stages, found 4}}
  func.func @main(%w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %0 = nn.exp %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pp" = 2]
  nn.state @v : tensor<4xf32> = dense<0.5>
  nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 1 : i64}
  func.func @main(%v: tensor<4xf32> {nn.state = @v}, %w: tensor<4xf32> {nn.state = @w})
      -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
    // expected-error @below {{expected operands of one chunk of the pipeline, found some of chunk 0 and some of chunk 1: what goes from one to the other takes an nn.cut}}
    %0 = nn.add %v, %w : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pp" = 3]
  nn.state @w : tensor<4xf32> = dense<0.5> {chunk = 1 : i64}
  func.func @main(%w: tensor<4xf32> {nn.state = @w}) -> (tensor<4xf32> {nn.output = "y"}) attributes {nn.entry} {
    // expected-error @below {{expected a value of chunk 0, found one of chunk 1}}
    %0 = nn.cut %w from 0 to 2 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected two chunks, found 1 and 1}}
  %0 = nn.cut %x from 1 to 1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What the backward divides by must be known before it begins.
module {
  dist.mesh @mesh ["mb" = 2, "pp" = 2]
  nn.state @w : tensor<4xf32> = dense<0.5>
  nn.state accumulator @"accumulator/count" : tensor<f32> = dense<0.0> {chunk = 1 : i64}
  nn.state accumulator @"accumulator/out" : tensor<f32> = dense<0.0> {chunk = 1 : i64}
  func.func @main(%x: tensor<4xf32> {nn.input = "x", dist.layout = #dist.layout<@mesh [8 by {mb}]>},
                  %w: tensor<4xf32> {nn.state = @w, dist.layout = #dist.layout<@mesh [4]>})
      -> (tensor<f32> {nn.output = "y", dist.layout = #dist.layout<@mesh []>}) attributes {nn.entry} {
    %0 = nn.mul %x, %x : tensor<4xf32>
    %c = nn.cut %0 from 0 to 1 : tensor<4xf32>
    %1 = nn.reduce sum %c dims [0] : (tensor<4xf32>) -> tensor<f32>
    // expected-error @below {{needs its sum over all micro-batches before the backward can begin, of what another chunk makes; expected a loss that is a sum over samples}}
    %2 = dist.accumulate sum %1 in @"accumulator/count" layout <@mesh []> : tensor<f32> -> tensor<f32>
    %3 = nn.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    %4 = nn.mul %3, %2 : tensor<f32>
    %5 = dist.accumulate sum %4 in @"accumulator/out" layout <@mesh []> : tensor<f32> -> tensor<f32>
    return %5 : tensor<f32>
  }
}
