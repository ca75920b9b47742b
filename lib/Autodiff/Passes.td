// The passes of phase `train`.

#ifndef ACCEL_AUTODIFF_PASSES_TD
#define ACCEL_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def AddInferencePass : Pass<"nn-add-inference", "::mlir::ModuleOp"> {
  let summary = "Adds the entries that evaluate and infer";
  let description = [{
    Runs before `nn-build-step`, on the forward entry, which that pass makes a
    step of. Behind it come copies of it that share its states, named for what
    they do, as far as `entries` has them:

    - `@eval` gives the `loss`, as the step computes it, and those of the model's
      outputs that `eval-outputs` names;
    - `@forward` gives all of the model's outputs but the loss. There is none
      where the loss is the only output, and an output that is called as what a
      step reports (`loss`, `grad_norm`, `lr`, `verdict`) is left out, with a warning.

    Where the loss of `@eval` is known to be a mean of what each row of the batch
    (where `batch-dim` says that it is) comes to by itself, `accel.separate_rows` says so: `acc-run` then counts the
    rows that make no whole batch, too. Where it is a sum of quotients of such sums, as a mean over the labels
    that count, their numerators and denominators are outputs (`loss.term.K.numerator`), of which `acc-run` makes the
    loss of all rows.

    Batch norms go by running statistics, dropout gives what it is given, and `nn.rng` stays. Inputs and states that the results do not
    need are gone: a forward takes no labels. Refuses names that are no outputs, those of reports, and a name given twice.

    ```mlir
    func.func @main(%x: … {nn.input = "x"}, %t: … {nn.input = "t"}, %w: … {nn.state = @w})
        -> (… {nn.output = "loss"}, … {nn.output = "y"}) attributes {nn.entry} { … }
    // with entries=step,eval,forward is followed by
    func.func @eval(%x: … {nn.input = "x"}, %t: … {nn.input = "t"}, %w: … {nn.state = @w})
        -> (… {nn.output = "loss"}) attributes {nn.entry = #nn<entry eval>} { … }
    func.func @forward(%x: … {nn.input = "x"}, %w: … {nn.state = @w})
        -> (… {nn.output = "y"}) attributes {nn.entry} { … }
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"\"", "An output, or cross_entropy:LOGITS,LABELS">,
    ListOption<"entries", "entries", "std::string", "eval, forward; step says nothing here">,
    ListOption<"evalOutputs", "eval-outputs", "std::string", "What eval gives beside the loss">,
    ListOption<"batchDims", "batch-dim", "std::string", "INPUT=K: the batch dimension of an input; INPUT=none: it has none">,
  ];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def MaskRowsPass : Pass<"nn-mask-rows", "::mlir::ModuleOp"> {
  let summary = "Gives the step an input that says which rows of a batch count";
  let description = [{
    Runs before `nn-build-step`, on the forward entry, which gets the input
    `row_mask`, [batch] of i1: the loss, and so the step, is that of a batch
    without the rows that do not count, as the last of an epoch may be. Sums over
    rows (the rows are where `batch-dim` says) take them times the mask; a mean,
    which import marks where it is asked to (`nn.mean`), divides by the number of
    rows that count. `accel.row_mask` says what was done.

    Everything that is made of these sums and means is then as the model would
    make it of the smaller batch, provided that none of its numbers comes from the
    size of the batch, which an exporter writes as any other number. Refused are
    therefore a sum over rows that is scaled by a number, or to which a multiple of the
    batch's size is added, outside of a mean; a mean that is multiplied by what it
    is of; and rows that depend on each other or
    on their place.

    ```mlir
    %s = nn.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    %m = nn.mul %s, %quarter {nn.mean} : tensor<f32>
    // becomes, with row_mask = %k: tensor<4xi1>
    %f = nn.cast %k : (tensor<4xi1>) -> tensor<4xf32>
    %y = nn.mul %x, %f : tensor<4xf32>
    %s = nn.reduce sum %y dims [0] : (tensor<4xf32>) -> tensor<f32>
    %n = nn.reduce sum %f dims [0] : (tensor<4xf32>) -> tensor<f32>
    %m = nn.div %s, %n : tensor<f32>
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"\"", "The output that is the loss">,
    ListOption<"batchDims", "batch-dim", "std::string", "INPUT=K: the batch dimension of an input; INPUT=none: it has none">,
  ];
  let dependentDialects = ["::accel::AccelDialect", "::accel::nn::NNDialect"];
}

def BuildStepPass : Pass<"nn-build-step", "::mlir::ModuleOp"> {
  let summary = "Turns the forward entry into one training step";
  let description = [{
    The first forward entry becomes the entry `@step`: one step on the global batch, in
    plain nn ops, without a loop. Its arguments are the inputs (and the labels
    that `cross_entropy:` adds), the parameters, the optimizer's states and
    two counts, of updates `@"counter/step"` and of calls `@"counter/call"`; its results the
    outputs `loss`, `grad_norm`, `lr` and `verdict` (`accel.reports`), with `emit-gradients` each trained parameter's
    `<name>.grad`, and the new value of every state that the step writes.

    - The loss is an output of one element, or the sum of `nn.cross_entropy`
      over the labels that are not -100 divided by their count. All other
      outputs are dropped.
    - Parameters are trained unless `frozen`, by attribute or by a pattern;
      patterns match names and aliases, and `trainable` wins. One that the loss
      does not depend on is reported, has gradient zero, and is left as it is
      (PyTorch's optimizers skip parameters without a gradient).
    - Each gradient passes an `nn.gradient`: what is downstream of it is the
      update. Gradients are reported as they leave it, before clipping.
    - The update is that of the optimizer of the parameter's group
      (docs/Optimizers.md; lib/Autodiff/Optimizers), its scalars rank-0 f64
      functions of the step's number: the schedules of transformers, PyTorch,
      DeepSpeed and Megatron-LM by their names (docs/LearningRates.md;
      lib/Autodiff/Schedules). Those with a cycle of momentum make `momentum`
      or `beta1` as well, `scheduler.weight_decay_incr_style` the weight decay.
    - `ema.decay` adds a moment `ema/NAME` of each trained parameter, its
      average over the steps; with `ema.evaluate` the entries `eval` and
      `forward` read it in the parameter's place.
    - `groups[PATTERN].KEY` says `KEY` of the parameters whose names match; of
      several that do, the last. Rates of groups follow the schedule.
      Optimizers of matrices (Muon) leave all else, tables of
      lookups and the matrix that makes a cross-entropy's logits to AdamW.
    - Weight decay is of all parameters but those that `optimizer.no_decay`
      names and `optimizer.decay` does not: by patterns, or as `vectors`
      (of one dimension, and biases) and `qk_norms`. Of a stack the members'
      names and shapes count, and what is said has to hold for all of them.
    - The verdict is an i32: 0 the step is done, 1 it is skipped, 2 it has failed,
      as where its loss or gradient norm is not finite. A step that is not done
      changes no state, but that one that is skipped is a call.
    - A batch norm is by the statistics of its part of the batch, one of
      `batch-norm-parts`, and its running statistics r become
      (1 - m)^U r + sum of m (1 - m)^(U-1-i) b_i: what U = `batch-norm-updates`
      updates one after another come to, b_i the mean of the statistics of as many
      parts (docs/BatchNorm.md; lib/Autodiff/BatchNorm.cpp).
    - Dropout and `nn.rng` draw from the seed, the number of the call, their site in the
      model and the logical coordinates of the element; in the other entries `nn.rng`
      draws from a number that no call has.

    Runs on phase `nn`; the first pass of phase `train`. Refuses a loss of more
    than one element, a trained parameter that reaches the loss through an op
    without a vector-Jacobian product, patterns that match nothing, a module
    that import says cannot be trained, and trained parameters of other types than f64,
    f32, bf16 and f16. Those of 16 bits become states of f32, the master weights, which entries
    cast to the model's type.

    ```mlir
    // nn-build-step="loss=y optimizer=sgd set=optimizer.lr=0.1"
    nn.state @w : tensor<2xf32> = dense<1.0>
    func.func @main(%x: tensor<2xf32> {nn.input = "x"}, %w: tensor<2xf32> {nn.state = @w})
        -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
      %p = nn.mul %x, %w : tensor<2xf32>
      %y = nn.reduce sum %p dims [0] : (tensor<2xf32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    // becomes
    nn.state counter @"counter/step" : tensor<i64> = dense<0>
    nn.state counter @"counter/call" : tensor<i64> = dense<0>
    func.func @step(%x: …, %w: …, %n: tensor<i64> {nn.state = @"counter/step"},
                    %m: tensor<i64> {nn.state = @"counter/call"})
        -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"},
            tensor<f32> {nn.output = "lr"}, tensor<i32> {nn.output = "verdict"},
            tensor<2xf32> {nn.state = @w}, tensor<i64> {nn.state = @"counter/step"},
            tensor<i64> {nn.state = @"counter/call"}) attributes {nn.entry = #nn<entry step>} {
      …
      %g = nn.gradient %dw of @w : tensor<2xf32>
      %d = nn.mul %rate, %g : …
      %v = nn.sub %w, %d : …
      %done = nn.compare eq %verdict, %zero : tensor<i32>
      %new = nn.select %done, %v, %w : …
      …
    }
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"\"", "An output, or cross_entropy:LOGITS,LABELS">,
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, adam, sgd, muon, adafactor, lion, lamb, lars, adagrad, adadelta, adamax, rmsprop, nadam, radam, adamw_8bit, adam_8bit, adamw_fp8, adam_fp8 or schedule_free_adamw">,
    ListOption<"settings", "set", "std::string", "key=value; values with commas in braces">,
    ListOption<"trainable", "trainable", "std::string", "Patterns of what is trained">,
    ListOption<"frozen", "frozen", "std::string", "Patterns of what is not trained">,
    Option<"emitGradients", "emit-gradients", "bool", "false", "Return the gradients">,
    Option<"fp8Moments", "fp8-moments", "bool", "false", "Moments of adamw and adam are codes, those of adamw_fp8 and adam_fp8">,
    Option<"batchNormParts", "batch-norm-parts", "int64_t", "1", "Equal parts of a batch that batch norms take statistics of">,
    Option<"batchNormUpdates", "batch-norm-updates", "int64_t", "1", "How often a step updates running statistics: a divisor of the parts">,
    ListOption<"batchDims", "batch-dim", "std::string", "INPUT=K: the batch dimension of an input; INPUT=none: it has none">,
  ];
  let dependentDialects = ["::accel::AccelDialect", "::accel::nn::NNDialect"];
}

def FactorGradientsPass : Pass<"nn-factor-gradients", "::mlir::ModuleOp"> {
  let summary = "Makes gradients products of low rank, as PowerSGD sends them";
  let description = [{
    Of a step, each gradient that is large enough becomes a product of two factors of
    `rank` rows, before its `nn.gradient` (Vogels, Karimireddy and Jaggi,
    arXiv:1905.13727; PyTorch's powerSGD_hook, whose options these are). Large enough
    is one whose rows and columns (its first dimension, and the others) have
    (rows + columns) * rank * min-compression-rate < rows * columns; others stay.

    - With error feedback the matrix M is the gradient and what has been left out of it
      so far: the state `power_sgd_error/NAME`, of the role `residual`.
    - P = orth(M orth(Q)), with orthonormal rows here: both factors lie
      transposed. Q is the right factor of the step before, in `power_sgd_q/NAME`;
      without a warm start, and in the first step, it is drawn from
      a normal distribution by `random-seed` and the number of the call.
    - The new Q is M^T P, the gradient P Q^T, and what is left out M - P Q^T.

    Both P and Q are sums over ranks (`nn.complete`), and nothing else is: of M and of
    what is left out of it each rank has a term. P depends on their sum alone, so on
    any number of ranks the step is the same. Runs at the end of phase `train`. A step
    that is not done changes none of these.

    ```mlir
    %g = nn.gradient %dw of @w : tensor<8x12xf32>
    // becomes
    %e = nn.reshape %error : (tensor<1x8x12xf32>) -> tensor<8x12xf32>
    %m = nn.add %dw, %e : tensor<8x12xf32>
    …
    %p0 = nn.matmul %q, %m {transpose_rhs} : (tensor<1x12xf32>, tensor<8x12xf32>) -> tensor<1x8xf32>
    %p1 = nn.complete %p0 : tensor<1x8xf32>
    …
    %q0 = nn.matmul %p, %m : (tensor<1x8xf32>, tensor<8x12xf32>) -> tensor<1x12xf32>
    %q1 = nn.complete %q0 : tensor<1x12xf32>
    %d = nn.matmul %p, %q1 {transpose_lhs} : (tensor<1x8xf32>, tensor<1x12xf32>) -> tensor<8x12xf32>
    %d0 = nn.matmul %p, %q0 {transpose_lhs} : (tensor<1x8xf32>, tensor<1x12xf32>) -> tensor<8x12xf32>
    %left = nn.sub %m, %d0 : tensor<8x12xf32>
    %g = nn.gradient %d of @w : tensor<8x12xf32>
    ```
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "1", "Of the factors (matrix_approximation_rank)">,
    Option<"start", "start", "int64_t", "1000", "How many steps come before it, in another program (start_powerSGD_iter): 0 alone is taken">,
    Option<"minCompressionRate", "min-compression-rate", "double", "2", "How many times smaller factors must be">,
    Option<"useErrorFeedback", "use-error-feedback", "bool", "true", "Keep what is left out for the next step">,
    Option<"warmStart", "warm-start", "bool", "true", "Begin with the factors of the step before">,
    Option<"orthogonalizationEpsilon", "orthogonalization-epsilon", "double", "0", "Added to the lengths of rows">,
    Option<"randomSeed", "random-seed", "int64_t", "0", "Of first factors">,
  ];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def VerifyStepPass : Pass<"nn-verify-step", "::mlir::ModuleOp"> {
  let summary = "Checks what the phase train promises";
  let description = [{
    Ends phase 2. Of a training step: the entry `@step` has the outputs
    that `accel.reports` lists, of one element, `verdict` among them an i32; it writes trained parameters,
    moments and counters, each of the state's type and once, every moment and
    counter and no frozen state; every trained parameter that it writes has one
    `nn.gradient`, whose operands come from forward and backward alone. Of a
    forward program: it writes no parameter. In either there is no `nn.dropout`
    and no `nn.stop_gradient` any more. Changes nothing.
  }];
}

def AppendGradientsPass : Pass<"nn-append-gradients", "::mlir::func::FuncOp"> {
  let summary = "Returns a function's gradient beside its results";
  let description = [{
    Appends to the results the gradient of the first one, a scalar of floats,
    with respect to every argument of floats, zeros for those that it does not
    depend on. Runs on plain types. No part of a compilation, which
    differentiates in `nn-build-step`: it shows what the rules build. Refuses
    what `differentiate` refuses, and a first result that is no such scalar.

    ```mlir
    func.func @f(%x: tensor<f32>) -> tensor<f32> {
      %y = nn.exp %x : tensor<f32>
      return %y : tensor<f32>
    }
    // becomes
    func.func @f(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %y = nn.exp %x : tensor<f32>
      %one = nn.constant dense<1.0> : tensor<f32>
      %g = nn.mul %one, %y : tensor<f32>
      return %y, %g : tensor<f32>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

#endif
