// A row that is all there is, and that ranks have whole, meets itself where others' rows are padding:
// one element is equal to itself, as any number of equal elements is. So the factors of a second
// moment of one row, behind a weight of one row that ranks share with padding.
//
// RUN: accel-fuzz-programs --seed 1909 --check %s | FileCheck %s
// RUN: sed 's/zero_stage=2/zero_stage=3/' %s > %t.mlir && accel-fuzz-programs --seed 1909 --check %t.mlir | FileCheck %s
// flags: --optimizer adafactor --set optimizer.lr=0.1 --set optimizer.eps1=0.01 --mesh dp_shard=4 --set zero_stage=2
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<1x2xf64> = dense<[[-0.1953125, 0.1796875]]>
  func.func @main(%x: tensor<8x12x2xf64> {nn.input = "x"}, %w: tensor<1x2xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w {transpose_rhs} : (tensor<8x12x2xf64>, tensor<1x2xf64>) -> tensor<8x12x1xf64>
    %1 = nn.mul %0, %0 : tensor<8x12x1xf64>
    %2 = nn.reduce sum %1 dims [0, 1, 2] : (tensor<8x12x1xf64>) -> tensor<f64>
    return %2 : tensor<f64>
  }
}
