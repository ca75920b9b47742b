// A stage of two chunks: a micro-batch goes through chunk 0 and chunk 1, and back.
// Such a program runs, is planned and is proved today, whoever wrote it.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{local} = %t/local.mlir
// DEFINE: %{check} = acc-opt %{local} --search-verify --local-verify --dist-verify-equivalence=logical=%t/train.mlir -o /dev/null && \
// DEFINE:   acc-eval %{local} --compare %t/train.mlir --tolerance 1e-12 && \
// DEFINE:   acc-opt %{local} --accel-run-phases="to=plan target=cpu:x86-64-v3" -o %t/plan.mlir && \
// DEFINE:   acc-opt %t/plan.mlir --plan-verify-equivalence=local=%{local} -o /dev/null && \
// DEFINE:   acc-eval %t/plan.mlir --compare %t/train.mlir --tolerance 1e-12
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.mlir
// PLAN: plan.body @forward engine
// PLAN: plan.body @forward_1 engine
// PLAN: plan.body @backward_1 engine
// PLAN: plan.body @backward engine

// Two micro-batches in flight, interleaved: both through chunk 0, both through
// chunk 1, and back. What chunk 1 keeps for itself ends before the next one's begins.
// RUN: sed 's/1f1b:1/1f1b:2/;/dist.loop 4/,/}/c dist.run @f0[0] dist.run @f1[0] dist.loop 3 { dist.run @f0[turn + 1] dist.run @b1[turn] dist.run @f1[turn + 1] dist.run @b0[turn] } dist.run @b1[3] dist.run @b0[3]' %t/local.mlir > %t/interleaved.mlir
// REDEFINE: %{local} = %t/interleaved.mlir
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=SLOTS < %t/plan.mlir
// SLOTS: slots 2
// A micro-batch is in flight from chunk 0's forward to its backward.
// RUN: sed 's/1f1b:2/1f1b:1/' %t/interleaved.mlir > %t/many.mlir
// RUN: not acc-opt %t/many.mlir --search-verify 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: {{.*}}expected at most 1 micro-batches in flight in schedule 1f1b:1, found 2

// The other chunk's value, and the chunks in another order.
// RUN: sed 's/edge @f0 0 -> @b0 0/edge @f1 0 -> @b0 0/' %t/local.mlir > %t/other.mlir
// RUN: not acc-opt %t/other.mlir --dist-verify-equivalence=logical=%t/train.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: {{.*}}does not follow from the logical program
// RUN: sed 's/run @b1\[turn\]/run @b[turn]/;s/run @b0\[turn\]/run @b1[turn]/;s/run @b\[turn\]/run @b0[turn]/' %t/local.mlir > %t/order.mlir
// RUN: not acc-opt %t/order.mlir --dist-verify-equivalence=logical=%t/train.mlir 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: {{.*}}carries a value that is not made yet

//--- train.mlir
module attributes {accel.phase = "train"} {
  nn.state @w : tensor<4x4xf64> = dense<0.5>
  func.func @step(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.state = @w})
      -> (tensor<4x4xf64> {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
    %h = nn.tanh %x : tensor<8x4xf64>
    %o = nn.exp %h : tensor<8x4xf64>
    %p = nn.mul %o, %h : tensor<8x4xf64>
    %d = nn.neg %p : tensor<8x4xf64>
    %q = nn.mul %d, %o : tensor<8x4xf64>
    %e = nn.mul %q, %h : tensor<8x4xf64>
    %g = nn.matmul %x, %e {transpose_lhs} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<4x4xf64>
    %n = nn.add %w, %g : tensor<4x4xf64>
    return %n : tensor<4x4xf64>
  }
}
//--- local.mlir
module attributes {accel.phase = "local", accel.decisions = {micro_batches = 4 : i64, schedule = "1f1b:1"}} {
  dist.mesh @mesh ["mb" = 4]
  nn.state @w : tensor<4x4xf64> = dense<0.5>
  nn.state accumulator @"accumulator/g" : tensor<4x4xf64> = dense<0.0>
  func.func private @step(tensor<2x4xf64> {nn.input = "x", dist.layout = #dist.layout<@mesh [8 by {mb}, 4]>}, tensor<4x4xf64> {nn.state = @w, dist.layout = #dist.layout<@mesh [4, 4]>})
      -> (tensor<4x4xf64> {nn.state = @w, dist.layout = #dist.layout<@mesh [4, 4]>}) attributes {nn.entry = #nn<entry step>}
  func.func private @f0(%x: tensor<2x4xf64> {nn.input = "x", dist.layout = #dist.layout<@mesh [8 by {mb}, 4]>}) -> tensor<2x4xf64> attributes {dist.task = #dist.task<forward stage 0>} {
    %h = nn.tanh %x : tensor<2x4xf64>
    return %h : tensor<2x4xf64>
  }
  func.func private @f1(%h: tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4xf64>) attributes {dist.task = #dist.task<forward stage 0 chunk 1>} {
    %o = nn.exp %h : tensor<2x4xf64>
    %p = nn.mul %o, %h : tensor<2x4xf64>
    return %p, %o : tensor<2x4xf64>, tensor<2x4xf64>
  }
  func.func private @b1(%p: tensor<2x4xf64>, %o: tensor<2x4xf64>) -> tensor<2x4xf64> attributes {dist.task = #dist.task<backward stage 0 chunk 1>} {
    %d = nn.neg %p : tensor<2x4xf64>
    %q = nn.mul %d, %o : tensor<2x4xf64>
    return %q : tensor<2x4xf64>
  }
  func.func private @b0(%h: tensor<2x4xf64>, %q: tensor<2x4xf64>, %x: tensor<2x4xf64> {nn.input = "x", dist.layout = #dist.layout<@mesh [8 by {mb}, 4]>}, %a: tensor<4x4xf64> {nn.state = @"accumulator/g", dist.layout = #dist.layout<@mesh [4, 4]>})
      -> (tensor<4x4xf64> {nn.state = @"accumulator/g", nn.write = #nn<write accumulate_sum>, dist.layout = #dist.layout<@mesh [4, 4]>}) attributes {dist.task = #dist.task<backward stage 0>} {
    %e = nn.mul %q, %h : tensor<2x4xf64>
    %g = nn.matmul %x, %e {transpose_lhs} : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<4x4xf64>
    %s = nn.add %a, %g : tensor<4x4xf64>
    return %s : tensor<4x4xf64>
  }
  func.func private @u(%w: tensor<4x4xf64> {nn.state = @w, dist.layout = #dist.layout<@mesh [4, 4]>}, %g: tensor<4x4xf64> {nn.state = @"accumulator/g", dist.layout = #dist.layout<@mesh [4, 4]>})
      -> (tensor<4x4xf64> {nn.state = @w, dist.layout = #dist.layout<@mesh [4, 4]>}, tensor<4x4xf64> {nn.state = @"accumulator/g", dist.layout = #dist.layout<@mesh [4, 4]>}) attributes {dist.task = #dist.task<update stage 0>} {
    %n = nn.add %w, %g : tensor<4x4xf64>
    %z = nn.constant dense<0.0> : tensor<4x4xf64>
    return %n, %z : tensor<4x4xf64>, tensor<4x4xf64>
  }
  dist.schedule @s entry @step micro_batches 4 {
    dist.stage 0 {
      dist.loop 4 {
        dist.run @f0[turn]
        dist.run @f1[turn]
        dist.run @b1[turn]
        dist.run @b0[turn]
      }
      dist.run @u[0]
    }
    dist.edge @f0 0 -> @f1 0
    dist.edge @f1 0 -> @b1 0
    dist.edge @f1 1 -> @b1 1
    dist.edge @f0 0 -> @b0 0
    dist.edge @b1 0 -> @b0 1
  }
}
