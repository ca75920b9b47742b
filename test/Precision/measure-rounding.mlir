// Casts to f16 and 8 bits get an output each, of five numbers.
// RUN: acc-opt %s --train-measure-rounding | FileCheck %s
// RUN: sed 's/xf16/xbf16/g; s/<f16>/<bf16>/g; /%%codes = /d; s/%%codes/%%scaled/; s/xf8E4M3FN/xf32/g' %s > %t.mlir
// RUN: not acc-opt %t.mlir --train-measure-rounding 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected a step that rounds to float16 or to 8 bits for --metrics=precision, found none; add --mixed-precision=fp16 or fp8
// RUN: not acc-opt %fixtures/regression.mlir --accel-run-phases="to=train train loss=loss optimizer=sgd metrics=speed" 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: expected precision as 'metrics', found 'speed'

// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[X:[^ ]*]]: tensor<4x16xf32>
// CHECK-SAME: tensor<f32> {nn.output = "loss"}
// CHECK-SAME: tensor<5xf32> {nn.output = "metrics/fc.weight/fprop/left"}
// CHECK-SAME: tensor<5xf32> {nn.output = "metrics/half/left"}
// CHECK-SAME: tensor<i64> {nn.state = @"counter/call"}
module attributes {accel.phase = "train"} {
  nn.state counter @"counter/call" : tensor<i64> = dense<0>
  func.func @step(%x: tensor<4x16xf32> {nn.input = "x"}, %scale: tensor<f32> {nn.input = "scale"}, %w: tensor<16x2xf8E4M3FN> {nn.input = "w"}, %calls: tensor<i64> {nn.state = @"counter/call"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<i64> {nn.state = @"counter/call"}) attributes {nn.entry = #nn<entry step>} {
    // CHECK: %[[CODES:.*]] = nn.cast %[[SCALED:[^ ]*]] {saturate} : (tensor<4x16xf32>) -> tensor<4x16xf8E4M3FN>
    %spread = nn.broadcast %scale : (tensor<f32>) -> tensor<4x16xf32>
    %scaled = nn.mul %x, %spread : tensor<4x16xf32>
    %codes = nn.cast %scaled {saturate} : (tensor<4x16xf32>) -> tensor<4x16xf8E4M3FN>
    // Beyond 464, halfway between 448, which is even, and 480, which is no number.
    // CHECK: nn.constant dense<4.640000e+02>
    // CHECK: nn.compare lt
    // CHECK: %[[BACK:.*]] = nn.cast %[[CODES]] : (tensor<4x16xf8E4M3FN>) -> tensor<4x16xf32>
    // CHECK: nn.compare ne %[[SCALED]]
    // CHECK: nn.compare eq %[[BACK]]
    // The largest magnitude is of what is scaled.
    // CHECK: nn.abs %[[X]] : tensor<4x16xf32>
    // CHECK: nn.concat {{.*}} dim 0
    %y = nn.matmul %codes, %w {nn.product = #nn.product<"fc.weight", fprop>} : (tensor<4x16xf8E4M3FN>, tensor<16x2xf8E4M3FN>) -> tensor<4x2xf32>
    // CHECK: nn.constant dense<6.552000e+04>
    // CHECK: nn.compare le
    %half = nn.cast %y : (tensor<4x2xf32>) -> tensor<4x2xf16>
    %sum = nn.reduce sum %half dims [0, 1] : (tensor<4x2xf16>) -> tensor<f16> loc("half")
    %loss = nn.cast %sum : (tensor<f16>) -> tensor<f32>
    return %loss, %calls : tensor<f32>, tensor<i64>
  }
}
