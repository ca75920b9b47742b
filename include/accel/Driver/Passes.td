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
    Option<"mesh", "mesh", "std::string", "\"\"", "Axes and sizes, as dp=4,tp=2">,
    ListOption<"batchDims", "batch-dim", "std::string", "INPUT=K: the batch dimension of an input">,
    Option<"target", "target", "std::string", "\"cpu\"", "What to generate code for">,
    Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">,
  ];
}

#endif
