// Passes of the decide phase.

#ifndef ACCEL_SEARCH_PASSES_TD
#define ACCEL_SEARCH_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecidePass : Pass<"search-decide", "::mlir::ModuleOp"> {
  let summary = "Chooses recomputation and offload, and writes them down with the schedule";
  let description = [{
    Runs on `dist` IR and changes nothing but the attribute `accel.decisions` of
    the module, which the split obeys and `search-verify` checks afterwards:
    how many micro-batches there are (where it is not one), and the schedule (where it
    is not `sequential`), and that sharded weights are gathered once a step, where
    that is asked for. Nothing is recomputed and nothing offloaded yet; the schedule is the one that
    is asked for (`dialects/Dist/ScheduleKind.h` says what the names stand for).
    Refuses a module that is not in phase `dist`, and a schedule that has more
    micro-batches in flight than there are.

    ```mlir
    module attributes {accel.phase = "dist"} { … }
    // becomes
    module attributes {accel.phase = "dist", accel.decisions = {micro_batches = 4 : i64, schedule = "gpipe"}} { … }
    ```
  }];
  let dependentDialects = ["::accel::AccelDialect"];
  let options = [Option<"schedule", "schedule", "std::string", "\"sequential\"", "sequential, gpipe or 1f1b:D; of several stages gpipe, 1f1b, eager-1f1b, interleaved:V, zb-h1, zb-h2, zbv, dualpipev or auto">,
                 Option<"gatherOnce", "gather-once", "bool", "false", "Gather sharded weights once a step, not by unit in forward and backward">];
}

def VerifyDecisionsPass : Pass<"search-verify", "::mlir::ModuleOp"> {
  let summary = "Checks that a split program does what was decided";
  let description = [{
    Runs at the end of phase `local`: every schedule has the decided number of
    micro-batches, and no more of them in flight than was decided: from the forward to
    the end of the backward, both of its parts, where it has two; and no weight is
    gathered by unit where it was decided that all are gathered once. A module without
    `accel.decisions` is refused: nobody decided.

    ```mlir
    module attributes {accel.decisions = {}} {
      dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] } }
    }
    ```
  }];
}

#endif
