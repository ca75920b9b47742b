// y = sum(exp(x w + b)), in float64: the model of expected.json.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<3x2xf64> = dense<[[0.5, -0.25], [1.0, 0.125], [-0.75, 2.0]]>
  nn.state @b : tensor<2xf64> = dense<[0.25, -0.5]>
  func.func @main(%x: tensor<3x2xf64> {nn.input = "x"}, %w: tensor<3x2xf64> {nn.state = @w}, %b: tensor<2xf64> {nn.state = @b})
      -> (tensor<f64> {nn.output = "y"}) attributes {nn.entry} {
    %p = nn.mul %x, %w : tensor<3x2xf64> loc("p")
    %c = nn.broadcast %b : (tensor<2xf64>) -> tensor<3x2xf64> loc("c")
    %s = nn.add %p, %c : tensor<3x2xf64> loc("s")
    %e = nn.exp %s : tensor<3x2xf64> loc("e")
    %y = nn.reduce sum %e dims [0, 1] : (tensor<3x2xf64>) -> tensor<f64> loc("y")
    return %y : tensor<f64>
  }
}
