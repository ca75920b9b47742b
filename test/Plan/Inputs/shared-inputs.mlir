// Positions that all samples share, read by the forward and by the gradient.
module attributes {accel.phase = "nn"} {
  nn.state @places : tensor<3x2xf64> = dense<[[0.5, -0.25], [1.0, 0.75], [-0.5, 0.125]]>
  nn.state @w : tensor<2x2xf64> = dense<[[0.25, 0.5], [-0.75, 0.375]]>
  func.func @main(%x: tensor<4x3x2xf64> {nn.input = "x"}, %positions: tensor<3xi64> {nn.input = "positions"}, %places: tensor<3x2xf64> {nn.state = @places}, %w: tensor<2x2xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.gather %places, %positions dim 0 : (tensor<3x2xf64>, tensor<3xi64>) -> tensor<3x2xf64>
    %1 = nn.broadcast %0 : (tensor<3x2xf64>) -> tensor<4x3x2xf64>
    %2 = nn.add %x, %1 : tensor<4x3x2xf64>
    %3 = nn.matmul %2, %w : (tensor<4x3x2xf64>, tensor<2x2xf64>) -> tensor<4x3x2xf64>
    %4 = nn.tanh %3 : tensor<4x3x2xf64>
    %5 = nn.reduce sum %4 dims [0, 1, 2] : (tensor<4x3x2xf64>) -> tensor<f64>
    return %5 : tensor<f64>
  }
}
