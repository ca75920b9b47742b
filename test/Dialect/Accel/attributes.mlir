// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK: module attributes {accel.batch_dims = {shared = -1 : i64, x = 1 : i64},
// CHECK-SAME: accel.config = {keys = ["a.yaml:1: debug = true"], zero_stage = "2 (a.yaml:3 zero_stage)"},
// CHECK-SAME: accel.decisions = {micro_batches = 2 : i64}, accel.established = ["dist-annotate"],
// CHECK-SAME: accel.folded_parameters = [{name = "wte", shape = array<i64: 4, 2>}, {name = "lost"}],
// CHECK-SAME: accel.gradient_wire = bf16, accel.parameter_groups = [{lr_multiplier = 5.000000e-01 : f64, optimizer = "adamw", parameters = ["w"], weight_decay = 0.000000e+00 : f64, why = {lr_multiplier = "groups[w].lr"}}],
// CHECK-SAME: accel.phase = "decided", accel.row_mask = {equal = [{dim = 0 : i64, input = "scale"}], input = "row_mask", inputs = ["ids", "row_mask"]}, accel.seed = 7 : i64,
// CHECK-SAME: accel.separate_rows = {equal = [{dim = 1 : i64, input = "scale"}], ignored = array<i64: -100>, inputs = ["ids"], terms = [{denominator = "d", least = 1.000000e+00 : f64, numerator = "n", plus = 0.000000e+00 : f64}, {numerator = "m"}]},
// CHECK-SAME: accel.unshifted_labels = "labels", accel.untrainable = "its bias is not in it", accel.zero_stage = 3 : i64}
module attributes {
  accel.phase = "decided",
  accel.decisions = {micro_batches = 2 : i64},
  accel.established = ["dist-annotate"],
  accel.config = {zero_stage = "2 (a.yaml:3 zero_stage)", keys = ["a.yaml:1: debug = true"]},
  accel.gradient_wire = bf16,
  accel.parameter_groups = [{lr_multiplier = 0.5 : f64, optimizer = "adamw", parameters = ["w"], weight_decay = 0.0 : f64, why = {lr_multiplier = "groups[w].lr"}}],
  accel.row_mask = {input = "row_mask", inputs = ["ids", "row_mask"], equal = [{dim = 0 : i64, input = "scale"}]},
  accel.seed = 7 : i64,
  accel.separate_rows = {equal = [{dim = 1 : i64, input = "scale"}], ignored = array<i64: -100>, inputs = ["ids"], terms = [{denominator = "d", least = 1.000000e+00 : f64, numerator = "n", plus = 0.000000e+00 : f64}, {numerator = "m"}]},
  accel.folded_parameters = [{name = "wte", shape = array<i64: 4, 2>}, {name = "lost"}],
  accel.unshifted_labels = "labels",
  accel.batch_dims = {x = 1 : i64, shared = -1 : i64},
  accel.untrainable = "its bias is not in it",
  accel.zero_stage = 3 : i64
} {}
