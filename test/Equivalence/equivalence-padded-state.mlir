// The value of a padded state is that of the step: the same bytes read in another shape
// are none of its.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null
// RUN: sed 's/logical .9, 10./logical [10, 9]/' %t/local.mlir > %t/m.mlir
// RUN: not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s
// What it becomes may have a constant in it, of which each rank has its padded part.
// RUN: sed 's/dense<2.0> : tensor<9/dense<3.0> : tensor<9/' %t/local.mlir > %t/c.mlir
// RUN: not acc-opt %t/c.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/low .0, 0. high .7, 0./low [7, 0] high [0, 0]/' %t/local.mlir > %t/p.mlir
// RUN: not acc-opt %t/p.mlir --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: does not follow from the logical program
// CHECK: error: 'nn.state' op expected a value of 'tensor<9x10xf32>' as in the logical program, found 'tensor<10x9xf32>'

//--- train.mlir
module attributes {accel.phase = "train"} {
  nn.state @w : tensor<9x10xf32> from #nn.file<"w.bin">[0 : 360] hash 1
  func.func @main(%w: tensor<9x10xf32> {nn.state = @w}) -> (tensor<9x10xf32> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %c = nn.constant dense<2.0> : tensor<9x10xf32>
    %n = nn.sub %w, %c : tensor<9x10xf32>
    return %n : tensor<9x10xf32>
  }
}
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp_shard" = 16]
  nn.state @w : tensor<16x10xf32> logical [9, 10] from #nn.file<"w.bin">[0 : 360] hash 1
  func.func @main(%w: tensor<1x10xf32> {dist.layout = #dist.layout<@mesh [16 by {dp_shard}, 10]>, nn.state = @w})
      -> (tensor<1x10xf32> {dist.layout = #dist.layout<@mesh [16 by {dp_shard}, 10]>, nn.state = @w}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry = #nn<entry step>} {
    %c = nn.constant dense<2.0> : tensor<9x10xf32>
    %zero = nn.constant dense<0.0> : tensor<f32>
    %p = nn.pad %c, %zero low [0, 0] high [7, 0] : (tensor<9x10xf32>, tensor<f32>) -> tensor<16x10xf32>
    %s = dist.all_slice %p over @mesh {dp_shard} dim 0 : (tensor<16x10xf32>) -> tensor<1x10xf32>
    %n = nn.sub %w, %s : tensor<1x10xf32>
    return %n : tensor<1x10xf32>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
