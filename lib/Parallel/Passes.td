// The passes of phase `dist`, and those of `decided` and `local`.

#ifndef ACCEL_PARALLEL_PASSES_TD
#define ACCEL_PARALLEL_PASSES_TD

include "lib/Parallel/OrderedPass.td"
include "lib/Parallel/SplitPasses.td"

def AnnotatePass : OrderedPass<"dist-annotate"> {
  let summary = "Declares the mesh and asks that the batch be split over it";
  let description = [{
    Makes a `dist.mesh @mesh` from `mesh`: axes and sizes under Accelerate's
    names, `dp` standing for `dp-axis`. Every `nn.input` is constrained to
    have its batch dimension (0, or as `batch-dim` says; `none` for an input
    without one) split over the data-parallel axes, major to minor; every
    `nn.state` that no constraint is on yet to be whole. A mesh that does not
    divide a batch dimension is refused. Over `cp` and `sp` the dimension along
    sequences is split, which is the first behind the batch as long as those that
    attend to each other (`nn.attention`); one that they do not divide stays whole,
    with a warning. Axes of size 1 split nothing and are
    left out of constraints. A batch dimension that is not the first is also left to
    the executable, in `accel.batch_dims`. With `micro-batches` above 1 the axis `mb` of that
    size comes first, and the batch is split over it before all others. A module
    that has a mesh already keeps it, and only an empty `mesh` is accepted.

    With `secondary`, groups of so many of the ranks that share states, next to each
    other, keep copies of the parameters (`dist-shard-states`): `dp_shard` becomes two
    axes, `dp_groups` of as many ranks as there are groups and, minor to it,
    `dp_shard` of those in one. Ranks are numbered as before; `cp` and `sp` are in a
    group. A size that does not divide the ranks is refused.

    ```mlir
    func.func @main(%x: tensor<8x64xf32> {nn.input = "x"}) …
    // becomes, with mesh=dp=4
    dist.mesh @mesh ["dp_replicate" = 4]
    func.func @main(%x: tensor<8x64xf32> {nn.input = "x"}) … {
      %0 = dist.constraint %x to <@mesh, [{dp_replicate}, {?} ]> : tensor<8x64xf32>
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"", "Axes and sizes, as dp=4,tp=2; empty: one rank">,
    Option<"dpAxis", "dp-axis", "std::string", "\"dp_replicate\"", "The axis that dp stands for">,
    Option<"microBatches", "micro-batches", "int64_t", "1", "Into how many micro-batches the batch of a step is split">,
    Option<"secondary", "secondary", "int64_t", "0", "How many ranks keep a second copy of the parameters between them; up to 1: none">,
    ListOption<"batchDims", "batch-dim", "std::string", "INPUT=K: the batch dimension of an input; INPUT=none: it has none">,
  ];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def LeadWithBatchPass : OrderedPass<"dist-lead-with-batch"> {
  let summary = "Puts the batch first in dimensions that it shares with others";
  let description = [{
    Rows [s, b] merged into one dimension are counted position by position, and
    what a rank has of the batch is no range of them: neither shardings nor tasks
    can say which rows it has. In the order [b, s] it is. So a value whose batch
    does not come first in its dimension is computed in that order; ops that run
    along the dimension, or sum over it, do not notice. Where the dimension is
    taken apart again the order of the program comes back, and transposes cancel
    (torch's nn.MultiheadAttention). Several batches in one dimension
    (a `concat` of chosen and rejected answers) are such rows, too.

    Where `cp` or `sp` split sequences, rows [b, s] are next put in the order of
    ranks, (batch parts, sequence parts, rest), for the same reason. Gradients
    come back to the program's order, which states are kept and updated in.

    Comes after `dist-annotate`, whose constraints on inputs say where the batch
    is. Without one that splits, nothing changes. Refuses nothing: what needs the
    program's order gets it, and is split, or not, as before.

    ```mlir
    %x = dist.constraint %arg to <@mesh, [{mb}, {}, {} ]> : tensor<4x6x8xf32>
    %0 = nn.transpose %x [1, 0, 2] : (tensor<4x6x8xf32>) -> tensor<6x4x8xf32>
    %1 = nn.reshape %0 : (tensor<6x4x8xf32>) -> tensor<24x8xf32>
    %2 = nn.matmul %1, %w : (tensor<24x8xf32>, tensor<8x8xf32>) -> tensor<24x8xf32>
    %3 = nn.reshape %2 : (tensor<24x8xf32>) -> tensor<6x4x8xf32>
    // becomes
    %1 = nn.reshape %x : (tensor<4x6x8xf32>) -> tensor<24x8xf32>
    %2 = nn.matmul %1, %w : (tensor<24x8xf32>, tensor<8x8xf32>) -> tensor<24x8xf32>
    %3 = nn.reshape %2 : (tensor<24x8xf32>) -> tensor<4x6x8xf32>
    %4 = nn.transpose %3 [1, 0, 2] : (tensor<4x6x8xf32>) -> tensor<6x4x8xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def PadDimsPass : OrderedPass<"dist-pad-dims"> {
  let summary = "Pads vocabularies that tensor parallelism does not divide";
  let description = [{
    What indices point into or losses are over (a vocabulary of 50257 words), and
    `dist-split-weights` would split if `tp` divided it, gets more elements, up to
    a multiple of `tp` and of the ranks that share states, in all values that are
    tied to it, states among them; `logical` of a state remembers its shape, and files hold no
    padding. (Heads and hidden widths are left as they are.) What combines
    elements along the dimension (sums, products, largest elements; softmax and
    losses, which become these) reads, behind its end, the number that changes
    nothing; indices are checked against the size that it had; new values of
    states are zero there; outputs are cut. Cuts and paddings of other dimensions
    leave it as it is. Where an op that has the dimension is
    none of those, or where more than a fifth would be padding, it stays whole.

    Comes after what users place by name. `dist-verify-equivalence` proves the padded
    program from the one before, and each rank's from the padded one.

    ```mlir
    nn.state @w : tensor<5x8xf32>
    %h = nn.matmul %dlogits, %w        // tensor<4x5xf32>, tensor<5x8xf32>
    // becomes, for two ranks
    nn.state @w : tensor<6x8xf32> logical [5, 8]
    %i = nn.iota {dim = 1 : i64} : tensor<4x6xi64>
    %isLogit = nn.compare lt %i, %five
    %0 = nn.select %isLogit, %dlogits, %zeros
    %h = nn.matmul %0, %w
    ```
  }];
  let options = [
    Option<"vocabulary", "vocabulary", "bool", "true", "Whether vocabularies are split">,
    Option<"stage", "stage", "int64_t", "0", "The ZeRO stage: who shares states splits them, too, from 1 on">,
  ];
  let dependentDialects = ["::accel::dist::DistDialect", "::accel::nn::NNDialect"];
}

def PlaceNamedPass : OrderedPass<"dist-place-named"> {
  let summary = "Splits states and inputs as a user says by name";
  let description = [{
    Each of `shard` is `PATTERN=DIM:AXIS`, with commas between several `DIM:AXIS`: a glob
    over the names that states and inputs have in the user's program, aliases among them.
    Of what matches, that dimension is split over that axis, behind axes that split it
    already; of a parameter the moments, too. Over `dp_shard`, and in the stages in which
    they share states over `cp` and `sp`, it is the dimension that `dist-shard-states`
    takes.

    Comes after `dist-annotate`, whose constraints it changes, in all entries alike;
    what comes later keeps it. Refused are a pattern that matches nothing, an axis that
    the mesh has not, or that splits another dimension, a dimension that there is not, and
    one that the ranks do not divide.

    ```mlir
    %w = dist.constraint %arg1 to <@mesh, [{}, {} ]> : tensor<8x32xf32>
    // becomes, with shard=w=1:tp
    %w = dist.constraint %arg1 to <@mesh, [{}, {tp} ]> : tensor<8x32xf32>
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string", "PATTERN=DIM:AXIS: what is split, in which dimension, over which axis">,
    Option<"stage", "stage", "int64_t", "0", "The ZeRO stage: over dp_shard states are split from 1 on">,
  ];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def PlaceExpertsPass : OrderedPass<"dist-place-experts"> {
  let summary = "Gives each rank along 'ep' some of the experts";
  let description = [{
    Expert parallelism (Lepikhin et al., GShard, arXiv:2006.16668): the matrices of
    groups, which `nn.grouped_matmul` reads, or which a product has for each expert's
    places (a capacity), are split over `ep` by group, with their moments. Ranks along
    `ep` have different samples as well: everything else they have whole, as
    data-parallel ranks do, and sum its gradients over `ep` too. A warning, with `strict` an error, names experts that the ranks do
    not divide, and says so where there are none.

    ```mlir
    %1 = dist.constraint %w to #dist.sharding<@mesh, [{}, {}, {} ]> : tensor<8x64x32xf32>
    %y = nn.grouped_matmul %x, %1, %expert : …
    // becomes, of a mesh with ep = 2
    %1 = dist.constraint %w to #dist.sharding<@mesh, [{ep}, {}, {} ]> : tensor<8x64x32xf32>
    ```
  }];
  let options = [Option<"strict", "strict", "bool", "false", "Experts that are not split are an error">];
}

def ShareKeyHeadsPass : OrderedPass<"dist-share-key-heads"> {
  let summary = "Arranges tensor-parallel ranks in groups that share a key head";
  let description = [{
    Attention may have fewer key heads than query heads, and fewer than `tp` has
    ranks. Then as many ranks as come to a key head share it: the axis `tp` becomes
    two, `tp_kv` of as many ranks as there are key heads and, minor to it, `tp` of
    those that share one. `dist-split-weights` splits what makes keys and values over
    `tp_kv` alone, all else over both; the gradients of keys and values are terms,
    which the ranks of `tp` add up. One key head needs no second axis. Nothing
    changes where key heads and ranks do not divide each other, or ranks the query
    heads. Comes after `dist-annotate`.

    ```mlir
    dist.mesh @mesh ["dp_replicate" = 2, "tp" = 8]
    … nn.attention %q, %k, %v … (tensor<4x16x64x32xf32>, tensor<4x2x64x32xf32>, tensor<4x2x64x32xf32>)
    // becomes
    dist.mesh @mesh ["dp_replicate" = 2, "tp_kv" = 2, "tp" = 4]
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def SplitWeightsPass : OrderedPass<"dist-split-weights"> {
  let summary = "Splits weights over the axis of tensor parallelism";
  let description = [{
    Dimensions that ops tie together (one factor of a sharding rule stands first in
    them) are a class, and are split together or not at all: the hidden width of an
    MLP, from the columns of one weight to the rows of the next; the heads of an
    attention; with them their gradients and moments. Of the classes in which states
    have a dimension, those are split over `tp` that save most work for each byte
    that ranks exchange: sums over the class, and tensors that an op wants whole.
    Classes that meet in an op exclude each other. So are found, of any model, what
    Megatron-LM calls column- and row-parallel weights (Shoeybi et al., 2019, section
    3), without names and patterns.

    What makes the keys and values of heads that ranks share (`dist-share-key-heads`)
    is split over `tp_kv`, or whole; all else over `tp_kv` and `tp`.

    A vocabulary is such a class: the rows of the tables that are looked up, the
    logits, and the classes of their loss. It stays whole without `vocabulary`.

    Comes after `dist-annotate`, whose constraints on states it changes, in all
    entries alike; what a user has placed (`dist-place-named`) stays there. A class
    that would be split, but that `tp` does not divide, is remarked upon; with
    `strict` it is an error.

    ```mlir
    %up = dist.constraint %arg1 to <@mesh, [{}, {} ]> : tensor<8x32xf32>
    %down = dist.constraint %arg2 to <@mesh, [{}, {} ]> : tensor<32x8xf32>
    %h = nn.matmul %x, %up
    %y = nn.matmul %h, %down
    // becomes
    %up = dist.constraint %arg1 to <@mesh, [{}, {tp} ]> : tensor<8x32xf32>
    %down = dist.constraint %arg2 to <@mesh, [{tp}, {} ]> : tensor<32x8xf32>
    ```
  }];
  let options = [
    Option<"vocabulary", "vocabulary", "bool", "true", "Split what indices point into and losses are over, too">,
    Option<"strict", "strict", "bool", "false", "A size that tp does not divide is an error">,
  ];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def InterleavePartsPass : OrderedPass<"dist-interleave-parts"> {
  let summary = "Gives ranks their share of each part of a fused weight";
  let description = [{
    Where one weight makes queries, keys and values, or gate and up projection, its
    columns are parts side by side, which the program cuts apart. An even range of
    all columns is no range of any part. So a dimension that is split over `tp`, and
    of which parts are cut or joined (`nn.slice`, `nn.concat`), comes in another
    order: first the first rank's share of each part, then the second's
    (`#dist.interleaved`). Products, sums and updates along it do not notice; what
    cuts it takes the ranks apart as a dimension of their own. One product stays one
    product. Parts may differ in size; `tp` divides each. Arguments and results
    that have the dimension say so, so that files keep the order of the program.

    Dimensions in whose order something else counts (a constant along them, a reshape
    that takes them apart), and states that their sharers have to pad, stay as they are,
    and are gathered where they are cut. Comes after `dist-split-weights`.

    ```mlir
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x24xf32> {nn.state = @w}) {
      %0 = dist.constraint %w to <@mesh, [{}, {tp} ]>
      %1 = nn.matmul %x, %0
      %q = nn.slice %1 starts [0, 0] sizes [4, 16] steps [1, 1]
    // becomes, over two ranks
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x24xf32> {dist.interleaved = #dist.interleaved<1 [16, 8] by 2>, nn.state = @w}) {
      %0 = dist.constraint %w to <@mesh, [{}, {tp} ]>
      %1 = nn.matmul %x, %0
      %2 = nn.reshape %1 : (tensor<4x24xf32>) -> tensor<4x2x12xf32>
      %3 = nn.slice %2 starts [0, 0, 0] sizes [4, 2, 8] steps [1, 1, 1]
      %q = nn.reshape %3 : (tensor<4x2x8xf32>) -> tensor<4x16xf32>
    ```
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "0", "The ZeRO stage: who shares states splits them, too, from 1 on">,
  ];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def ExchangeHeadsPass : OrderedPass<"dist-exchange-heads"> {
  let summary = "Gives attention whole sequences of some heads, for some positions of all";
  let description = [{
    Ranks of the axis `sp` have positions of all heads. Attention needs all positions
    of a head, but of a head alone: so in front of it queries, keys and values are
    exchanged for heads of all positions, and behind it results for positions
    (`all_to_all`), in the gradient likewise (Jacobs et al., DeepSpeed Ulysses, 2023).
    Heads that the ranks do not divide, key heads above all, are not exchanged, with
    a remark: keys and values are gathered then, as those of `cp` are. So are keys of
    a number that the ranks of `sp` and `cp` together do not divide; of `sp` alone
    heads are exchanged all the same, and the gradients of such keys are whole, as
    the keys are. Comes after `dist-split-weights`, which splits heads before.

    ```mlir
    %y, %l = nn.attention %q, %k, %v {causal, scale = 0.125}
    // becomes, where positions are split over sp
    %0 = dist.constraint %q to <@mesh, [{}, {sp}, {}, {} ]> alone : tensor<2x8x64x16xf32>
    …
    %1, %l = nn.attention %0, %k0, %v0 {causal, scale = 0.125}
    %y = dist.constraint %1 to <@mesh, [{}, {}, {sp}, {} ]> alone : tensor<2x8x64x16xf32>
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def MarkRingsPass : OrderedPass<"dist-mark-rings"> {
  let summary = "Marks the attention whose keys go from rank to rank";
  let description = [{
    Attention of which ranks have rows, and whose keys and values are gathered over one
    axis, gets `dist.ring`: `dist-ring-attention` makes it turn by turn. It stays as it
    is, with a warning, where its gradients are not scattered at once, where it is
    causal and has a mask of numbers, where its mask gets a gradient, which is made of
    all keys, and where the axis does not split its rows: each rank adds its terms in an
    order of its own, which copies may not be. Keys that are terms of sums over other axes are summed before they
    are gathered, by a reshard of their own: as one the sums would be scattered along
    the keys. Comes after `dist-materialize`, which says what is gathered.

    ```mlir
    %k = dist.reshard %key : [{}, {}, {cp}, {} ] -> [{}, {}, {}, {} ]
    %y, %l = nn.attention %q, %k, %v {causal, scale = 0.125}
    // becomes
    %k = dist.reshard %key : [{}, {}, {cp}, {} ] -> [{}, {}, {}, {} ]
    %y, %l = nn.attention %q, %k, %v {causal, dist.ring, scale = 0.125}
    ```
  }];
  let options = [Option<"enabled", "enabled", "bool", "false", "Do it; else nothing">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def JoinTermsPass : OrderedPass<"dist-join-terms"> {
  let summary = "Adds terms of sums over ranks up before anything else";
  let description = [{
    In a chain of additions those values come first that are terms over `tp`: what
    they come to is summed over ranks once, and not each of them. A gradient that a
    residual connection and several products add to is such a chain. Comes after
    `dist-split-weights`, which says whose results are terms.

    ```mlir
    %0 = nn.add %residual, %v
    %1 = nn.add %0, %k
    // becomes, where %v and %k are products with weights that are split over tp
    %0 = nn.add %v, %k
    %1 = nn.add %residual, %0
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def ScatterSumsPass : OrderedPass<"dist-scatter-sums"> {
  let summary = "Leaves sums over tensor-parallel ranks in pieces of rows";
  let description = [{
    A sum over `tp` that an op needs is wished to be rows of it on each rank: of the
    batch, or of the sequence where the batch is cut as far as it goes. What works on
    each row by itself (residual connections, norms, dropout) follows by propagation,
    and is done once instead of on all ranks; a product with a split weight gathers
    the rows again. A sum is then a reduce-scatter and a gather, which move as many
    bytes as an all-reduce (Korthikanti et al., Reducing Activation Recomputation in
    Large Transformer Models, 2022, section 4.2). Numbers, and what has no dimension
    that can be cut, stay as they are. Comes after `dist-join-terms`; refuses to
    be enabled on a mesh without `tp`.

    ```mlir
    %y = nn.matmul %h, %w : (tensor<4x6x32xf32>, tensor<32x8xf32>) -> tensor<4x6x8xf32>
    %z = nn.add %x, %y
    // becomes, where %h and %w are split over tp
    %y = nn.matmul %h, %w : (tensor<4x6x32xf32>, tensor<32x8xf32>) -> tensor<4x6x8xf32>
    %0 = dist.constraint %y to <@mesh, [{tp, ?}, {?}, {?} ]>
    %z = nn.add %x, %0
    ```
  }];
  let options = [Option<"enabled", "enabled", "bool", "false", "Do it; else nothing">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def PadStatesPass : OrderedPass<"dist-pad-states"> {
  let summary = "Pads states that the ranks which share them cannot split evenly";
  let description = [{
    A trained parameter, and its moments, of which the ranks that share them (along
    `dp_shard`, `cp` and `sp`) divide no dimension gets zeros at the end of dimension 0, up to a multiple. Forward and
    backward read it without them; its gradient is padded with zeros, which
    elementwise updates and sums of squares keep neutral. What else an update adds
    up, or makes of whole tensors (Muon's products), is cut to what there was
    before, and what it makes is padded with zeros. States of another shape than
    their parameter's (factors of rows) are not padded, nor those of which each rank
    would hold as many rows as there are (one row of an odd length): they stay whole.
    `logical` remembers the shape: what files hold knows no padding. Comes between `dist-annotate` and
    `dist-shard-states`.

    ```mlir
    nn.state @b : tensor<5xf32>
    %y = nn.add %x, %b
    %g = nn.gradient %db of @b
    %b1 = nn.sub %b, %g
    // becomes, for two ranks
    nn.state @b : tensor<6xf32> {logical = array<i64: 5>}
    %0 = nn.slice %b starts [0] sizes [5] steps [1]
    %y = nn.add %x, %0
    %1 = nn.pad %db, %zero low [0] high [1]
    %g = nn.gradient %1 of @b
    %b1 = nn.sub %b, %g
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def ShardStatesPass : OrderedPass<"dist-shard-states"> {
  let summary = "Places the states of a step as a ZeRO stage says";
  let description = [{
    Over the axes `dp_shard`, `cp` and `sp` together, along the first dimension of
    each tensor that their ranks divide: moments, and the gradients that the update
    reads (`stage` 1 and 2), parameters too (3). Ranks of `cp` and `sp` have other
    positions, but the same states, and a term of each gradient, as those of
    `dp_shard` have other rows; those of `dp_replicate` keep whole states. Where the
    ranks together divide no dimension (`tp` has split it), each axis splits what it
    can. On a mesh with `dp_groups` parameters come in two steps: over this axis first,
    which makes a copy for each group (hpZ: Wang et al., ZeRO++, 2023, section 3.2), and
    over the others from that. What stage 1 and 2 differ in is the order of reductions:
    `dist-order-reductions`. Forward and backward read parameters whole, but for what
    is made of a parameter element by element (a product with a scale, bounds) and rounded
    to fewer bits: it is made of pieces, and the codes are read whole, so that few bits are
    gathered; and what is reduced from a parameter beside (its largest magnitude, of which the
    scale may be made) is the largest of the pieces' own. Comes
    after `dist-annotate`, whose constraints on states it changes; leaves
    `accel.zero_stage` on the module. Rajbhandari et
    al., ZeRO, SC 2020, section 5.

    ```mlir
    %w = dist.constraint %arg1 to <@mesh, [{}, {} ]>
    %y = nn.matmul %x, %w
    …
    %new = nn.sub %w, %step
    // becomes, with stage=3
    %0 = dist.constraint %arg1 to <@mesh, [{dp_shard}, {} ]>
    %w = dist.constraint %0 to <@mesh, [{}, {} ]>
    %y = nn.matmul %x, %w
    …
    %new = nn.sub %0, %step
    ```
  }];
  let options = [Option<"stage", "stage", "int64_t", "0", "The ZeRO stage: 0 to 3">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def AssignOwnersPass : OrderedPass<"dist-assign-owners"> {
  let summary = "Gives each rank the iterations of whole matrices of its own";
  let description = [{
    Newton and Schulz's iterations (`nn.newton_schulz`) need whole matrices. Ranks
    that have pieces of them, or all of each, would all do the same: with ZeRO those
    that share states, with tensor parallelism those of `tp`. So, of N such ranks, N
    matrices at a time of one type are stacked, and the stack is split by matrix: a
    rank gets one from all others' pieces (`all_to_all`), does an N-th of the work, and
    gives back the result: pieces, or, where parameters are whole, all of it. Of a type the last ones may be
    fewer than N: the stack is filled with zeros, and one that would be alone is left
    to all ranks, which takes as long. A rank has one whole matrix of a stack, and
    pieces of N.

    Matrices are taken in the order of their updates, of a pipeline's stage each by
    itself. What is made of those before the last waits for the stack. Matrices that
    come stacked already (experts) are split by their batch dimensions if ranks
    divide them, and stay as they are. Comes after `dist-shard-states`, before propagation.

    ```mlir
    %y = nn.newton_schulz %x steps 5 coefficients [a, b, c] : tensor<8x16xbf16>
    %y1 = nn.newton_schulz %x1 steps 5 coefficients [a, b, c] : tensor<8x16xbf16>
    // becomes, for two ranks
    %0 = nn.reshape %x : (tensor<8x16xbf16>) -> tensor<1x8x16xbf16>
    %1 = nn.reshape %x1 : (tensor<8x16xbf16>) -> tensor<1x8x16xbf16>
    %2 = nn.concat %0, %1 dim 0 : …
    %3 = dist.constraint %2 to <@mesh, [{dp_shard}, {}, {} ]> : tensor<2x8x16xbf16>
    %4 = nn.newton_schulz %3 steps 5 coefficients [a, b, c] : tensor<2x8x16xbf16>
    %5 = dist.constraint %4 to <@mesh, [{dp_shard}, {}, {} ]> : tensor<2x8x16xbf16>
    %6 = nn.slice %5 starts [0, 0, 0] sizes [1, 8, 16] steps [1, 1, 1]
    %y = nn.reshape %6 : (tensor<1x8x16xbf16>) -> tensor<8x16xbf16>
    %7 = nn.slice %5 starts [1, 0, 0] sizes [1, 8, 16] steps [1, 1, 1]
    %y1 = nn.reshape %7 : (tensor<1x8x16xbf16>) -> tensor<8x16xbf16>
    ```
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "0", "The ZeRO stage: who shares states owns matrices from 1 on">,
  ];
  let dependentDialects = ["::accel::dist::DistDialect", "::accel::nn::NNDialect"];
}

def SliceGradientsPass : OrderedPass<"dist-slice-gradients"> {
  let summary = "Cuts what is added to gradients, so that sums are in pieces";
  let description = [{
    A weight with a penalty has a term in its gradient that every rank has whole.
    `dist-materialize` adds it to the finished sum over ranks, of which the update
    reads pieces. Here the cut goes through the addition, and whatever else stands
    between: the sum becomes a scatter, and of the penalty each rank computes its
    piece, from its piece of the weight. What pads a sum, or widens it, is done to
    its terms, and in front of an `nn.cut`: what another chunk has summed comes in
    pieces. A cut stops where an op needs its operands whole; nothing is computed
    twice but elementwise, in pieces. Comes before `dist-order-reductions`.

    ```mlir
    %0 = dist.reshard %dw : [{} ] partial = {dp_shard} -> [{} ]
    %1 = nn.mul %w, %c : tensor<8xf32, [{} ]>
    %2 = nn.add %0, %1 : tensor<8xf32, [{} ]>
    %3 = dist.reshard %2 : [{} ] -> [{dp_shard} ]
    // becomes
    %0 = dist.reshard %dw : [{} ] partial = {dp_shard} -> [{dp_shard} ]
    %w1 = dist.reshard %w : [{} ] -> [{dp_shard} ]
    %1 = nn.mul %w1, %c : tensor<8xf32, [{dp_shard} ]>
    %2 = nn.add %0, %1 : tensor<8xf32, [{dp_shard} ]>
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def OrderReductionsPass : OrderedPass<"dist-order-reductions"> {
  let summary = "Sums gradients over micro-batches or over ranks first";
  let description = [{
    A gradient is partial over micro-batches and over ranks. ZeRO-1 sums the
    micro-batches of a rank up and scatters the sum over ranks once per step, which
    costs a whole accumulator; ZeRO-2 and 3 scatter each micro-batch's term
    (`dist-scatter-gradients` says where), and accumulate pieces.

    ```mlir
    %1 = dist.reshard %0 : [{} ] partial = {mb, dp_shard} -> [{dp_shard} ]
    // becomes, with stage=1
    %1 = dist.reshard %0 : [{} ] partial = {mb, dp_shard} -> [{} ] partial = {dp_shard}
    %2 = dist.reshard %1 : [{} ] partial = {dp_shard} -> [{dp_shard} ]
    // with stage=2 or 3
    %1 = dist.reshard %0 : [{} ] partial = {mb, dp_shard} -> [{dp_shard} ] partial = {mb}
    %2 = dist.reshard %1 : [{dp_shard} ] partial = {mb} -> [{dp_shard} ]
    ```
  }];
  let options = [Option<"stage", "stage", "int64_t", "0", "The ZeRO stage: 0 to 3">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def DeclareAccumulatorsPass : OrderedPass<"dist-declare-accumulators"> {
  let summary = "Gives what is summed over micro-batches a state to be summed in";
  let description = [{
    What is summed first, micro-batches or ranks, is final now, and with it what the
    accumulator is: a state with the sharding that the term has but for `mb`, still
    partial over ranks where they are summed up once per step. It is named after
    the gradient or output that the sum is; `count` is what each micro-batch needs
    the whole of. What is left of the reshard follows. Comes after
    `dist-order-reductions` and `dist-exchange-rows`.

    ```mlir
    %1 = dist.reshard %0 : [{} ] partial = {mb, dp_shard} -> [{dp_shard} ]
    // becomes
    nn.state accumulator @"accumulator/w" : [{} ] partial = {dp_shard} = 0
    %a = dist.accumulate sum %0 in @"accumulator/w" : [{} ] partial = {mb, dp_shard} -> [{} ] partial = {dp_shard}
    %1 = dist.reshard %a : [{} ] partial = {dp_shard} -> [{dp_shard} ]
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect", "::accel::nn::NNDialect"];
}

def ExchangeRowsPass : OrderedPass<"dist-exchange-rows"> {
  let summary = "Makes gradients of embedding tables in pieces, of the rows that are added";
  let description = [{
    The gradient of a table that indices pick from is zeros but for the rows that
    were picked. Where the sum over ranks splits a gradient, it need not be made
    whole on each rank and scattered: every rank gets all indices, and of all rows
    the columns of its piece, and adds these to zeros of its own. A piece along the
    dimension that indices point into comes of one along another, by an
    `all_to_all`. Each is done where the planner's prices (`ReshardPlanner.h`) say
    that it is the cheaper; a table with as many rows as tokens is scattered. What
    else the gradient is a sum of is summed over ranks as before. Comes between
    `dist-order-reductions` and `dist-scatter-gradients`.

    ```mlir
    %0 = nn.scatter_add %zero, %ids, %dx dim 0 : (tensor<99x8xf32, [{}, {} ]>, tensor<6xi64, [{dp_shard} ]>, tensor<6x8xf32, [{dp_shard}, {} ]>) -> tensor<99x8xf32, [{}, {} ] partial = {dp_shard}>
    %1 = nn.add %dw, %0
    %2 = dist.reshard %1 : [{}, {} ] partial = {dp_shard} -> [{}, {dp_shard} ]
    // becomes
    %0 = dist.reshard %dw : [{}, {} ] partial = {dp_shard} -> [{}, {dp_shard} ]
    %i = dist.reshard %ids : [{dp_shard} ] -> [{} ]
    %x = dist.reshard %dx : [{dp_shard}, {} ] -> [{}, {dp_shard} ]
    %1 = nn.scatter_add %zero, %i, %x dim 0 : … -> tensor<99x8xf32, [{}, {dp_shard} ]>
    %2 = nn.add %0, %1
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def PropagatePass : OrderedPass<"dist-propagate"> {
  let summary = "Spreads shardings from constraints over all values";
  let description = [{
    Fills the side table that `dist-materialize` reads (the analysis
    `Propagation`), and changes nothing. A worklist runs to a fixpoint: every
    op's rule translates the shardings of its operands and results into axes of
    its factors and back. Axes are only ever added to a dimension, at its minor
    end. What comes first stays: closed constraints before wishes (constraints whose
    lists are all open), what an op keeps apart before what it adds up. Where values
    disagree on a factor, one that a constraint stands on wins, then what is no
    wish, then the larger tensor. Constants beside other operands have no say, nor
    has what is made of constants and places element by element (a causal mask): each
    reader makes its own.

    `print-origins` remarks on every value how it is sharded, and through which
    ops each axis came.
  }];
  let options = [Option<"printOrigins", "print-origins", "bool", "false",
                        "Remark on every value's sharding and where it came from">];
}

def MaterializePass : OrderedPass<"dist-materialize"> {
  let summary = "Writes shardings into types, and reshards where they differ";
  let description = [{
    Follows the propagated table: every op gets axes for its factors, results the
    types that follow, operands that are placed otherwise a `dist.reshard` right
    before the op (one per value and target type). A factor that is reduced over
    makes the results partial. Partial sums pass through ops that are linear in
    them, and are reduced in front of all others and of returns; several that an op
    adds up are added before. What has been moved already is not moved again as a
    view of itself. What is made of constants and places alone is made again as it is
    wanted. Integers that are made of inputs alone, element by element, and needed of
    all micro-batches at once, as places counted in the order in which a mask chooses
    them, are made of inputs that each of them then holds whole. Constraints become reshards or nothing. Types of `nn.state`s follow those of the
    arguments.

    Refuses ops without a sharding rule and functions of several blocks; with
    `strict` an axis that splits nothing, of which a warning is given else.
  }];
  let options = [Option<"strict", "strict", "bool", "false", "An axis that splits nothing is an error">];
  let dependentDialects = ["::accel::dist::DistDialect"];
}

def VerifyPass : Pass<"dist-verify", "::mlir::ModuleOp"> {
  let summary = "Checks what phase `dist` guarantees";
  let description = [{
    Every tensor type carries a sharding that its mesh can do; the types of every
    op agree with its rule, factor by factor; results are partial exactly where
    the rule makes them so, and no partial value reaches an op that is not linear
    in it, nor a return. Only `nn`, `dist` and `func` ops stand in the module.
  }];
}

def RecordOriginsPass : OrderedPass<"dist-record-origins"> {
  let summary = "Writes down which pass asked for the constraints that are there";
  let description = [{
    Of each axis by which a constraint splits a state or an input, `by` is its origin,
    unless it has one: run behind every pass that places something, it tells them
    apart. The table is the module's `dist.origins`. Only `--explain` runs it.

    ```mlir
    module {
    %w = dist.constraint %arg1 to <@mesh, [{tp}, {} ]> : tensor<8x4xf32>
    // becomes, with by=dist-split-weights
    module attributes {dist.origins = [{axis = "tp", by = "dist-split-weights", dim = 0, kind = "state", name = "w", …} ]} {
    ```
  }];
  let options = [Option<"by", "by", "std::string", "\"\"", "The pass that came before, or what it obeyed">];
}

def ExplainShardingsPass : OrderedPass<"dist-explain-shardings"> {
  let summary = "Follows axes of inputs and outputs back to constraints";
  let description = [{
    Adds to `dist.origins` the axes of states, inputs and outputs of entries that no
    constraint put there: the state or input from which propagation brought them, and the
    last op on the way. Comes between `dist-propagate` and `dist-materialize`.

    ```mlir
    return %y : tensor<8x4xf32>   // output "y", split as input "x" is
    // adds
    {axis = "dp_replicate", by = "input 'x', through 3 ops, the nearest nn.matmul 'fc'", dim = 0, kind = "output", name = "y", …}
    ```
  }];
}

#endif
