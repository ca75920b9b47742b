// The proof that a split program computes what the whole one does.

#ifndef ACCEL_VERIFY_PASSES_TD
#define ACCEL_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyEquivalencePass : Pass<"dist-verify-equivalence", "::mlir::ModuleOp"> {
  let summary = "Proves that one rank's program computes its pieces of the logical one";
  let description = [{
    Runs at the end of phase `local`, in every compile. Derives, for each value of
    one rank's program, which piece of which value of the logical program it
    holds (split over which axes), or which term of a sum over which axes, and
    refuses the first op that does not follow, at its location: its operands hold
    nothing that the logical program computes with, a sum is missing or made
    twice, a piece is another rank's, a micro-batch is lost. Changes nothing, and
    shares no code with propagation, planning or localisation.
    docs/Equivalence.md says what is proved, and what is believed.

    The logical program is the one that phase `train` ended with (of a module
    that starts in a later phase, that module); `logical` names a file with it
    where the pass stands alone:
    `acc-opt local.mlir --dist-verify-equivalence=logical=train.mlir`.

    Where `dist-pad-dims` has padded dimensions the proof has two steps: the padded
    program (`padded`) gives what the logical one does, whatever stands behind the
    ends of its dimensions, unless it is known to be neutral to what combines it;
    and the rank's program computes the pieces of the padded one.

    ```mlir
    // logical: %2 = nn.matmul %x, %dy {transpose_lhs}
    //          %3 = nn.exp %2
    // local, with its all_reduce over the batch's pieces forgotten:
    %2 = nn.matmul %x, %dy {transpose_lhs}
    %3 = nn.exp %2
    // error: does not follow from the logical program: is not linear in what is
    // partial over axis 'dp': a sum is missing
    ```
  }];
  let options = [Option<"logical", "logical", "std::string", "\"\"",
                        "A file with the program in phase train">,
                 Option<"padded", "padded", "std::string", "\"\"",
                        "A file with it after dist-pad-dims, if that has padded anything">];
}

def VerifyPlanEquivalencePass : Pass<"plan-verify-equivalence", "::mlir::ModuleOp"> {
  let summary = "Proves that a plan computes what one rank's program says, byte for byte";
  let description = [{
    Ends phase `plan`, in every compile. Executes the plan on value numbers where
    the evaluator has floats: each command writes what it computes, of what its
    bytes hold, to the bytes of its views; the program of phase `local` gets its
    numbers from the same table. Refuses the plan if an output, or a state in the
    end, is not the value that the tasks give it; if a command reads what this run
    has not put there (nor `load`, nor the step before); if it destroys what it
    reads in the next run; if it writes where it still reads. Fusion, reuse of
    buffers, buckets of collectives, folded additions, views and aliases are
    followed by what they do to bytes. Changes nothing, and shares no code with
    what made the plan. docs/Equivalence.md says what is believed.

    `local` names a file with the program in phase `local` where the pass stands
    alone: `acc-opt plan.mlir --plan-verify-equivalence=local=local.mlir`.

    ```mlir
    // local: %1 = nn.matmul %x, %w
    //        %2 = nn.add %1, %b
    plan.gemm @x, @w -> @y          // its bias forgotten
    plan.write @y -> output "y"
    // error: does not follow from the local program: writes another value than
    // the task gives as output 'y'
    ```
  }];
  let options = [Option<"local", "local", "std::string", "\"\"",
                        "A file with the program in phase local">];
}

#endif
