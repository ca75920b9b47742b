// RUN: acc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected one of 'accel.phase', 'accel.decisions', 'accel.config', 'accel.seed', 'accel.folded_parameters', 'accel.parameter_groups', 'accel.unshifted_labels', 'accel.reports', 'accel.separate_rows', 'accel.row_mask', 'accel.batch_dims', 'accel.untrainable', 'accel.gradient_wire', 'accel.established', 'accel.zero_stage', found 'accel.phse'}}
module attributes {accel.phse = "nn"} {}

// -----

// expected-error @below {{expected 'accel.seed' on the module, found it on a func.func}}
func.func private @f() attributes {accel.seed = 1 : i64}

// -----

// expected-error @below {{expected 'accel.phase' to be one of nn, train, dist, decided, local and plan, found "late"}}
module attributes {accel.phase = "late"} {}

// -----

// expected-error @below {{expected 'accel.phase' to be one of nn, train, dist, decided, local and plan, found 3 : i64}}
module attributes {accel.phase = 3 : i64} {}

// -----

// expected-error @below {{expected 'accel.decisions' to be a dictionary, found "gpipe"}}
module attributes {accel.decisions = "gpipe"} {}

// -----

// expected-error @below {{expected 'accel.config' to be a dictionary of strings, and a list of strings as 'keys', found {zero_stage = 2 : i64}}}
module attributes {accel.config = {zero_stage = 2 : i64}} {}

// -----

// expected-error @below {{expected 'accel.config' to be a dictionary of strings, and a list of strings as 'keys', found {keys = [1]}}}
module attributes {accel.config = {keys = [1]}} {}

// -----

// expected-error @below {{expected 'accel.seed' to be an i64, found 1 : i32}}
module attributes {accel.seed = 1 : i32} {}

// -----

// expected-error @below {{expected 'accel.folded_parameters' to be a list of {name = "NAME", shape = array<i64: …>}, found [{shape = array<i64: 2>}]}}
module attributes {accel.folded_parameters = [{shape = array<i64: 2>}]} {}

// -----

// expected-error @below {{expected 'accel.folded_parameters' to be a list of {name = "NAME", shape = array<i64: …>}, found [{name = "w", shape = [2]}]}}
module attributes {accel.folded_parameters = [{name = "w", shape = [2]}]} {}

// -----

// expected-error @below {{expected 'accel.unshifted_labels' to be a string, found unit}}
module attributes {accel.unshifted_labels} {}

// -----

// expected-error @below {{expected 'accel.untrainable' to be a string, found true}}
module attributes {accel.untrainable = true} {}

// -----

// expected-error @below {{expected 'accel.batch_dims' to be {NAME = K : i64}, a dimension or -1 by each input's name, found {x = -2 : i64}}}
module attributes {accel.batch_dims = {x = -2 : i64}} {}

// -----

// expected-error @below {{expected 'accel.gradient_wire' to be f16 or bf16, found f64}}
module attributes {accel.gradient_wire = f64} {}

// -----

// expected-error @below {{expected 'accel.zero_stage' to be an i64 from 1 to 3, found 4 : i64}}
module attributes {accel.zero_stage = 4 : i64} {}

// -----

// expected-error @below {{expected 'accel.established' to be a list of strings, found [1]}}
module attributes {accel.established = [1]} {}

// -----

// expected-error @below {{expected 'accel.zero_stage' to be an i64 from 1 to 3, found 0 : i64}}
module attributes {accel.zero_stage = 0 : i64} {}

// -----

// expected-error @below {{expected 'accel.zero_stage' to be an i64 from 1 to 3, found 2 : i32}}
module attributes {accel.zero_stage = 2 : i32} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}, found {inputs = ["x"]}}}
module attributes {accel.separate_rows = {inputs = ["x"]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}, found {equal = [], ignored = array<i64>, inputs = ["x"]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{denominator = "d"}]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{numerator = 5 : i64}]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{denominator = "d", numerator = "n", plus = 1 : i64}]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{least = 1.000000e+00 : f64, numerator = "n"}]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{more = 1.000000e+00 : f64, denominator = "d", numerator = "n"}]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{denominator = "d", numerator = "n", plus = 1.000000e+00 : f32}]}} {}

// -----

// expected-error @below {{expected 'accel.separate_rows' to be {equal = [{dim = K, input = "NAME"}], ignored = array<i64: …>, inputs = ["NAME"], terms = [{denominator = "NAME", least = NUMBER, numerator = "NAME", plus = NUMBER}]}}}
module attributes {accel.separate_rows = {equal = [], ignored = array<i64>, inputs = ["x"], terms = [{denominator = "d", numerator = "n", plus = 0x7FF0000000000000 : f64}]}} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f32, optimizer = "sgd", parameters = ["w"], weight_decay = 0.0 : f64, why = {}}]} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f64, optimizer = 1 : i64, parameters = ["w"], weight_decay = 0.0 : f64, why = {}}]} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f64, optimizer = "sgd", parameters = ["w", 1 : i64], weight_decay = 0.0 : f64, why = {}}]} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f64, optimizer = "sgd", parameters = ["w"], why = {}}]} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f64, optimizer = "sgd", parameters = ["w"], weight_decay = 0.0 : f64, why = {weight_decay = 1 : i64}}]} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f64, optimizer = "sgd", parameters = ["w"], weight_decay = 0.0 : f64, why = {betas = "groups[w].betas"}}]} {}

// -----

// expected-error @below {{expected 'accel.parameter_groups' to be a list of {lr_multiplier = NUMBER, optimizer = "NAME", parameters = ["NAME"], weight_decay = NUMBER, why = {KEY = "SETTING"}}}}
module attributes {accel.parameter_groups = [{lr_multiplier = 1.0 : f64, optimizer = "sgd", parameters = ["w"], weight_decay = 0.0 : f64, why = {}, more = unit}]} {}

// -----

// expected-error @below {{expected 'accel.reports' to be a list of different names, 'loss' and 'verdict' among them}}
module attributes {accel.reports = ["loss", "lr"]} {}

// -----

// expected-error @below {{expected 'accel.reports' to be a list of different names, 'loss' and 'verdict' among them}}
module attributes {accel.reports = ["loss", "verdict", "loss"]} {}

// -----

// expected-error @below {{expected 'accel.row_mask' to be {equal = [{dim = K, input = "NAME"}], input = "NAME", inputs = ["NAME"]}, found {equal = [], inputs = ["x"]}}}
module attributes {accel.row_mask = {equal = [], inputs = ["x"]}} {}
