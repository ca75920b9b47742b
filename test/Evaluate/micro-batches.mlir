// A local function runs once per micro-batch: rows are numbered by micro-batch
// first, then by rank, and every piece says which it is.
// RUN: rm -rf %t && mkdir -p %t/in %t/expected
// RUN: %python %S/../Scripts/write_npy.py %t/in/x.npy "<f8" 4,1 1 2 3 4
// RUN: %python %S/../Scripts/write_npy.py %t/expected/y.npy "<f8" 4,1 11 12 13 14
// RUN: %python %S/../Scripts/write_npy.py %t/expected/i.npy "<i8" 4 0 1 2 3
// RUN: acc-eval %s --inputs %t/in --expect %t/expected --tolerance 0

// What all micro-batches hold must be equal.
// RUN: sed -e 's/, dist.layout = #dist.layout<@m \[4 by {mb, dp}\]>//' %s > %t/m.mlir
// RUN: not acc-eval %t/m.mlir --inputs %t/in 2>&1 | FileCheck %s
// CHECK: error: expected equal copies of 'i' on all ranks, found other bits on rank 1
module {
  dist.mesh @m ["mb" = 2, "dp" = 2]
  func.func @main(%x: tensor<1x1xf64> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {mb, dp}, 1]>})
      -> (tensor<1x1xf64> {nn.output = "y", dist.layout = #dist.layout<@m [4 by {mb, dp}, 1]>},
          tensor<1xi64> {nn.output = "i", dist.layout = #dist.layout<@m [4 by {mb, dp}]>}) {
    %c = nn.constant dense<10.0> : tensor<1x1xf64>
    %0 = nn.add %x, %c : tensor<1x1xf64>
    %1 = dist.axis_index @m {mb, dp} : tensor<i64>
    %2 = nn.reshape %1 : (tensor<i64>) -> tensor<1xi64>
    return %0, %2 : tensor<1x1xf64>, tensor<1xi64>
  }
}

// Several tasks are no loop over the entry.
// RUN: sed -e 's/^  dist.mesh.*/&\n func.func private @task() attributes {dist.task = #dist.task<forward stage 0>} { return }\n dist.schedule @s entry @main micro_batches 2 { dist.stage 0 { dist.run @task[0] } }/' %s > %t/s.mlir
// RUN: not acc-eval %t/s.mlir --inputs %t/in 2>&1 | FileCheck %s --check-prefix=TASKS
// TASKS: error: 'dist.run' op expected the entry @main as the only task, found @task
