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
      for, and not by unit;
    - `memory_budget`, `host_budget` and `nvme_budget`, the bytes that a rank may have,
      where it is said: `search-fit-memory` looks for what fits, `search-verify-memory`
      holds the plan against them.

    `auto` is searched for here, by the work of the step's tasks: a copy of the module
    is split and measured. That takes the passes that split, which `acc-opt` gives it.
    A schedule with a name is taken as it is asked for. Where `considered` is there,
    which `acc-opt --report=decisions` sets, the schedules that were not taken are told
    in it, with their time and bytes (`lib/Cost/Decision.h`).

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
                 Option<"gatherOnce", "gather-once", "bool", "false", "Gather sharded weights once a step, not by unit in forward and backward">,
                 Option<"budget", "budget", "std::string", "\"\"", "What a rank may take: bytes, 12GiB, or 80% of this machine's memory, shared by all ranks">,
                 Option<"hostBudget", "host-budget", "std::string", "\"\"", "What a rank may take of the host's memory, which the budget does not count then">,
                 Option<"nvmeBudget", "nvme-budget", "std::string", "\"\"", "What a rank may take of a file">];
}

def FitMemoryPass : Pass<"search-fit-memory", "::mlir::ModuleOp"> {
  let summary = "Chooses what is computed again, so that a rank fits its memory";
  let description = [{
    Runs on `dist` IR behind `search-decide`. Marks for `dist-recompute` those layers,
    and parts of layers, whose activations are computed again, so that what a rank of
    each stage takes (all arenas of its plan) is at most `memory_budget` of
    `accel.decisions`, and the least work is done twice. `search-verify-memory` holds the
    plan against it.

    What each policy keeps and takes is found by trials: a copy of the module, without
    most of the blocks that it repeats, or of some of many stages that are alike, is
    split and planned with the policy on all layers. Layers that are alike are one class;
    how many of each class get which policy is the exact optimum of a multiple-choice
    knapsack for each stage (`lib/Search/PolicyKnapsack.h`). The optimum is tried in
    turn, of the whole program where it comes near the budget, and the next best until
    one fits. A remark says what was chosen.

    What else is open is chosen with it: with `gathers-open` whether sharded weights are
    gathered once a step or by unit, with `schedule-open` the schedule of a pipeline, with
    `offloads-open` which of the states and activations lie in which of `spaces`. The
    combination that takes the least time with what is computed again is taken. Each has a
    table of its own; one whose gathers and schedule alone take as long as the best is not
    tried (`lib/Search/Alternatives.h`). `accel.decisions` says what came out: `gathers`,
    `schedule`, `order`, `in_flight`, `offload_optimizer`, `offload_parameters`,
    `offload_activations`. Of what is not open nothing is changed.

    With `recompute` other than `auto` it stays, and the budget only holds. Without
    a budget the pass does nothing. Refuses a budget that nothing fits, with the least
    that something does.

    ```mlir
    %h = nn.gelu %a : tensor<8x16xf32>  // of transformer.h.0
    // becomes
    %h = nn.gelu %a {dist.recompute = "transformer.h.0"} : tensor<8x16xf32>
    ```
  }];
  let dependentDialects = ["::accel::AccelDialect"];
  let options = [Option<"recompute", "recompute", "std::string", "\"auto\"", "What is computed again (--recompute); auto: what fits the budget">,
                 Option<"gathersOpen", "gathers-open", "bool", "false", "Whether sharded weights are gathered once a step or by unit is decided by the budget (zero.gather_once=auto)">,
                 Option<"scheduleOpen", "schedule-open", "bool", "false", "The schedule of a pipeline is decided by the budget (--schedule=auto)">,
                 ListOption<"offloadsOpen", "offloads-open", "std::string", "Decisions on where states and activations lie that the budget makes: offload_optimizer, offload_parameters, offload_activations">,
                 ListOption<"spaces", "spaces", "std::string", "Where they may lie beside the device: host, nvme">];
}

def TraceFrontierPass : Pass<"search-trace-frontier", "::mlir::ModuleOp"> {
  let summary = "Tells what a step would take with less memory";
  let description = [{
    Runs on `dist` IR behind `search-decide`. Where `frontier` of `accel.decisions` is
    there, which `--report=memory --what-if` sets, ten budgets between the least and what
    no recomputation takes are tried as `search-fit-memory` tries one, and what each comes
    to is told in it (`lib/Cost/Frontier.h`): the peak, the work that is done again, and
    the time of the step, by the work of its tasks and their schedule; where more is open,
    as with `search-fit-memory`, what is decided beside.

    ```mlir
    module attributes {accel.decisions = {frontier = []}} { … }
    // becomes
    module attributes {accel.decisions = {frontier = [{bytes = 4096 : i64, decided = "", more_work = 0.25 : f64, time = 1.25 : f64, what = "2 layers full"} ]}} { … }
    ```
  }];
  let options = [Option<"gathersOpen", "gathers-open", "bool", "false", "Whether sharded weights are gathered once a step or by unit is decided by the budget (zero.gather_once=auto)">,
                 Option<"scheduleOpen", "schedule-open", "bool", "false", "The schedule of a pipeline is decided by the budget (--schedule=auto)">,
                 ListOption<"offloadsOpen", "offloads-open", "std::string", "Decisions on where states and activations lie that the budget makes: offload_optimizer, offload_parameters, offload_activations">,
                 ListOption<"spaces", "spaces", "std::string", "Where they may lie beside the device: host, nvme">];
}

def PredictMemoryPass : Pass<"search-predict-memory", "::mlir::ModuleOp"> {
  let summary = "Says what the plan will have in memory, before it is made";
  let description = [{
    Runs on `dist` IR of which all is decided. Where `predicted` of `accel.decisions` is
    there, which `--report=memory` and `--report=decisions` set, the bytes of each arena
    of each stage are told in it (`lib/Cost/Prediction.h`): a copy of the module, without
    most of the blocks that it repeats, is split and planned.

    ```mlir
    module attributes {accel.decisions = {predicted = []}} { … }
    // becomes
    module attributes {accel.decisions = {predicted = [{bytes = 4096 : i64, space = "device", stage = 0 : i64} ]}} { … }
    ```
  }];
}

def VerifyMemoryPass : Pass<"search-verify-memory", "::mlir::ModuleOp"> {
  let summary = "Checks that a plan fits the memory budget";
  let description = [{
    Runs at the end of phase `plan`: where `accel.decisions` has a `memory_budget`, the
    arenas of each stage, together, have at most so many bytes. Where it has a
    `host_budget`, that holds the arenas `host` and `pinned` instead; a `nvme_budget`
    holds the file. The error says what takes most.

    ```mlir
    module attributes {accel.decisions = {memory_budget = 4096 : i64}} {
      plan.program @s ranks 1 { plan.arena device : 2048 … }
    }
    ```
  }];
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
