// Three of four micro-batches in flight: what the forward leaves to the backward, and
// the input that both read, have three copies; what one body uses alone has one, as
// states have. The backward finds its input read.
// RUN: acc-opt %s --local-lower-to-plan --plan-keep-in-flight | FileCheck %s
// Where each ends before the next begins, nothing changes.
// RUN: sed -e '/^  dist.stage 0/,/^ *dist.run @backward.turn + 2/c dist.stage 0 { dist.loop 4 { dist.run @forward[turn] dist.run @backward[turn]' %s | acc-opt --local-lower-to-plan -o %t.before
// RUN: acc-opt %t.before --plan-keep-in-flight -o %t.after && diff %t.before %t.after

// CHECK-DAG: plan.buffer @w : state device 16 bytes source
// CHECK-DAG: plan.buffer @x : {{.*}} 8 bytes slots 3{{( part .*)?$}}
// CHECK-DAG: plan.buffer @matmul : activation {{.*}} 8 bytes slots 3{{$}}
// CHECK-DAG: plan.buffer @matmul_{{[0-9]+}} : activation {{.*}} 8 bytes{{$}}
// CHECK: plan.entry @step
// CHECK-COUNT-2: plan.run @read_inputs{{.*}}
// CHECK-NOT: plan.run @read_inputs
// CHECK: plan.run @backward micro_batch turn + 2
dist.mesh @m ["mb" = 4]
nn.state @w : tensor<2x2xf32> = dense<0.0>
func.func private @step(tensor<1x2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb}, 2]>}, tensor<2x2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2, 2]>}) -> (tensor<2x2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2, 2]>}) attributes {nn.entry = #nn<entry step>}
func.func private @forward(%x: tensor<1x2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb}, 2]>}, %w: tensor<2x2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2, 2]>}) -> tensor<1x2xf32> attributes {dist.task = #dist.task<forward stage 0>} {
  %y = nn.matmul %x, %w : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
func.func private @backward(%y: tensor<1x2xf32>, %x: tensor<1x2xf32> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb}, 2]>}, %w: tensor<2x2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2, 2]>}) -> (tensor<2x2xf32> {nn.state = @w, dist.layout = #dist.layout<@m [2, 2]>}) attributes {dist.task = #dist.task<backward stage 0>} {
  %z = nn.matmul %y, %w : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %g = nn.matmul %x, %z {transpose_lhs} : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  return %g : tensor<2x2xf32>
}
dist.schedule @s entry @step micro_batches 4 {
  dist.stage 0 {
    dist.loop 2 {
      dist.run @forward[turn]
    }
    dist.loop 2 {
      dist.run @forward[turn + 2]
      dist.run @backward[turn]
    }
    dist.loop 2 {
      dist.run @backward[turn + 2]
    }
  }
  dist.edge @forward 0 -> @backward 0
}
