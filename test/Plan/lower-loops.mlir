// Inputs are read where their buffers have those of another micro-batch: in each turn
// of a loop, whatever stands before it, and after it, where they have the last turn's.
// RUN: acc-opt %s --local-lower-to-plan | FileCheck %s

// CHECK: plan.entry @step {
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @prepare
// CHECK-NEXT: }
// CHECK-NEXT: plan.loop 3 {
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs_0 micro_batch turn
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @forward micro_batch turn
// CHECK-NEXT: plan.run @backward micro_batch turn
// CHECK-NEXT: }
// CHECK-NEXT: }
// The last micro-batch is no turn of the loop.
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs_0 micro_batch 3
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @forward micro_batch 3
// CHECK-NEXT: plan.run @backward micro_batch 3
// CHECK-NEXT: }
// CHECK-NEXT: plan.loop 4 {
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs_2 micro_batch turn
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @count micro_batch turn
// CHECK-NEXT: }
// CHECK-NEXT: }
// What the loop has left is of micro-batch 3.
// CHECK-NEXT: plan.segment cpu {
// CHECK-NEXT: plan.run @read_inputs_3
// CHECK-NEXT: }
// CHECK-NEXT: plan.segment cpu capturable {
// CHECK-NEXT: plan.run @update
dist.mesh @m ["mb" = 4]
nn.state @w : tensor<2xf32> = dense<0.0>
nn.state @v : tensor<2xf32> = dense<0.0>
func.func private @step(tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [8 by {mb}]>}, tensor<2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2]>}) -> (tensor<2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2]>}) attributes {nn.entry = #nn<entry step>}
func.func private @prepare(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [8 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<prepare stage 0>} {
  return %x : tensor<2xf32>
}
func.func private @forward(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [8 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<forward stage 0>} {
  return %x : tensor<2xf32>
}
func.func private @backward(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [8 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<backward stage 0>} {
  return %x : tensor<2xf32>
}
func.func private @count(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [8 by {mb}]>}) -> (tensor<2xf32> {nn.state = @v, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<count stage 0>} {
  return %x : tensor<2xf32>
}
func.func private @update(%x: tensor<2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [8 by {mb}]>}) -> (tensor<2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2]>}) attributes {dist.task = #dist.task<update stage 0>} {
  return %x : tensor<2xf32>
}
dist.schedule @s entry @step micro_batches 4 {
  dist.stage 0 {
    dist.run @prepare[0]
    dist.loop 3 {
      dist.run @forward[turn]
      dist.run @backward[turn]
    }
    dist.run @forward[3]
    dist.run @backward[3]
    dist.loop 4 {
      dist.run @count[turn]
    }
    dist.run @update[0]
  }
}
