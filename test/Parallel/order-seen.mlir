// RUN: rm -rf %t && split-file %s %t
// RUN: not acc-opt %t/shared.mlir --dist-pad-states 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not acc-opt %t/sharded.mlir --dist-split-weights 2>&1 | FileCheck %s --check-prefix=SHARDED
// RUN: not acc-opt %t/sharded.mlir --dist-place-gathers 2>&1 | FileCheck %s --check-prefix=UNDECIDED
// RUN: not acc-opt %t/sharded.mlir --dist-keep-dealt 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not acc-opt %t/local.mlir --dist-plan-reshards 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not acc-opt %t/tasks.mlir --dist-compress-gradients 2>&1 | FileCheck %s --check-prefix=TASKS
// RUN: not acc-opt %t/plain.mlir --dist-plan-reshards 2>&1 | FileCheck %s --check-prefix=PLAIN

// What a program shows of itself holds, whoever has made it: text that says neither its phase nor which passes
// have run.
// SHARED: error: dist-pad-states comes too late: dist-shard-states has established what it would break (who shares which state), for what ranks do not divide stays whole: run it before dist-shard-states
// SHARDED: error: dist-split-weights comes too late: dist-materialize has established what it would break (types with shardings), for parts, heads and terms are those of what is split, and states divide what it leaves whole: run it before dist-materialize
// UNDECIDED: error: dist-place-gathers comes too early: expected what search-decide establishes ('accel.decisions'), found none: run search-decide before it
// WHOLE: error: dist-keep-dealt comes too early: expected what dist-localize establishes (one rank's program), found none: run dist-localize before it
// LOCAL: error: dist-plan-reshards comes too late: dist-localize has established what it would break (one rank's program), for it reads shardings: run it before dist-localize
// TASKS: error: dist-compress-gradients comes too late: local-split-tasks has established what it would break (tasks and their schedule), for it follows sums to 'nn.gradient', which tasks have not: run it before local-split-tasks
// PLAIN: error: dist-plan-reshards comes too early: expected what dist-materialize establishes (types with shardings), found none: run dist-materialize before it

//--- shared.mlir
module attributes {accel.zero_stage = 1 : i64} {}

//--- sharded.mlir
dist.mesh @mesh ["tp" = 2]
func.func @f(%x: tensor<4xf32, #dist.sharding<@mesh, [{tp}]>>) { return }

//--- local.mlir
dist.mesh @mesh ["tp" = 2]
func.func @f(%x: tensor<2xf32> {dist.layout = #dist.layout<@mesh [4 by {tp}]>}) { return }

//--- tasks.mlir
func.func @main() attributes {nn.entry, dist.task = #dist.task<forward stage 0>} { return }
dist.schedule @s entry @main micro_batches 1 { dist.stage 0 { dist.run @main[0] } }

//--- plain.mlir
func.func @f(%x: tensor<4xf32>) { return }
