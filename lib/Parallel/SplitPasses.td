// The passes that mark what is decided and split a program into one rank's.

#ifndef ACCEL_PARALLEL_SPLITPASSES_TD
#define ACCEL_PARALLEL_SPLITPASSES_TD

include "lib/Parallel/OrderedPass.td"

def MarkLossChunksPass : OrderedPass<"dist-mark-loss-chunks"> {
  let summary = "Marks losses whose rows are taken in chunks, so that logits are never there at once";
  let description = [{
    Writes `dist.loss_chunks`, how many, on each product of `@step` that makes the logits
    of a `nn.cross_entropy` (the head), be it through ops that are done element by
    element, views and slices. `none` marks none; a number marks all, and a loss
    whose rows cannot be taken so is an error. `auto` marks a loss where its logits are
    among what makes the peak: they and their gradient are at least an eighth of what a
    micro-batch keeps for the backward beside them, and 32 MiB. It takes as many chunks
    as leave each 1024 rows, but no more than make a chunk of logits as small as what the
    head reads (Hsu et al., Liger Kernel, arXiv:2410.10989): each chunk reads and writes
    the sum that is the weight's gradient, and with fewer rows that takes longer than
    the products. All of it is of one rank and one micro-batch.

    With several micro-batches logits and their gradient must be larger than a gradient
    of the weight, too, of which there is one more then. An evaluation keeps nothing: of
    it 32 MiB are enough, and what cannot be taken in chunks (it may give its logits
    away) stays whole.

    Chunks are of rows that follow each other: of sequences, or of one sequence. Left
    whole is a loss whose classes ranks split (`tp.vocabulary`); whose logits are an
    output, are moved between ranks, or are read by something that works across rows;
    and one of whose gradient anything waits for all rows.

    ```mlir
    %logits = nn.matmul %h, %w {transpose_rhs}
    %l = nn.cross_entropy %logits, %labels
    // becomes
    %logits = nn.matmul %h, %w {dist.loss_chunks = 4 : i64, transpose_rhs}
    %l = nn.cross_entropy %logits, %labels
    ```
  }];
  let options = [Option<"chunks", "chunks", "std::string", "\"auto\"", "auto, none, or how many">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def ChunkLossPass : OrderedPass<"dist-chunk-loss"> {
  let summary = "Takes the rows of a loss in chunks: head, loss and gradient of one before the next";
  let description = [{
    Of each marked head (`dist.loss_chunks`) on one rank's program: the head, all that is
    done to logits in the forward and the backward, and what leads from one to the other
    is done to a chunk of the rows after another. What has a row for each row (the loss
    of each, the gradient of what the head reads) is joined; what has added over rows
    (the gradients of the head's weight and bias) is added up, chunk by chunk, in the
    wide type where it was rounded to be widened. What depends on labels alone (their
    count) is not touched.

    `dist.loss_chunk` says on each of these ops of which chunk it is: tasks have them in
    the backward, where a chunk's logits are gone when the next one's are made. So neither
    logits nor their gradient are kept, and no product is made a second time.

    ```mlir
    %z = nn.matmul %h, %w {dist.loss_chunks = 2 : i64, transpose_rhs} : (tensor<8x4xf32>, tensor<9x4xf32>) -> tensor<8x9xf32>
    %l = nn.cross_entropy %z, %labels
    %dz = … %z …
    %dh = nn.matmul %dz, %w
    %dw = nn.matmul %dz, %h {transpose_lhs}
    // becomes
    %h0 = nn.slice %h starts [0, 0] sizes [4, 4] {dist.loss_chunk = 0 : i64}
    %z0 = nn.matmul %h0, %w {dist.loss_chunk = 0 : i64, transpose_rhs}
    %l0 = nn.cross_entropy %z0, …
    %dz0 = … %z0 …
    %dh0 = nn.matmul %dz0, %w
    %dw0 = nn.matmul %dz0, %h0 {transpose_lhs}
    %h1 = nn.slice %h starts [4, 0] sizes [4, 4] {dist.loss_chunk = 1 : i64}
    …
    %dw = nn.add %dw0, %dw1 {dist.loss_chunk = 1 : i64}
    %l = nn.concat %l0, %l1 dim 0
    %dh = nn.concat %dh0, %dh1 dim 0
    ```
    A loss that cannot be taken in chunks after all is left whole, which a remark says.
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def SendCodesPass : OrderedPass<"dist-send-codes"> {
  let summary = "Sends the codes of 8 bits that a sum over ranks is of";
  let description = [{
    Where each rank has widened codes of its own (a gradient in f8E4M3FN, of which dimension 0
    has one for each rank), and their sum is wanted in pieces, the codes are exchanged and each rank adds up its piece:
    a quarter of the bytes of f32, and the same number, since the codes are the terms. A sum that every rank
    is to have is made of the codes of all, while these are no more bytes than it is; of more ranks it is made in
    pieces, which are gathered. The program as a whole stays what it was.

    ```mlir
    %w = nn.cast %codes : (tensor<4x32x48xf8E4M3FN, #dp_shard-all-all>) -> tensor<4x32x48xf32, #dp_shard-all-all>
    %t = nn.reduce sum %w dims [0] : (…) -> tensor<32x48xf32, #all-all-sum_over_dp_shard>
    %s = dist.reshard %t : … -> tensor<32x48xf32, #dp_shard-all>
    // becomes
    %c = dist.reshard %codes : … -> tensor<4x32x48xf8E4M3FN, #all-dp_shard-all>
    %w = nn.cast %c : … -> tensor<4x32x48xf32, #all-dp_shard-all>
    %s = nn.reduce sum %w dims [0] : (…) -> tensor<32x48xf32, #dp_shard-all>
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def ScatterGradientsPass : OrderedPass<"dist-scatter-gradients"> {
  let summary = "Scatters gradients where the backward makes them, unit by unit";
  let description = [{
    In ZeRO-2 and 3 (`accel.zero_stage`) the sum over ranks that turns a gradient into pieces moves right
    behind the term that it is of, and says which gather unit (`GatherUnits.h`) it
    belongs to: what comes after it keeps no more than a unit whole. The terms of a
    weight that several units use, a tied table, are scattered each with its own
    unit, and the pieces added. Sums that scatter nothing stay where they are. Comes
    after `search-decide`, with `dist-place-gathers`.

    ```mlir
    %d1 = nn.matmul %lt, %x3
    …
    %d0 = nn.scatter_add %zero, %ids, %dx
    %d = nn.add %d1, %d0
    …
    %s = dist.reshard %d : [{}, {} ] partial = {dp_shard} -> [{dp_shard}, {} ]
    %g = nn.gradient %s of @embed.table
    // becomes
    %d1 = nn.matmul %lt, %x3
    %s1 = dist.reshard %d1 {dist.unit = "embed/1"} : …
    …
    %d0 = nn.scatter_add %zero, %ids, %dx
    %s0 = dist.reshard %d0 {dist.unit = "embed"} : …
    %s = nn.add %s1, %s0
    …
    %g = nn.gradient %s of @embed.table
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def MarkRecomputedPass : OrderedPass<"dist-mark-recomputed"> {
  let summary = "Marks what the backward computes again instead of keeping it";
  let description = [{
    Divides ops of the forward of `@step` into segments, by the policy that
    `--recompute` names, and writes `dist.recompute`, the segment's name, on each.
    `full:uniform:N` takes all layers (the modules that are numbered in a list), N
    together; `full:block:N` the first N of each chunk of a pipeline;
    `selective:PART,…` parts of layers that are known by what they do (Megatron-LM's
    `--recompute-modules`; Korthikanti et al., arXiv:2205.05198); patterns the modules
    whose paths match. Of `layernorm` and `moe_act` what the forward reads is not kept
    either (`dist.discard`).

    ```mlir
    %h = nn.gelu %x loc("transformer.h.0.mlp.act")
    // with policy=transformer.h.* becomes
    %h = nn.gelu %x {dist.recompute = "transformer.h.0"}
    ```
  }];
  let options = [Option<"policy", "policy", "std::string", "\"auto\"", "what is computed again, as --recompute says it; auto: as model">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def RecomputePass : OrderedPass<"dist-recompute"> {
  let summary = "Computes the activations of marked segments again in the backward";
  let description = [{
    What the backward reads of a segment (`dist.recompute`) is computed again from what
    the segment reads, in front of the first op of the backward that wants it (Chen et
    al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174), so that it
    need not be kept from the forward on. Kept is what the forward behind the segment
    reads (but with `dist.discard`), and what tells of choices, integers and booleans
    made of floats: rows and experts are not chosen twice. Dropout draws the same, since
    it counts by coordinates. Comes before `dist-place-gathers`: what is computed again
    reads the weights that the backward gathers.

    ```mlir
    %h = nn.gelu %x {dist.recompute = "h.0"}
    %y = nn.matmul %h, %w {dist.recompute = "h.0"}
    …
    %dw = nn.matmul %h, %dy {transpose_lhs}
    // becomes
    %h = nn.gelu %x
    %y = nn.matmul %h, %w
    …
    %h1 = nn.gelu %x {dist.recomputed = "h.0"}
    %dw = nn.matmul %h1, %dy {transpose_lhs}
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def PlaceGathersPass : OrderedPass<"dist-place-gathers"> {
  let summary = "Gathers sharded weights where they are used, unit by unit";
  let description = [{
    The weights of a gather unit are gathered together, in front of the first op
    that reads one, in the forward and again in the backward, for what the
    backward needs; the last unit once, since the backward begins there. Units are
    the copies of the block that the forward repeats, and what stands between
    them (`GatherUnits.h`). `dist.instance` keeps the two gathers apart. What of a
    weight is read rounded (mixed precision) is rounded before it is gathered, by
    unit as well: rounded copies of all weights would be half as much again. What is scaled
    and bounded before it is rounded (fp8) is made of pieces already (`dist-shard-states`), and
    made and gathered by unit, scale and all. So are
    weights that every rank has whole, in every stage: else bf16 would need more
    memory than f32 where activations are few. A gather is where ranks have more of a weight: over the other
    axes of a mesh, `tp` say, it stays split. Where it was decided that `gathers` are
    "once" (`accel.decisions`), they stay where they are, one a step, of what is rounded
    before. Comes after `search-decide`: what the backward computes again reads what
    the backward gathers.

    ```mlir
    %w = dist.reshard %arg1 : [{dp_shard}, {} ] -> [{}, {} ]
    %y = nn.matmul %x, %w
    …
    %dx = nn.matmul %dy, %w
    // becomes
    %w = dist.reshard %arg1 {dist.instance = 0, dist.unit = "h.0"} : …
    %y = nn.matmul %x, %w
    …
    %w1 = dist.reshard %arg1 {dist.instance = 5, dist.unit = "h.0"} : …
    %dx = nn.matmul %dy, %w1
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def ExplainReshardsPass : OrderedPass<"dist-explain-reshards"> {
  let summary = "Writes on every reshard why its operand is placed as it is";
  let description = [{
    A string for each axis of the operand, split or partial: which op sums over what, for
    the gradient of which parameter; who has split which state. The collectives that
    the reshard becomes keep them. Comes right before `dist-plan-reshards`, when all
    reshards are where they are made, and changes nothing else; without `dist.origins`
    on the module nobody asks, and nothing is written.

    ```mlir
    %1 = dist.reshard %0 : [{} ] partial = {tp} -> [{} ]
    // becomes
    %1 = dist.reshard %0 {dist.reasons = {tp = "a sum over tp: nn.matmul 'down' sums over dimension 0 of state 'w' (dist-split-weights), which tp splits"}} : …
    ```
  }];
}

def PlanReshardsPass : OrderedPass<"dist-plan-reshards"> {
  let summary = "Takes every reshard apart into single collectives";
  let description = [{
    Each `dist.reshard` becomes a chain of reshards, each of which one collective
    does, chosen as the cheapest path by `ReshardPlanner`.

    ```mlir
    %1 = dist.reshard %0 : [{a}, {b} ] -> [{b}, {} ]
    // becomes
    %1 = dist.reshard %0 : [{a}, {b} ] -> [{}, {b} ]      // all_gather
    %2 = dist.reshard %1 : [{}, {b} ] -> [{b}, {} ]       // all_to_all
    ```
  }];
}

def LocalizePass : OrderedPass<"dist-localize"> {
  let summary = "Rewrites the program on whole tensors into one rank's";
  let description = [{
    Types lose their shardings and keep one rank's shape; what an argument or
    result is a piece of stays as its `dist.layout`. Reshards become collectives,
    ops their local forms (`ShardingRule`'s `localize`): an op that has none is
    refused. `nn.state`s get their global types back. Micro-batches are an axis
    like any other here: `local-split-tasks` makes a loop of it.
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def KeepDealtPass : OrderedPass<"dist-keep-dealt"> {
  let summary = "Lets rows stay with the ranks of their groups between products";
  let description = [{
    Localisation sends the rows of each grouped product to the ranks that have
    their groups, and brings its results back. Between two of them stand ops that
    make of each row a row; they may as well work where the rows are. So a
    mixture of experts sends its rows once and gets them back once, forward and
    backward, and keeps no more of them than the ranks' room. Equal dealings and
    equal exchanges become one.

    ```mlir
    %a = dist.fetch_rows %dealt, %places over @mesh {ep} : …   // back
    %h = nn.relu %a : tensor<8x64xf32>
    %b = dist.fetch_rows %h, %rows over @mesh {ep} : …         // and there again
    // becomes
    %b = nn.relu %dealt : tensor<16x64xf32>
    ```
  }];
}

def RingAttentionPass : OrderedPass<"dist-ring-attention"> {
  let summary = "Makes attention turn by turn, of keys that go from rank to rank";
  let description = [{
    Where `dist-mark-rings` has marked attention, keys and values are not gathered:
    each rank begins with its own, and gets in each turn those that the rank before
    had, until it has had all (Liu et al., Ring Attention, arXiv:2310.01889). No rank
    ever has more than two parts of them. Its rows of each turn are combined by the
    log-sum-exps as `nn.attention` says. In the gradient keys and values go round
    again, and their gradients with them: each rank adds what its rows give, and the
    one that has the keys is the last. In each direction (n-1)/n of the keys and values
    pass each rank, as in a gather; what is gained is the memory of all of them, and
    that they come while what has come is computed with. Works on one rank's program,
    behind `dist-localize`.

    Rows of causal attention see the keys before them, and the last of n ranges of rows would see
    twice as many as all do on average. So of n ranks along the axis each has every n-th
    row (Brandon et al., Striped Attention, arXiv:2311.09431), and of whosever keys in
    each turn a triangle of scores. Followed from the rings through the program: inputs
    and outputs are `#dist.interleaved`, counters and tables that are the same on
    all ranks are put in stripes before a rank takes its own, and what is gathered for something else
    than a ring is put back in order. Where rows go through something that knows their places
    (an attention that is no ring, a state, a lookup of rows), all stay ranges, with a
    warning that names it. (Megatron-LM and Transformer Engine give each rank two ranges, one from either
    end: as even, but scores are rectangles of another form on each rank.)

    Of a mask a rank has its own rows, of all columns. Those of the keys that have come are
    its own part of the mask with its columns turned as far as the keys have gone. A mask
    of numbers gets levels (`nn.attention`), the largest number of each row in all
    columns, so that rows which it hides wholly are combined exactly as well.

    ```mlir
    func.func @main(%q: … {dist.layout = #dist.layout<@mesh [1, 2, 8 by {cp}, 4]>}, …
    %k = dist.all_gather %key over @mesh {cp} dim 2
    %v = dist.all_gather %value over @mesh {cp} dim 2
    %y, %l = nn.attention %q, %k, %v {causal, dist.ring, row_steps = {cp = 4}, …}
    // becomes, on two ranks
    func.func @main(%q: … {dist.layout = #dist.layout<@mesh [1, 2, 8 by {cp}, 4], interleaved = <2 [2] times 4 by 2>>}, …
    %y0, %l0 = nn.attention %q, %key, %value {causal, column_steps = {cp = 1}, row_steps = {cp = 1}, stride = 2, zero_masked_rows, …}
    %k1 = dist.permute %key over @mesh {cp} sources [1, 0]
    %v1 = dist.permute %value over @mesh {cp} sources [1, 0]
    %y1, %l1 = nn.attention %q, %k1, %v1 {causal, column_steps = {cp = 1}, row_steps = {cp = 1}, stride = 2, turn = 1 : i64, zero_masked_rows, …}
    %l = …                  // log(exp(%l0) + exp(%l1))
    %y = …                  // exp(%l0 - %l) · %y0 + exp(%l1 - %l) · %y1
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def CompressGradientsPass : OrderedPass<"dist-compress-gradients"> {
  let summary = "Sends terms of gradients between data-parallel ranks in 16 bits";
  let description = [{
    Where the module says `accel.gradient_wire`, sums over ranks that nothing reads but
    gradients get it as their type on the wire: all_reduces and reduce_scatters of f32
    or f64 from which additions, views, casts, padding and accumulators alone lead to
    an `nn.gradient`. Each rank's term is rounded to the type, and so is their sum:
    it is added up in f32, and rounded once (PyTorch with Gloo or NCCL rounds after each addition).

    The mean's division stands before the sum: the loss is the mean over the batch of all ranks,
    so its gradient begins with 1 over their number, and a rank's term is what PyTorch's hook has after
    `div_(world_size)`. PyTorch rounds before it divides: where fp16 is too small for its terms
    (above 65504) it need not be for these.

    Ranks along any axis but `tp` have samples or positions of their own: those of `cp` and `sp` are
    one group with those of `dp_replicate` and `dp_shard`. Terms along `tp` are of the same
    product: an all_reduce over both is made in two, that of `tp` unrounded; a
    reduce_scatter over both is left as it is. Where gradients are summed over ranks in each
    micro-batch (ZeRO-2 and 3), each of these sums is rounded; else there is one for a step,
    as in DDP with `no_sync`. Rows of tables that are gathered, and not
    summed, are sent as they are. Where no sum is found, a warning says so.
    Works on one rank's program, behind `dist-localize`.

    ```mlir
    %s = dist.all_reduce sum %dw over @mesh {dp_replicate} : tensor<4x4xf32>
    %g = nn.gradient %s of @w : tensor<4x4xf32>
    // becomes
    %s = dist.all_reduce sum %dw over @mesh {dp_replicate} wire bf16 : tensor<4x4xf32>
    %g = nn.gradient %s of @w : tensor<4x4xf32>
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def VerifyLocalPass : Pass<"local-verify", "::mlir::ModuleOp"> {
  let summary = "Checks what phase `local` guarantees";
  let description = [{
    No tensor type carries a sharding; no op of phase `dist` is left; only `nn`,
    `dist` and `func` ops stand in the module; nothing is reduced or gathered
    over micro-batches but by accumulators; all arguments and results of entries,
    and those of tasks that stand for inputs, outputs and states, have layouts,
    and every other argument of a task comes along one edge; each entry is run by
    a schedule.
  }];
}

#endif
