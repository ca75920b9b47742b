// States and outputs between tasks that no edge connects.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/right.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: sed 's/run @b/run @c/;s/run @a/run @b/;s/run @c/run @a/' %t/right.mlir > %t/late.mlir
// RUN: not acc-opt %t/late.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: reads @w after @b has written the next one
// RUN: sed '/run @a/d' %t/right.mlir > %t/output.mlir
// RUN: not acc-opt %t/output.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: 'func.func' op has no task that gives output 'y'
// RUN: sed '/run @b/d' %t/right.mlir > %t/state.mlir
// RUN: not acc-opt %t/state.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATE
// STATE: error: 'func.func' op has no task that gives new state 'w'
// RUN: sed 's/nn.output = "y"}) attributes {dist.task/nn.state = @w}) attributes {dist.task/' %t/right.mlir > %t/two.mlir
// RUN: not acc-opt %t/two.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: result 0 of @a, new state 'w', expected [{dp}], found something else

//--- decided.mlir
module attributes {accel.phase = "decided"} {
  dist.mesh @mesh ["dp" = 2]
  nn.state @w : tensor<4xf32, #dist.sharding<@mesh, [{dp}]>> = dense<1.0>
  func.func @main(%w: tensor<4xf32, #dist.sharding<@mesh, [{dp}]>> {nn.state = @w})
      -> (tensor<4xf32, #dist.sharding<@mesh, [{dp}]>> {nn.output = "y"}, tensor<4xf32, #dist.sharding<@mesh, [{dp}]>> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %y = nn.exp %w : tensor<4xf32, #dist.sharding<@mesh, [{dp}]>>
    %n = nn.neg %w : tensor<4xf32, #dist.sharding<@mesh, [{dp}]>>
    return %y, %n : tensor<4xf32, #dist.sharding<@mesh, [{dp}]>>, tensor<4xf32, #dist.sharding<@mesh, [{dp}]>>
  }
}
//--- right.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  nn.state @w : tensor<4xf32> = dense<1.0>
  func.func private @main(tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.state = @w})
    -> (tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.output = "y"}, tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.state = @w}) attributes {nn.entry = #nn<entry step>}
  func.func private @a(%w: tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.state = @w})
      -> (tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>} {
    %y = nn.exp %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func private @b(%w: tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.state = @w})
      -> (tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.state = @w}) attributes {dist.task = #dist.task<update stage 0>} {
    %n = nn.neg %w : tensor<2xf32>
    return %n : tensor<2xf32>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @a[0]
      dist.run @b[0]
    }
  }
}
