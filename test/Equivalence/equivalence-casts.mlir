// Terms may be widened before they are added, which changes no number; rounded
// they may not.
// RUN: rm -rf %t && split-file %s %t
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: sed 's/bf16/f64/g' %t/decided.mlir > %t/narrow-decided.mlir
// RUN: sed 's/bf16/f64/g' %t/local.mlir > %t/narrow.mlir
// RUN: not acc-opt %t/narrow.mlir --dist-verify-equivalence=logical=%t/narrow-decided.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: does not follow from the logical program: is not linear in what is partial over axis 'dp': a sum is missing

//--- decided.mlir
module attributes {accel.phase = "decided"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<8x4xbf16, #dist.sharding<@mesh, [{dp}, {}]>> {nn.input = "x"}) -> (tensor<4xf32, #dist.sharding<@mesh, [{}]>> {nn.output = "y"}) attributes {nn.entry} {
    %s = nn.reduce sum %x dims [0] : (tensor<8x4xbf16, #dist.sharding<@mesh, [{dp}, {}]>>) -> tensor<4xbf16, #dist.sharding<@mesh, [{}], partial = {dp}>>
    %w = nn.cast %s : (tensor<4xbf16, #dist.sharding<@mesh, [{}], partial = {dp}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {dp}>>
    %y = dist.reshard %w : tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {dp}>> -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
    return %y : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  }
}
//--- local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%x: tensor<4x4xbf16> {dist.layout = #dist.layout<@mesh [8 by {dp}, 4]>, nn.input = "x"}) -> (tensor<4xf32> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %s = nn.reduce sum %x dims [0] : (tensor<4x4xbf16>) -> tensor<4xbf16>
    %w = nn.cast %s : (tensor<4xbf16>) -> tensor<4xf32>
    %y = dist.all_reduce sum %w over @mesh {dp} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
