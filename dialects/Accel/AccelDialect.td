// The accel dialect: what a module says of itself.

#ifndef ACCEL_ACCEL_DIALECT_TD
#define ACCEL_ACCEL_DIALECT_TD

include "mlir/IR/OpBase.td"

def Accel_Dialect : Dialect {
  let name = "accel";
  let cppNamespace = "::accel";
  let summary = "What a module says of itself";
  let description = [{
    `accel` has no ops: it owns the attributes of a module that no op of it says, and
    that one phase leaves to a later one. An attribute that is not listed here, stands
    elsewhere or is of another type is refused wherever a module is verified.

    | attribute | what | set by |
    |---|---|---|
    | `accel.phase` | the last phase that the module has been through: "nn", "train", "dist", "decided", "local" or "plan" | each phase |
    | `accel.decisions` | a dictionary of what was decided before the split: `micro_batches` (1 where it is not there), `schedule`, `in_flight` and `order`, `gathers` ("once": sharded weights are gathered once a step; by unit where it is not there), and in `considered`, where somebody asks, all that was chosen by cost, with the alternatives; `search-verify` knows its keys | `search-decide` |
    | `accel.config` | a dictionary of what config files came to: each setting's value and origin, a string, and in `keys` a list of strings, every key and what became of it | `acc-opt --config` |
    | `accel.seed` | the seed of everything random, an i64; 0 where it is not there | `nn-build-step` |
    | `accel.folded_parameters` | parameters of the user's program that the exporter folded away: a list of `{name = "wte.weight", shape = array<i64: 96, 32>}`, without a shape where it is unknown | import |
    | `accel.parameter_groups` | how the step updates parameters: a list of `{lr_multiplier = 1.0, optimizer = "adamw", parameters = ["wte.weight"], weight_decay = 0.1, why = {weight_decay = "optimizer.weight_decay"}}`, f64 numbers, of each parameter by the user's name one; `why` has by the key what set it, where that was another setting than the optimizer's name and rate | `nn-build-step` |
    | `accel.unshifted_labels` | the name of the input of labels that `--loss cross_entropy:` added, which is not shifted against the logits | `nn-build-step` |
    | `accel.reports` | the names of the outputs, numbers all, by which `@step` says how it went, in the order in which they are told; `loss` and `verdict` are among them, an i32: 0 the step is done, 1 it was skipped, and no state changed but the count of calls, 2 it failed, and none did | `nn-build-step` |
    | `accel.separate_rows` | that the loss of `@eval` is a mean of what each row of its batch comes to by itself, or the sum of `terms`, each of two outputs that are sums over rows: `numerator` / max(`denominator` + `plus`, `least`), or without a denominator a mean. `inputs` have these rows, provided that inputs in `equal` have the same along a dimension, and that no element of `inputs` is one of `ignored` | `nn-add-inference` |
    | `accel.row_mask` | that the `input` of `@step`, [batch] of i1, says which rows of a batch count: all of the step is as if the others were not there. `inputs` have these rows, provided that inputs in `equal` have the same along a dimension | `nn-mask-rows` |
    | `accel.batch_dims` | the dimension of inputs along which the samples of a batch lie, where it is not the first: a dictionary of i64 by the input's name, -1 for an input of which every batch has the same | `dist-annotate` |
    | `accel.gradient_wire` | the type, f16 or bf16, that terms of gradients may be rounded to on their way between data-parallel ranks, and their sums with them: a rounding that the step declares; none where it is not there | `train-declare-wire` |
    | `accel.zero_stage` | the ZeRO stage by which the states of the step were placed, an i64 from 1 to 3; none where data-parallel ranks share none | `dist-shard-states` |
    | `accel.established` | the passes that have run since the last phase, a list of strings: what each establishes holds (`lib/Parallel/Order.def`). A phase stands for all of its passes, and drops it | passes that place and split |
    | `accel.untrainable` | a sentence that says what the module lacks for training, as it was imported for inference | import |

    ```mlir
    module attributes {accel.phase = "train", accel.seed = 7 : i64} { … }
    ```
  }];
  let hasOperationAttrVerify = 1;
}

#endif
