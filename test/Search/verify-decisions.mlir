// RUN: acc-opt %s --split-input-file --search-verify --verify-diagnostics

module attributes {accel.decisions = {}} {
  func.func @main() attributes {nn.entry, dist.task = #dist.task<forward stage 0>} { return }
  dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] } }
}

// -----

module attributes {accel.decisions = {}} {
  func.func @main() attributes {nn.entry, dist.task = #dist.task<forward stage 0>} { return }
  // expected-error @below {{expected the decided 1 micro-batches, found 2}}
  dist.schedule @s entry @main micro_batches 2 { dist.stage 0 { dist.run @main[0] dist.run @main[1] } }
}

// -----

module attributes {accel.decisions = {micro_batches = 4 : i64, schedule = "1f1b:2"}} {
  func.func private @step() attributes {nn.entry = #nn<entry step>}
  func.func private @f() attributes {dist.task = #dist.task<forward stage 0>} { return }
  func.func private @b() attributes {dist.task = #dist.task<backward stage 0>} { return }
  dist.schedule @s entry @step micro_batches 4 {
    // expected-error @below {{expected at most 2 micro-batches in flight in schedule 1f1b:2, found 3}}
    dist.stage 0 {
      dist.loop 2 { dist.run @f[turn] }
      dist.loop 2 { dist.run @f[turn + 2] dist.run @b[turn] }
      dist.loop 2 { dist.run @b[turn + 2] }
    }
  }
}

// -----

// expected-error @below {{expected 'accel.decisions', found none}}
module {}

// -----

// A schedule that nobody knows is none.
// expected-error @below {{expected a schedule sequential, gpipe or 1f1b:D in 'accel.decisions', found '1f1b'}}
module attributes {accel.decisions = {schedule = "1f1b"}} {}

// -----

// expected-error @below {{expected a number of micro_batches, the name of a schedule, the numbers in_flight, gathers "once", memory_budget, host_budget, nvme_budget, offload_optimizer, offload_parameters and offload_activations "host" or "nvme", and the lists order, considered, predicted and frontier in 'accel.decisions', found "offload" = []}}
module attributes {accel.decisions = {offload = []}} {}

// -----

// expected-error @below {{expected a number of micro_batches, the name of a schedule, the numbers in_flight, gathers "once", memory_budget, host_budget, nvme_budget, offload_optimizer, offload_parameters and offload_activations "host" or "nvme", and the lists order, considered, predicted and frontier in 'accel.decisions', found "micro_batches" = "4"}}
module attributes {accel.decisions = {micro_batches = "4"}} {}

// -----

// expected-error @below {{expected a number of micro_batches, the name of a schedule, the numbers in_flight, gathers "once", memory_budget, host_budget, nvme_budget, offload_optimizer, offload_parameters and offload_activations "host" or "nvme", and the lists order, considered, predicted and frontier in 'accel.decisions', found "gathers" = "twice"}}
module attributes {accel.decisions = {gathers = "twice"}} {}

// -----

// Once a step, and not by unit; a gather of something else is no matter.
module attributes {accel.decisions = {gathers = "once"}} {
  dist.mesh @mesh ["dp_shard" = 2]
  func.func private @f(%x: tensor<2x4xf32>, %w: tensor<2x4xf32>) attributes {dist.task = #dist.task<forward stage 0>} {
    %0 = dist.all_gather %x over @mesh {dp_shard} dim 0 {dist.inserted_by = "dist-materialize"} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{expected weights to be gathered once a step, as decided, found a gather of unit "h.0"}}
    %1 = dist.all_gather %w over @mesh {dp_shard} dim 0 {dist.inserted_by = "dist-place-gathers", dist.unit = "h.0"} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

// Of a backward in two parts the second ends a micro-batch, or the first where there is no other.
module attributes {accel.decisions = {micro_batches = 4 : i64, schedule = "zb-h1"}} {
  dist.mesh @mesh ["mb" = 4, "pp" = 2]
  func.func private @step() attributes {nn.entry = #nn<entry step>}
  func.func private @f0() attributes {dist.task = #dist.task<forward stage 0>} { return }
  func.func private @i0() attributes {dist.task = #dist.task<backward_input stage 0>} { return }
  func.func private @f1() attributes {dist.task = #dist.task<forward stage 1>} { return }
  func.func private @i1() attributes {dist.task = #dist.task<backward_input stage 1>} { return }
  func.func private @w1() attributes {dist.task = #dist.task<backward_weight stage 1>} { return }
  dist.schedule @s entry @step micro_batches 4 {
    dist.stage 0 {
      dist.run @f0[0]
      dist.loop 3 { dist.run @f0[turn + 1] dist.run @i0[turn] }
      dist.run @i0[3]
    }
    // expected-error @below {{expected at most 2 micro-batches in flight in schedule zb-h1, found 3}}
    dist.stage 1 {
      dist.loop 2 { dist.run @f1[turn] dist.run @i1[turn] }
      dist.loop 2 { dist.run @f1[turn + 2] dist.run @i1[turn + 2] dist.run @w1[turn] }
      dist.loop 2 { dist.run @w1[turn + 2] }
    }
  }
}

// -----

module attributes {accel.decisions = {micro_batches = 4 : i64, schedule = "zb-h1"}} {
  dist.mesh @mesh ["mb" = 4, "pp" = 2]
  func.func private @step() attributes {nn.entry = #nn<entry step>}
  func.func private @f0() attributes {dist.task = #dist.task<forward stage 0>} { return }
  func.func private @w0() attributes {dist.task = #dist.task<backward_weight stage 0>} { return }
  func.func private @f1() attributes {dist.task = #dist.task<forward stage 1>} { return }
  func.func private @i1() attributes {dist.task = #dist.task<backward_input stage 1>} { return }
  dist.schedule @s entry @step micro_batches 4 {
    dist.stage 0 {
      dist.loop 2 { dist.run @f0[turn] }
      dist.loop 2 { dist.run @w0[turn] dist.run @f0[turn + 2] }
      dist.loop 2 { dist.run @w0[turn + 2] }
    }
    // expected-error @below {{expected at most 2 micro-batches in flight in schedule zb-h1, found 4}}
    dist.stage 1 {
      dist.loop 4 { dist.run @f1[turn] }
      dist.loop 4 { dist.run @i1[turn] }
    }
  }
}

// -----

// Whatever schedule is found, it keeps no more than 1F1B on its first stage.
module attributes {accel.decisions = {micro_batches = 3 : i64, schedule = "auto"}} {
  dist.mesh @mesh ["mb" = 3, "pp" = 2]
  func.func private @step() attributes {nn.entry = #nn<entry step>}
  func.func private @f0() attributes {dist.task = #dist.task<forward stage 0>} { return }
  func.func private @b0() attributes {dist.task = #dist.task<backward stage 0>} { return }
  func.func private @f1() attributes {dist.task = #dist.task<forward stage 1>} { return }
  func.func private @b1() attributes {dist.task = #dist.task<backward stage 1>} { return }
  dist.schedule @s entry @step micro_batches 3 {
    dist.stage 0 {
      dist.run @f0[0]
      dist.loop 2 { dist.run @f0[turn + 1] dist.run @b0[turn] }
      dist.run @b0[2]
    }
    // expected-error @below {{expected at most 2 micro-batches in flight in schedule auto, found 3}}
    dist.stage 1 {
      dist.loop 3 { dist.run @f1[turn] }
      dist.loop 3 { dist.run @b1[turn] }
    }
  }
}

// -----

// Less may be decided than the schedule has.
module attributes {accel.decisions = {in_flight = array<i64: 1>, micro_batches = 4 : i64, schedule = "1f1b:2"}} {
  func.func private @step() attributes {nn.entry = #nn<entry step>}
  func.func private @f() attributes {dist.task = #dist.task<forward stage 0>} { return }
  func.func private @b() attributes {dist.task = #dist.task<backward stage 0>} { return }
  dist.schedule @s entry @step micro_batches 4 {
    // expected-error @below {{expected at most 1 micro-batches in flight in schedule 1f1b:2, found 2}}
    dist.stage 0 {
      dist.run @f[0]
      dist.loop 3 { dist.run @f[turn + 1] dist.run @b[turn] }
      dist.run @b[3]
    }
  }
}

// -----

// expected-error @below {{expected 'in_flight' of 'accel.decisions' for 1 stage, found it for 2}}
module attributes {accel.decisions = {in_flight = array<i64: 1, 1>}} {}

// -----

// expected-error @below {{expected for 'schedule' 'gpipe', which was told in 'considered' of 'accel.decisions', found '1f1b:2'}}
module attributes {accel.decisions = {micro_batches = 4 : i64, schedule = "1f1b:2",
    considered = [{decision = "schedule", of = "step", reason = "--schedule", chosen = {value = "gpipe"}, others = []}]}} {}

// -----

// expected-error @below {{expected in 'considered' of 'accel.decisions' a 'decision', what it is 'of', a 'reason', and a value with its seconds and bytes in 'chosen' and each of 'others', found {chosen = {}, decision = "schedule"}}}
module attributes {accel.decisions = {considered = [{decision = "schedule", chosen = {}}]}} {}

// -----

// expected-error @below {{expected a number of micro_batches, the name of a schedule, the numbers in_flight, gathers "once", memory_budget, host_budget, nvme_budget, offload_optimizer, offload_parameters and offload_activations "host" or "nvme", and the lists order, considered, predicted and frontier in 'accel.decisions', found "offload_optimizer" = "disk"}}
module attributes {accel.decisions = {offload_optimizer = "disk"}} {}
