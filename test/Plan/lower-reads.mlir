// A task reads what micro-batches have of their own in all of its runs or in none, though one of
// them finds it read: bodies that read parts run once for each micro-batch.
// RUN: acc-opt %s --local-lower-to-plan | FileCheck %s

// CHECK: plan.entry @step {
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs{{$}}
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @forward{{$}}
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs micro_batch 1
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @forward micro_batch 1
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs_0 micro_batch 1
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @backward micro_batch 1
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs_0{{$}}
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @backward{{$}}
dist.mesh @m ["mb" = 2]
nn.state @v : tensor<2xf32> = dense<0.0>
func.func private @step(tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {nn.entry = #nn<entry step>}
func.func private @forward(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<forward stage 0>} {
  return %x : tensor<2xf32>
}
func.func private @backward(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<backward stage 0>} {
  return %x : tensor<2xf32>
}
dist.schedule @s entry @step micro_batches 2 {
  dist.stage 0 {
    dist.run @forward[0]
    dist.run @forward[1]
    dist.run @backward[1]
    dist.run @backward[0]
  }
}
