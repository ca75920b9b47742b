// Passes of the CPU target.

#ifndef ACCEL_TARGET_CPU_PASSES_TD
#define ACCEL_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseGemmFormsPass : Pass<"plan-choose-gemm-forms", "::mlir::ModuleOp"> {
  let summary = "Records how each matrix product is computed";
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "What to generate code for">,
    Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">,
  ];
}

#endif
