// The passes that cut a step into tasks and say in which order they run.

#ifndef ACCEL_PIPELINE_PASSES_TD
#define ACCEL_PIPELINE_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitTasksPass : Pass<"local-split-tasks", "::mlir::ModuleOp"> {
  let summary = "Cuts a step into tasks, and makes a loop of the micro-batches";
  let description = [{
    Runs on one rank's program, after `dist-localize`. An entry that writes no
    state becomes the only task of its schedule. One that does is a step: its ops
    are dealt out to the tasks

    - `count` (per micro-batch): what a sum over micro-batches needs that the
      backward reads, as the number of tokens in the batch. It may depend on the
      inputs only: a loss that is not additive over the batch is refused here.
    - `prepare` (once): what is the same for every micro-batch, and needed in it,
      be it only as a term of a sum.
    - `forward` (per micro-batch): what the outputs need that are no update's, and
      what no gradient is made of and the forward has all of, such as a mean of
      activations for a running statistic: activations are not kept for it.
    - `backward` (per micro-batch): the rest that differs between micro-batches, and
      losses that are taken in chunks (`dist.loss_chunk`), with what is made of them:
      their logits are not kept. A
      schedule may run it in two parts: `backward_input` makes what goes back to
      other chunks, with all that this needs, and chunks of losses, `backward_weight` the rest. Of a chunk
      that sends nothing back, the first makes what more than one sum needs.
    - `update` (once): what comes after a `nn.gradient`, and what is left: terms
      of weights alone, too, though each micro-batch gathers the weights anew.

    With one micro-batch, `forward` does the work of `count` and `prepare`.

    Of a model that is cut, each chunk has these tasks of its own, which run on its
    stage. A `nn.cut` becomes an edge between two of them; what depends on inputs
    alone, each chunk that reads it computes, but for sums over micro-batches, which
    one computes for all. What runs once is divided into rounds: an op that reads
    what another chunk has made in a round is of the next one, and so is what that
    op alone needs, unless it makes less than it reads: a new weight, which waits for
    the norm of all gradients, is not kept beside the old one.
    For schedule `auto` the fastest that is found for the work of these tasks is
    taken, which a remark names.

    A `dist.accumulate` becomes what the task adds to the accumulator in each
    micro-batch, a later task's read, and a write of what changes nothing (0 of a
    sum) at the end. Values of one task that another reads are edges, located at what they carry; what costs nothing
    (constants, views, indices) is computed again where it is read, and what the
    forward widens is widened again in the backward: half as much is kept. The entry
    stays as a declaration that says what the program takes and gives. States are
    read and written in the order of the runs. What runs per micro-batch is a loop
    of the schedule: `count` one, the rest as the decided schedule has it.

    ```mlir
    func.func @step(%x: tensor<2x4xf32> {nn.input = "x"}, %w: … {nn.state = @w}) -> (… {nn.state = @w}) attributes {nn.entry = #nn<entry step>} {
      %g = … %x …
      %a = dist.accumulate sum %g in @"accumulator/w"
      %s = dist.all_reduce sum %a over @mesh {dp_replicate}
      %d = nn.gradient %s of @w
      %n = nn.sub %w, %d
      return %n
    // becomes
    func.func private @backward(%x, %a {nn.state = @"accumulator/w"}) -> (… {nn.state = @"accumulator/w", nn.write = accumulate_sum}) attributes {dist.task = #dist.task<backward stage 0>} {
      %g = … %x …
      %s = nn.add %a, %g
      return %s
    func.func private @update(%a {nn.state = @"accumulator/w"}, %w …) -> (… {nn.state = @w}, … {nn.state = @"accumulator/w"}) … {
      %d = dist.all_reduce sum %a over @mesh {dp_replicate}
      %n = nn.sub %w, %d
      %z = nn.constant dense<0.0>
      return %n, %z
    dist.schedule @step_schedule entry @step micro_batches 16 { dist.stage 0 {
      dist.loop 16 { dist.run @backward[turn] }
      dist.run @update[0] } }
    ```
    The backward of chunk 1, by a schedule that runs it in two parts:
    ```mlir
    %d = nn.mul %c, %r
    %t = nn.matmul %x, %d {transpose_lhs}
    %s = dist.accumulate sum %t in @"accumulator/w"
    %g = nn.matmul %d, %w {transpose_rhs}
    %b = nn.cut %g from 1 to 0
    // becomes
    func.func private @backward_input_1(%c, %r, %w {nn.state = @w}) -> … attributes {dist.task = #dist.task<backward_input stage 1>} {
      %d = nn.mul %c, %r
      %g = nn.matmul %d, %w {transpose_rhs}
      return %g, %d
    func.func private @backward_weight_1(%x, %d, %a {nn.state = @"accumulator/w"}) -> … attributes {dist.task = #dist.task<backward_weight stage 1>} {
      %t = nn.matmul %x, %d {transpose_lhs}
      %s = nn.add %a, %t
      return %s
    dist.schedule … {
      dist.edge @backward_input_1 0 -> @backward_input_0 0
      dist.edge @backward_input_1 1 -> @backward_weight_1 1
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect", "::mlir::func::FuncDialect"];
}

def MergeScatterAddsPass : Pass<"local-merge-scatter-adds", "::mlir::ModuleOp"> {
  let summary = "Adds a scatter's slices to the sum that reads it";
  let description = [{
    Runs on local programs, after `local-split-tasks`: x + scatter_add(0, i, u)
    becomes scatter_add(x, i, u) where nothing else reads the scatter. So a tied
    table's gradient takes in its slices where its product lies, and an
    accumulator takes them in itself; there is neither a table of zeros nor a
    sum of tables. Not before localisation: there x may be the same on every
    rank and the slices different, so that they need a sum of their own.

    ```mlir
    %s = nn.scatter_add %zeros, %i, %u dim 0 : …
    %y = nn.add %x, %s : …
    // becomes
    %y = nn.scatter_add %x, %i, %u dim 0 : …
    ```
  }];
}

#endif
