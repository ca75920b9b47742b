module attributes {accel.phase = "nn"} {
  nn.state @wte.weight : tensor<2x2xf32> = dense<1.0> {aliases = ["head/weight"]}
  func.func @main(%x: tensor<2x2xf32> {nn.input = "x"}, %w: tensor<2x2xf32> {nn.state = @wte.weight})
      -> (tensor<f32> {nn.output = "y"}) attributes {nn.entry} {
    %p = nn.mul %x, %w : tensor<2x2xf32> loc("p")
    %y = nn.reduce sum %p dims [0, 1] : (tensor<2x2xf32>) -> tensor<f32> loc("y")
    return %y : tensor<f32>
  }
}
