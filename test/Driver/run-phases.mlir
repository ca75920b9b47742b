// RUN: acc-opt %s --split-input-file --accel-run-phases="to=local mesh=dp=2" --verify-diagnostics | FileCheck %s

// From the phase that the module says it has reached to the one asked for.
// CHECK: accel.phase = "local"
// CHECK: func.func @main(%{{.*}}: tensor<4x2xf32>
module attributes {accel.phase = "nn"} {
  func.func @main(%x: tensor<8x2xf32> {nn.input = "x"} loc("x")) -> (tensor<8x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %0 = nn.relu %x : tensor<8x2xf32> loc("relu")
    return %0 : tensor<8x2xf32>
  }
}

// -----

// expected-error @below {{cannot compile to phase 'local': the module is past it, in phase 'plan'}}
module attributes {accel.phase = "plan"} {}

// -----

// expected-error @below {{expected a module that says which phase it has reached, found no 'accel.phase'}}
module {}
