// Passes of the decide phase.

#ifndef ACCEL_SEARCH_PASSES_TD
#define ACCEL_SEARCH_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecidePass : Pass<"search-decide", "::mlir::ModuleOp"> {
  let summary = "Chooses schedule, slots, recomputation and offload, and writes them down";
  let description = [{
    Runs on `dist` IR and changes nothing but the attribute `accel.decisions` of
    the module, which the split obeys and `search-verify` checks afterwards. On
    one stage a micro-batch's backward follows its forward, so that one slot
    keeps what lies between them; nothing is recomputed and nothing offloaded
    yet. Refuses a module that is not in phase `dist`.

    ```mlir
    module attributes {accel.phase = "dist"} { … }
    // becomes
    module attributes {accel.phase = "dist", accel.decisions = {
        micro_batches = 1 : i64, offload = [], recompute = [], schedule = "sequential", slots = 1 : i64}} { … }
    ```
  }];
}

def VerifyDecisionsPass : Pass<"search-verify", "::mlir::ModuleOp"> {
  let summary = "Checks that a split program does what was decided";
  let description = [{
    Runs at the end of phase `local`: every schedule has the decided number of
    micro-batches, and no run uses a slot that was not decided. A module without
    `accel.decisions` is refused.

    ```mlir
    module attributes {accel.decisions = {micro_batches = 1 : i64, slots = 1 : i64, …}} {
      dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] slots [] } }
    }
    ```
  }];
}

#endif
