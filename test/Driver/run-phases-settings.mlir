// Settings have the names that they have for `--set`, and are refused where nothing obeys
// them.
// RUN: not acc-opt %s --accel-run-phases="to=dist set=zero_stage=all" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not acc-opt %s --accel-run-phases="to=dist set=zero.gather_once=1" 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: not acc-opt %s --accel-run-phases="to=dist set=zero_stage=4" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not acc-opt %s --accel-run-phases="to=dist set=zero_stge=2" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: acc-opt %s --accel-run-phases="to=dist set=zero_stage=0" | FileCheck %s
// CHECK: accel.phase = "dist"
module attributes {accel.phase = "nn"} {
  func.func @main(%x: tensor<8x2xf32> {nn.input = "x"}) -> (tensor<8x2xf32> {nn.output = "y"}) attributes {nn.entry} {
    return %x : tensor<8x2xf32>
  }
}

// TYPE: run-phases-settings.mlir:9:1: error: expected an integer as 'zero_stage', found 'all'
// FLAG: error: expected true, false or auto as 'zero.gather_once', found '1'
// RANGE: error: expected a ZeRO stage from 0 to 3, found 4
// UNKNOWN: error: expected 'train' with 'set=zero_stge=2', which is no setting of a pass
