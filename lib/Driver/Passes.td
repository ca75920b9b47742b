// The pass that walks a module through the phases.

#ifndef ACCEL_DRIVER_PASSES_TD
#define ACCEL_DRIVER_PASSES_TD

include "mlir/Pass/PassBase.td"

def RunPhasesPass : Pass<"accel-run-phases", "::mlir::ModuleOp"> {
  let summary = "Runs the phases from the module's own to the one asked for";
  let description = [{
    The module says which phase it has reached (`accel.phase`); this pass runs
    the pipelines of the phases after it, up to and including `to`, each of which
    ends with its verifier. A module that is past `to` already is refused.

    ```mlir
    module attributes {accel.phase = "nn"} { … }      // global tensors
    // --accel-run-phases="to=local mesh=dp=2" becomes
    module attributes {accel.phase = "local"} { … }   // one rank's tensors
    ```
  }];
  let options = [
    Option<"to", "to", "std::string", "\"plan\"", "The phase to stop after">,
    Option<"train", "train", "bool", "false", "Turn the forward program into a training step">,
    Option<"loss", "loss", "std::string", "\"\"", "The output that is the loss, or cross_entropy:LOGITS,LABELS">,
    Option<"optimizer", "optimizer", "std::string", "\"\"", "adamw, adam, sgd, muon, adafactor, lion, lamb, lars, adagrad, adadelta, adamax, rmsprop, nadam, radam, adamw_8bit, adam_8bit or schedule_free_adamw">,
    ListOption<"settings", "set", "std::string", "key=value of the update, or of a pass: zero_stage=2; a value with commas in braces">,
    ListOption<"trainable", "trainable", "std::string", "Patterns of what is trained">,
    ListOption<"frozen", "frozen", "std::string", "Patterns of what is not trained">,
    Option<"emitGradients", "emit-gradients", "bool", "false", "Return the gradients as outputs">,
    ListOption<"entries", "entries", "std::string", "What can be called: step, eval, forward">,
    ListOption<"evalOutputs", "eval-outputs", "std::string", "What eval gives beside the loss">,
    Option<"mixedPrecision", "mixed-precision", "std::string", "\"\"", "bf16, fp16 or fp8: the type of products">,
    Option<"metrics", "metrics", "std::string", "\"\"", "precision: what rounding costs, as outputs of the step">,
    Option<"microBatches", "micro-batches", "int64_t", "1", "Parts of the batch that run one after another">,
    Option<"schedule", "schedule", "std::string", "\"sequential\"", "How they follow each other: sequential, gpipe or 1f1b:D">,
    ListOption<"cuts", "cut", "std::string", "Nodes or modules before which the chunks of a pipeline begin">,
    Option<"mesh", "mesh", "std::string", "\"\"", "Axes and sizes, as dp=4,tp=2">,
    ListOption<"batchDims", "batch-dim", "std::string", "INPUT=K: the batch dimension of an input">,
    ListOption<"shard", "shard", "std::string", "PATTERN=DIM:AXIS: what is split, in which dimension, over which axis">,
    Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">,
    Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">,
  ];
}

#endif
