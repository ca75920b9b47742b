// Where copies take longer than the computation, it waits until those of eight commands are under
// way at most, and says so; what the end of the forward makes stays.
// RUN: acc-opt %s --plan-offload-activations=space=host -o %t && FileCheck %s --input-file %t
// RUN: acc-opt %t --report=commands | FileCheck %s --check-prefix=REPORT
// RUN: acc-opt %t --report=commands --json | FileCheck %s --check-prefix=JSON
// CHECK: plan.body @forward engine cpu attributes {plan.copies_wait = {{[0-9.e-]+}} : f64} {
// CHECK: plan.copy @a0[1048576xf32] -> @a0.host[1048576xf32] on activations
// CHECK: plan.wait "activations_there_6"
// CHECK-NEXT: plan.kernel @spread(@x[8xf32]) -> @a14[1048576xf32] rows 1
// CHECK: plan.wait "activations_there_7"
// CHECK-NEXT: plan.kernel @spread(@x[8xf32]) -> @a15[1048576xf32] rows 1
// CHECK-NOT: plan.copy @a23[
// REPORT: copies do not hide behind @forward, which waits for them for {{[1-9][0-9]?}}.{{[0-9]}}% of its time
// JSON: "waiting_for_copies": {
// JSON-NEXT: "forward": 0.{{[0-9]+}}
module attributes {accel.phase = "plan"} {
func.func private @spread(%p: tensor<8xf32>) -> tensor<1048576xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %m = nn.broadcast %p : (tensor<8xf32>) -> tensor<131072x8xf32>
  %n = nn.reshape %m : (tensor<131072x8xf32>) -> tensor<1048576xf32>
  return %n : tensor<1048576xf32>
}
func.func private @first(%p: tensor<1048576xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.slice %p starts [0] sizes [8] steps [1] : (tensor<1048576xf32>) -> tensor<8xf32>
  return %n : tensor<8xf32>
}
plan.program @slow stage 0 ranks 1 {
  plan.buffer @x : input device 32 bytes
  plan.buffer @y : activation device 32 bytes
  plan.buffer @a0 : activation device 4194304 bytes
  plan.buffer @a1 : activation device 4194304 bytes
  plan.buffer @a2 : activation device 4194304 bytes
  plan.buffer @a3 : activation device 4194304 bytes
  plan.buffer @a4 : activation device 4194304 bytes
  plan.buffer @a5 : activation device 4194304 bytes
  plan.buffer @a6 : activation device 4194304 bytes
  plan.buffer @a7 : activation device 4194304 bytes
  plan.buffer @a8 : activation device 4194304 bytes
  plan.buffer @a9 : activation device 4194304 bytes
  plan.buffer @a10 : activation device 4194304 bytes
  plan.buffer @a11 : activation device 4194304 bytes
  plan.buffer @a12 : activation device 4194304 bytes
  plan.buffer @a13 : activation device 4194304 bytes
  plan.buffer @a14 : activation device 4194304 bytes
  plan.buffer @a15 : activation device 4194304 bytes
  plan.buffer @a16 : activation device 4194304 bytes
  plan.buffer @a17 : activation device 4194304 bytes
  plan.buffer @a18 : activation device 4194304 bytes
  plan.buffer @a19 : activation device 4194304 bytes
  plan.buffer @a20 : activation device 4194304 bytes
  plan.buffer @a21 : activation device 4194304 bytes
  plan.buffer @a22 : activation device 4194304 bytes
  plan.buffer @a23 : activation device 4194304 bytes
  plan.body @forward engine cpu {
    plan.kernel @spread(@x[8xf32]) -> @a0[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a1[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a2[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a3[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a4[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a5[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a6[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a7[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a8[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a9[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a10[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a11[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a12[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a13[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a14[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a15[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a16[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a17[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a18[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a19[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a20[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a21[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a22[1048576xf32] rows 1
    plan.kernel @spread(@x[8xf32]) -> @a23[1048576xf32] rows 1
  }
  plan.body @backward engine cpu {
    plan.kernel @first(@a23[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a22[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a21[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a20[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a19[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a18[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a17[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a16[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a15[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a14[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a13[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a12[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a11[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a10[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a9[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a8[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a7[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a6[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a5[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a4[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a3[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a2[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a1[1048576xf32]) -> @y[8xf32] rows 1
    plan.kernel @first(@a0[1048576xf32]) -> @y[8xf32] rows 1
  }
  plan.entry @step {
    plan.segment cpu capturable {
      plan.run @forward
      plan.run @backward
    }
  }
}
}
