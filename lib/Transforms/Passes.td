// The passes of phase 1 that work on nn.

#ifndef ACCEL_TRANSFORMS_PASSES_TD
#define ACCEL_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldEmptyPass : Pass<"nn-fold-empty", "::mlir::func::FuncOp"> {
  let summary = "Puts what is known in place of what reads tensors without elements";
  let description = [{
    A tensor without elements is a constant. A sum over none is 0, a product of
    matrices with an inner dimension of 0 likewise, a largest or smallest of none
    is an infinity, padding around nothing is its value, and what adds nothing to
    a tensor is that tensor. What is not known without looking (an attention
    without keys) stays. Runs first in phase `nn`, and again before
    differentiation, for programs that are given as text of that phase: no pass
    behind it has to split or follow what is not there.

    ```mlir
    %e = nn.slice %x starts [0, 1] sizes [4, 0] steps [1, 1] : (tensor<4x3xf32>) -> tensor<4x0xf32>
    %s = nn.reduce sum %e dims [1] : (tensor<4x0xf32>) -> tensor<4xf32>
    // becomes
    %s = nn.constant dense<0.0> : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def NarrowConstantsPass
    : Pass<"nn-narrow-constants", "::mlir::func::FuncOp"> {
  let summary = "Stores constants that repeat themselves once";
  let description = [{
    A constant that is the same for every index of a dimension becomes one of
    size 1 there and a broadcast: a mask repeated over the batch, a table of
    positions. Import evaluates such repetition as it evaluates everything that
    is known; this takes it out of the program again, so that neither the file
    holds the copies nor sharding has to cut them. Constants of one value
    throughout stay as they are (they are stored as one number).

    ```mlir
    %m = nn.constant dense<[[1, 2], [1, 2]]> : tensor<2x2xi64>
    // becomes
    %n = nn.constant dense<[[1, 2]]> : tensor<1x2xi64>
    %m = nn.broadcast %n : (tensor<1x2xi64>) -> tensor<2x2xi64>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def RecognizeLayerNormPass
    : Pass<"nn-recognize-layer-norm", "::mlir::func::FuncOp"> {
  let summary = "Puts layer normalisations that exporters took apart together";
  let description = [{
    Finds (x - mean) / sqrt(mean of squares + epsilon) · scale + bias with means
    over the last dimensions, in the forms exporters write: the square as a
    power or a product; the quotient as a division by the root, or a product
    with its reciprocal; the bias absent. Runs after import, before anything is
    fused. A scale is required: without one, or where a mean is taken over other
    dimensions than the scale has, the ops stay.

    ```mlir
    %s = nn.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    %k = nn.reshape %s : (tensor<4xf32>) -> tensor<4x1xf32>
    %m = nn.mul %k, %eighth : tensor<4x1xf32>
    …
    %y = nn.add %scaled, %wide_bias : tensor<4x8xf32>
    // becomes
    %y = nn.layer_norm %x, %scale, %bias dim 1 epsilon 1.0e-05 : …
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def RecognizeGeluPass : Pass<"nn-recognize-gelu", "::mlir::func::FuncOp"> {
  let summary = "Puts GELUs that exporters took apart together";
  let description = [{
    Finds x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), the cube as a power or as
    products, or x factored out of the sum, and x/2 (1 + erf(x/√2)), the factors
    in any order. Constants must agree with the formula's to the precision of
    the element type (1e-6 relative for f32 and f64); else the ops stay.

    ```mlir
    %e = nn.erf %scaled : tensor<8xf32>
    %p = nn.add %e, %one : tensor<8xf32>
    %h = nn.mul %x, %p : tensor<8xf32>
    %y = nn.mul %h, %half : tensor<8xf32>
    // becomes
    %y = nn.gelu erf %x : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def RecognizeLog1pPass : Pass<"nn-recognize-log1p", "::mlir::func::FuncOp"> {
  let summary = "Puts logarithms of sums and sigmoids into forms that keep their value";
  let description = [{
    Exporters write log1p(x) as log(1 + x), which is 0 for small x; logsigmoid(x)
    as log(sigmoid(x)), which is -inf for x < -104 in f32; logaddexp(x, y) as
    log(exp(x) + exp(y)), which is infinite for x > 89. They become `nn.log1p`,
    min(x, 0) - log1p(exp(-|x|)) and max(x, y) + log1p(exp(-|x - y|)): the same
    functions, as PyTorch computes them. Whether the user wrote the function or
    its definition makes no difference. Runs after import, before other passes
    read logarithms.

    ```mlir
    %s = nn.sigmoid %x : tensor<8xf32>
    %y = nn.log %s : tensor<8xf32>
    // becomes
    %m = nn.min %x, %zero : tensor<8xf32>
    %a = nn.abs %x : tensor<8xf32>
    %n = nn.neg %a : tensor<8xf32>
    %e = nn.exp %n : tensor<8xf32>
    %t = nn.log1p %e : tensor<8xf32>
    %y = nn.sub %m, %t : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def GroupProductsPass : Pass<"nn-group-products", "::mlir::func::FuncOp"> {
  let summary = "Makes one grouped product of products with matrices picked by index";
  let description = [{
    A mixture of experts reaches ONNX as a copy of its expert's matrix for each
    row (of each token and choice), and a batch of products of one row each. The
    copies are as many times the weights as there are rows; their gradient is as
    large. One `nn.grouped_matmul` of the rows has neither. The index may come
    from anywhere: one that counts from the end counts from the begin after it,
    and one outside the matrices stops the run as it did.

    ```mlir
    %w = nn.gather_nd %experts, %index : (tensor<4x32x16xf32>, tensor<8x1xi64>) -> tensor<8x32x16xf32>
    %y = nn.matmul %w, %x : (tensor<8x32x16xf32>, tensor<8x16x1xf32>) -> tensor<8x32x1xf32>
    // becomes
    %y = nn.grouped_matmul %rows, %experts, %group {transpose_rhs}
        : (tensor<8x16xf32>, tensor<4x32x16xf32>, tensor<8xi64>) -> tensor<8x32xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def StackExpertsPass : Pass<"nn-stack-experts", "::mlir::ModuleOp"> {
  let summary = "Makes one computation on dealt rows of experts that are parameters each";
  let description = [{
    A model with a module for each expert computes them one after another, and
    adds up what each gives, times a weight of its own for each row. Terms of a
    sum that are computed alike, but for their parameters and for the number by
    which their weights know them, become one: the parameters are stacked
    (`nn.state` with members), and each row is multiplied by the matrices of the
    experts that it chose (`nn.grouped_matmul`), which is as other mixtures are
    after import. Biases are the products of rows of one with [1, width]
    matrices. Runs after recognition of activations, before differentiation.

    **Terms** are told by dataflow, not by names: the same ops with the same
    attributes on the same values, where each reads its own states, whole
    numbers, and columns of one table. A factor that has states is the expert:
    products with matrices, biases, slices and concatenations of columns, and
    elementwise ops, so that each row is computed by itself. The other factors
    are its weight, one number a row. The numbers must be those from 0 on, each
    once.

    **Who is computed.** The experts of a row are those of `nn.top_k` where each
    weight is the product of something with `index == number`, with the sum or
    maximum of that over the choices, or with a column of such a table (one_hot);
    or selected by it, else 0. Of all other experts the weight of that row is then
    0, and 0 times a finite number adds nothing; they are not computed, and where
    they would have been infinite the result is finite, as it is where the user
    gathers rows instead of masking them. Where nothing says which weights are 0
    (a soft mixture, a table that was scattered), every row has all experts.

    **Names.** A stack is called what its members' names begin and end with, and
    '*' between: so `--shard`, reports and IR know it. All else knows the members.

    Rows may be tokens, or a token's choices one after another, each of which has
    one expert: what every term then becomes alike (sums over a token's choices,
    other views) is done once, to the sum. Masks of those that chose the expert
    are gone from its rows, as all others are.

    **What stays**: terms whose parts somebody else reads, that draw random
    numbers, or that are added more than once. Where a mixture is found but its parameters cannot be one tensor,
    because some are frozen and others not, have other names (tied weights) or
    are used twice, a warning says so and nothing changes.

    ```mlir
    nn.state @up.0 : tensor<16x8xf32> = dense<0.5>
    nn.state @up.1 : tensor<16x8xf32> = dense<0.25>
    %i = nn.top_k %scores k 1 : (tensor<4x2xf32>) -> tensor<4x1xi64>
    %c = nn.compare eq %i, %number0 : tensor<4x1xi64>
    %m = nn.cast %c : (tensor<4x1xi1>) -> tensor<4x1xf32>
    %w = nn.broadcast %m : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %p = nn.matmul %x, %up.0 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %t = nn.mul %p, %w : tensor<4x8xf32>
    …
    %y = nn.add %t, %t1 : tensor<4x8xf32>
    // becomes
    nn.state @"up.*" : tensor<2x16x8xf32> = [@up.0, @up.1]
    %p = nn.grouped_matmul %x, %"up.*", %group
        : (tensor<4x16xf32>, tensor<2x16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    %y = nn.mul %p, %w : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def RecognizeAttentionPass
    : Pass<"nn-recognize-attention", "::mlir::func::FuncOp"> {
  let summary = "Puts attention that exporters took apart together";
  let description = [{
    Finds matmul(softmax(matmul(q, kᵀ) · scale, masked), v) on tensors of rank 4,
    or of rank 3 with batch and heads in one dimension. The scale may stand on
    q, k, or the scores, as a product or a quotient. Masks may be any number of
    additions, and selections between the scores and a constant, in any order
    after the scale; `isnan(softmax) ? 0 : softmax` sets `zero_masked_rows`.

    Masks keep their meaning to the rounding of the element type:
    - A selected constant must be -inf, or so far down (at most -1e30) that
      adding a score to it gives the constant itself; any other is refused.
      So `select(m, s, c)` is s + select(m, 0, c).
    - A mask known now that is 0 or at most -1e30 everywhere, with a 0 in every
      row, is a mask of i1 (the rest of a row has weight exactly 0 either way),
      and `causal` if it is a triangle, wherever row 0 ends (`row_offset`).
    - `select(m, s, -inf)` alone keeps m as the mask of i1.
    - All other masks become one mask of floats to add, added up before the
      scores are. With finite masks like the most negative float32 a row in
      which everything is masked thus keeps its (uniform) weights.

    ```mlir
    %s = nn.matmul %q, %k {transpose_rhs} : …
    %t = nn.mul %s, %scale : …
    %m = nn.add %t, %mask : …
    %p = nn.softmax %m dim 3 : …
    %y = nn.matmul %p, %v : …
    // becomes
    %y, %l = nn.attention %q, %k, %v mask %mask {scale = 0.125} : …
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def GroupHeadsPass : Pass<"nn-group-heads", "::mlir::func::FuncOp"> {
  let summary = "Lets attention share key heads that were repeated for it";
  let description = [{
    Models with grouped heads have fewer key heads than query heads, and
    exporters repeat each for the queries that share it, since ONNX has no
    product that does. `nn.attention` has: it takes the heads as they were. So
    nothing is copied, and the gradients of a shared head are summed where
    they are made.

    The repetition is looked for behind both key and value, through element by
    element ops (rotary embeddings), reshapes, transposes, broadcasts,
    concatenations and slices; these are built again for the fewer heads, and
    what others read of the repeated value stays for them. Neighbours must be
    the same, as `torch.repeat_interleave` makes them: a whole list of heads
    repeated, as `torch.Tensor.repeat` does, stays. Where key and value differ,
    what both have in common goes. Runs after recognition of attention, before
    the last canonicalization.

    ```mlir
    %w = nn.reshape %k : (tensor<2x2x3x4xf32>) -> tensor<2x2x1x3x4xf32>
    %r = nn.broadcast %w : (tensor<2x2x1x3x4xf32>) -> tensor<2x2x3x3x4xf32>
    %h = nn.reshape %r : (tensor<2x2x3x3x4xf32>) -> tensor<2x6x3x4xf32>
    …
    %y, %l = nn.attention %q, %h, %g {scale = 0.5} : (tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>, …
    // becomes
    %y, %l = nn.attention %q, %k, %v {scale = 0.5} : (tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, …
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def PutChannelsLastPass
    : Pass<"nn-put-channels-last", "::mlir::func::FuncOp"> {
  let summary = "Computes with channels last between convolutions";
  let description = [{
    A convolution is a product of matrices whose rows are positions where all
    channels of a position follow each other, [N, S…, C]: no window of one
    element has to be gathered, larger ones are copied channels at a time, and
    samples are one matrix. ONNX has channels first. Here tensors that are
    computed from each other element by element, or by ops that know their
    dimensions by number (batch norms, paddings, slices, concatenations, sums),
    change together; transposes stand where others make or read them, and around
    convolutions themselves, which stay what they are: lowering reads and writes
    their operands through these without moving anything.

    A group of tensors changes if its convolutions read and make more elements
    than would be transposed, forward and backward. Those of groups (depthwise)
    do not count: they are products of too few channels.

    Runs before the last canonicalization of phase `nn`, so that differentiation
    and sharding find one order.

    ```mlir
    %a = nn.conv %x, %v sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : …
    %r = nn.relu %a : tensor<2x16x8x8xf32>
    %b = nn.conv %r, %w sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : …
    // becomes
    %a = nn.conv %x, %v sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : …
    %l = nn.transpose %a [0, 2, 3, 1] : (tensor<2x16x8x8xf32>) -> tensor<2x8x8x16xf32>
    %r = nn.relu %l : tensor<2x8x8x16xf32>
    %f = nn.transpose %r [0, 3, 1, 2] : (tensor<2x8x8x16xf32>) -> tensor<2x16x8x8xf32>
    %b = nn.conv %f, %w sizes [8, 8] strides [1, 1] dilations [1, 1] low [1, 1] : …
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def VerifyPhasePass : Pass<"nn-verify-phase", "::mlir::ModuleOp"> {
  let summary = "Checks what the phase nn promises";
  let description = [{
    Ends phase 1: the module holds states and one entry (`nn.entry`), whose
    arguments are inputs and states and whose results are outputs; in it there
    are only nn ops, on tensors of static shape without encoding, and each op is
    located at a name (that of its ONNX node), but for constants: equal ones are
    merged, and then belong to no node in particular. Changes nothing.
  }];
}

#endif
