// Passes of the CPU target.

#ifndef ACCEL_TARGET_CPU_PASSES_TD
#define ACCEL_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseGemmFormsPass : Pass<"plan-choose-gemm-forms", "::mlir::ModuleOp"> {
  let summary = "Chooses the form of each matrix product and asks for its scratch";
  let description = [{
    Runs on a plan without offsets. Each product gets a `form`: which library
    form, cut into which chunks. On the machine it compiles for, the few legal
    forms of every distinct shape are tried once, on the threads that will run
    it, and remembered on disk (a form that is damaged there, or not legal for
    its product, is measured again; more than a second of it is told); for another
    target the default is taken and nothing is measured. Chosen at load, the form
    could change from run to run (laws 1 and 10 of the design).

    Where the machine multiplies bf16 in tiles (Intel AMX), products of f32 have
    one more form, `bf16x6`: each number as three bf16 pieces, six products of
    pieces, sums in f32. It is as exact as f32 arithmetic, and was measured at up
    to 1.5 times the peak of the f32 units. A file with this form asks for a
    machine that has tiles; `--target=cpu:x86-64-v4` keeps to f32 arithmetic.

    Weights whose product is faster with packed weights are packed once, by
    `plan.pack` in the entry `load`; where nothing else reads them, the unpacked
    ones last no longer than that. Attention gets its block size and scratch.

    ```mlir
    plan.gemm @x, @w -> @y
    // becomes
    plan.pack @w -> @w.packed            // in the body of `load`
    plan.gemm @x, @w -> @y {form = {chunk_columns = 0, chunk_rows = 256, layout = […], packed},
                            packed = @w.packed, scratch = @scratch}
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "What to generate code for">,
    Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">,
  ];
}

def ReserveForLibrariesPass : Pass<"plan-reserve-for-libraries", "::mlir::ModuleOp"> {
  let summary = "Says what a rank holds beside its arenas";
  let description = [{
    Runs on a finished plan. The device arena's `reserve` becomes what the process
    and its libraries will hold for what the plan makes them prepare: something for
    each command, each product and thread, and each distinct product (oneDNN's code).
    `acc-run` compares its resident set with it and warns.

    ```mlir
    plan.arena device bytes 512 alignment 64 reserve 0
    // becomes
    plan.arena device bytes 512 alignment 64 reserve 9576448
    ```
  }];
  let options = [
    Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">,
  ];
}

#endif
