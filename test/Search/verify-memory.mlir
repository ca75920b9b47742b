// RUN: acc-opt %s --split-input-file --search-verify-memory --verify-diagnostics

module attributes {accel.decisions = {memory_budget = 192 : i64}} {
  plan.program @fits stage 0 ranks 1 {
    plan.arena device 192 bytes
    plan.buffer @a : activation device at 0, 64 bytes
    plan.body @f engine cpu { plan.fill @a[16xf32] with 1.0 }
    plan.entry @forward { plan.segment cpu { plan.run @f } }
  }
}

// -----

// All arenas of a rank together, of each stage.
module attributes {accel.decisions = {memory_budget = 191 : i64}} {
  plan.program @small stage 0 ranks 1 {
    plan.arena device 64 bytes
    plan.buffer @a : activation device at 0, 64 bytes
  }
  // expected-error @below {{expected a plan of at most 191 B for each rank (--memory-budget), found 192 B}}
  // expected-note @below {{at its peak it has 64 B of activations; --memory-budget looks for what fits where --recompute is left out}}
  plan.program @large stage 1 ranks 1 {
    plan.arena device 128 bytes
    plan.arena host 64 bytes
    plan.buffer @a : activation device at 0, 64 bytes
    plan.body @f engine cpu { plan.fill @a[16xf32] with 1.0 }
    plan.entry @forward { plan.segment cpu { plan.run @f } }
  }
}

// -----

// Nobody gave a budget.
module attributes {accel.decisions = {}} {
  plan.program @any stage 0 ranks 1 {
    plan.arena device 192 bytes
  }
}
