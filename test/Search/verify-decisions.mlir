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

// expected-error @below {{expected a number of micro_batches and the name of a schedule in 'accel.decisions', found "offload" = []}}
module attributes {accel.decisions = {offload = []}} {}

// -----

// expected-error @below {{expected a number of micro_batches and the name of a schedule in 'accel.decisions', found "micro_batches" = "4"}}
module attributes {accel.decisions = {micro_batches = "4"}} {}
