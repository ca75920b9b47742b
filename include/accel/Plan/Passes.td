// The passes from `local` to `plan`, in the order in which the phase runs them.

#ifndef ACCEL_PLAN_PASSES_TD
#define ACCEL_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormKernelsPass : Pass<"local-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Outlines fused groups of ops as kernels";
  let description = [{
    Everything in an entry (`nn.entry`) that implements KernelSource is grouped
    into kernels, private functions of nn ops with the attributes `plan.kernel`
    and `plan.rows`: each result is cut, in row-major order, into that many rows,
    and the product of its first dimensions is that number. A kernel's arguments
    are whole tensors without gaps; ops that only move elements are part of the
    kernels that read them. Ops without the interface stay; so do ops that make
    views of what they read (reshape, transpose, slice), and bias additions that
    the product before them takes along. Each op keeps its location.

    A group grows from its consumers to its producers while every reduction
    stays within a row, no expensive element is computed twice, and no cycle
    between commands appears.

    ```mlir
    %h = nn.add %x, %r : …
    %y = nn.layer_norm %h, %s, %b dim 2 epsilon 1.0e-5 : …
    // becomes
    %k:2 = call @kernel_0(%x, %r, %s, %b) : (…) -> (…)
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

#endif
