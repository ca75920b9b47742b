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

// -----

// The host's memory has a budget of its own, which the other does not count then.
module attributes {accel.decisions = {host_budget = 64 : i64, memory_budget = 128 : i64, nvme_budget = 512 : i64}} {
  plan.program @apart stage 0 ranks 1 {
    plan.arena device 128 bytes
    plan.arena host 64 bytes
    plan.arena nvme 512 bytes
  }
}

// -----

module attributes {accel.decisions = {host_budget = 95 : i64, memory_budget = 128 : i64}} {
  // expected-error @below {{expected a plan of at most 95 B for each rank (offload.host_budget), found 96 B}}
  // expected-note @below {{at its peak it has 64 B of activations; less of it is offloaded with --set offload.activations=none, or to nvme}}
  plan.program @host stage 0 ranks 1 {
    plan.arena device 128 bytes
    plan.arena pinned 32 bytes
    plan.arena host 64 bytes
    plan.buffer @a : activation host at 0, 64 bytes
    plan.body @f engine cpu { plan.fill @a[16xf32] with 1.0 }
    plan.entry @forward { plan.segment cpu { plan.run @f } }
  }
}

// -----

module attributes {accel.decisions = {nvme_budget = 511 : i64}} {
  // expected-error @below {{expected a plan of at most 511 B for each rank (offload.nvme_budget), found 512 B}}
  // expected-note @below {{at its peak it has 256 B of moments, 256 B of parameters; less of it is offloaded with a smaller offload.ratio or --set offload.parameters=none, or to the host}}
  plan.program @file stage 0 ranks 1 {
    plan.arena nvme 512 bytes
    plan.buffer @m : state nvme at 0, 256 bytes source @m
    plan.buffer @w : state nvme at 256, 256 bytes source @w
  }
  nn.state moment @m : tensor<64xf32> = dense<0.0>
  nn.state @w : tensor<64xf32> = dense<0.0>
}

// -----

// States lie where a budget has put them: one is enough, where a ratio leaves others.
module attributes {accel.decisions = {offload_optimizer = "host", offload_parameters = "host"}} {
  nn.state @w : tensor<16xf32> = dense<0.0>
  nn.state moment @m : tensor<16xf32> = dense<0.0>
  nn.state moment @v : tensor<16xf32> = dense<0.0>
  // expected-error @below {{expected states in another arena than the device's, as 'offload_parameters' of 'accel.decisions' says, found none}}
  plan.program @here stage 0 ranks 1 {
    plan.arena device 128 bytes
    plan.arena host 64 bytes
    plan.buffer @w : state device at 0, 64 bytes source @w
    plan.buffer @m : state device at 64, 64 bytes source @m
    plan.buffer @v : state host at 0, 64 bytes source @v
  }
}
