// RUN: acc-opt %s --split-input-file --search-decide --verify-diagnostics | FileCheck %s
// RUN: acc-opt %s --split-input-file --search-decide=gather-once --verify-diagnostics | FileCheck %s --check-prefix=ONCE

// A forward program runs as one task and keeps nothing: there is nothing to say.
// CHECK: module attributes {accel.decisions = {}, accel.phase = "dist"}
// ONCE: module attributes {accel.decisions = {gathers = "once"}, accel.phase = "dist"}
module attributes {accel.phase = "dist"} {}

// -----

// expected-error @below {{expected a module in phase 'dist' to decide on, found nn}}
module attributes {accel.phase = "nn"} {}

// -----

// expected-error @below {{expected a module in phase 'dist' to decide on, found none}}
module {}
