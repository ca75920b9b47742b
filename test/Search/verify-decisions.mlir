// RUN: acc-opt %s --split-input-file --search-verify --verify-diagnostics

module attributes {accel.decisions = {micro_batches = 1 : i64, slots = 1 : i64}} {
  func.func @main() attributes {nn.entry, dist.task = #dist.task<forward stage 0>} { return }
  dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] slots [0] } }
}

// -----

module attributes {accel.decisions = {micro_batches = 1 : i64, slots = 1 : i64}} {
  func.func @main() attributes {nn.entry, dist.task = #dist.task<forward stage 0>} { return }
  // expected-error @below {{expected the decided 1 micro-batches, found 2}}
  dist.schedule @s entry @main micro_batches 2 { dist.stage 0 { dist.run @main[0] slots [0] dist.run @main[1] slots [0] } }
}

// -----

module attributes {accel.decisions = {micro_batches = 1 : i64, slots = 1 : i64}} {
  func.func @main() attributes {nn.entry, dist.task = #dist.task<forward stage 0>} { return }
  // expected-error @below {{expected one of the decided 1 slots, found 1}}
  dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] slots [1] } }
}

// -----

// expected-error @below {{expected 'accel.decisions' with micro_batches and slots, found none}}
module {}
