// Passes of the decide phase.

#ifndef ACCEL_SEARCH_PASSES_TD
#define ACCEL_SEARCH_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecidePass : Pass<"search-decide", "::mlir::ModuleOp"> {
  let summary = "Chooses how the program will be run, and writes it down";
  let description = [{
    Runs on `dist` IR and changes nothing but the attribute `accel.decisions` of
    the module, which the split obeys and `search-verify` checks afterwards:

    - `micro_batches`, where it is not one;
    - `schedule`, where it is not `sequential` (`dialects/Dist/ScheduleKind.h` and
      `docs/Schedules.md` say what the names stand for), and with it `in_flight`, of
      each stage the most micro-batches whose forward has begun and whose backward has
      not ended;
    - `order`, where schedule `auto` has found one without a name: of each stage its
      tasks, `"F0[0] F0[1] B0[0] B0[1]"`;
    - `gathers = "once"`, where sharded weights are gathered once a step, which is asked
      for, and not by unit.

    `auto` is searched for here, by the work of the step's tasks: a copy of the module
    is split and measured. That takes the passes that split, which `acc-opt` gives it.
    A schedule with a name is taken as it is asked for. Where `considered` is there,
    which `acc-opt --report=decisions` sets, the schedules that were not taken are told
    in it, with their time and bytes (`lib/Cost/Decision.h`).

    Where `predicted` is there, which `--report=memory` and `--report=decisions` set, the
    bytes of each arena of each stage are told in it (`lib/Cost/Prediction.h`): a copy
    of what is decided, without most of the blocks that it repeats, is split and planned.

    Refuses a module that is not in phase `dist`, and a schedule that has more
    micro-batches in flight than there are.

    ```mlir
    module attributes {accel.phase = "dist"} { … }
    // becomes
    module attributes {accel.phase = "dist", accel.decisions = {in_flight = array<i64: 4>, micro_batches = 4 : i64, schedule = "gpipe"}} { … }
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
    micro-batches, and no more of them in flight than was decided, by the schedule and
    by `in_flight`: from the forward to the end of the backward, both of its parts,
    where it has two; and no weight is gathered by unit where it was decided that all
    are gathered once. What is told in `considered` is what is done. A module without
    `accel.decisions` is refused: nobody decided.

    ```mlir
    module attributes {accel.decisions = {}} {
      dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] } }
    }
    ```
  }];
}

#endif
