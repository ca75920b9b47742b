// A kernel on the rows of a padded weight that are no padding may be a tile of one on all rows, if some task computes that. That
// it has been tried, of the one argument that says so twice, makes it nothing that is computed.
//
// RUN: accel-fuzz-programs --seed 1 --check %s | FileCheck %s
// flags: --optimizer sgd --set optimizer.lr=1 --mesh pp=2,dp_shard=3 --schedule dualpipev --set zero_stage=1
// CHECK: layout: right
// CHECK: gradients: right

module attributes {accel.phase = "nn"} {
  nn.state @w.7 : tensor<2x1xf64> = dense<[[0.2578125], [0.7734375]]>
  nn.state @w.13 : tensor<2x1xf64> = dense<[[0.1484375], [2.343750e-02]]>
  func.func @main(%arg0: tensor<3x2x2x1xf64> {nn.input = "s46"}, %arg1: tensor<3x2x2xf64> {nn.input = "s29"}, %arg2: tensor<3x1x2x1xf64> {nn.input = "s16"}, %arg3: tensor<2x1xf64> {nn.state = @w.7}, %arg4: tensor<2x1xf64> {nn.state = @w.13}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %arg1, %arg3 : (tensor<3x2x2xf64>, tensor<2x1xf64>) -> tensor<3x2x1xf64>
    %1 = nn.reshape %0 : (tensor<3x2x1xf64>) -> tensor<3x2x1x1xf64>
    %2 = nn.transpose %1 [0, 2, 1, 3] : (tensor<3x2x1x1xf64>) -> tensor<3x1x2x1xf64>
    %result, %log_sum_exp = nn.attention %arg0, %arg2, %2 {scale = 1.000000e+00 : f64} : (tensor<3x2x2x1xf64>, tensor<3x1x2x1xf64>, tensor<3x1x2x1xf64>) -> (tensor<3x2x2x1xf64>, tensor<3x2x2xf64>)
    %3 = nn.reshape %result : (tensor<3x2x2x1xf64>) -> tensor<3x2x2xf64>
    %4 = nn.reduce sum %3 dims [1] : (tensor<3x2x2xf64>) -> tensor<3x2xf64>
    %5 = nn.matmul %4, %arg4 : (tensor<3x2xf64>, tensor<2x1xf64>) -> tensor<3x1xf64>
    %6 = nn.reshape %5 : (tensor<3x1xf64>) -> tensor<3xf64>
    %7 = nn.reduce sum %6 dims [0] : (tensor<3xf64>) -> tensor<f64>
    %8 = nn.mul %arg3, %arg3 : tensor<2x1xf64>
    %9 = nn.reduce sum %8 dims [0, 1] : (tensor<2x1xf64>) -> tensor<f64>
    %10 = nn.mul %9, %9 : tensor<f64>
    %11 = nn.add %7, %10 : tensor<f64>
    return %11 : tensor<f64>
  }
}
