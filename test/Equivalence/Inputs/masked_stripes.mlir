// Attention whose scores a mask is added to, and then causal attention, whose rows a ring deals out.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x4xf64> = dense<[[0.5, -0.25, 0.125, 0.75], [-0.5, 0.25, 0.375, 0.125], [0.625, -0.125, 0.25, 0.5], [0.75, 0.5, -0.375, 0.25]]>
  func.func @main(%x: tensor<2x4x4xf64> {nn.input = "x"}, %mask: tensor<2x1x4x4xf64> {nn.input = "mask"}, %w: tensor<4x4xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w : (tensor<2x4x4xf64>, tensor<4x4xf64>) -> tensor<2x4x4xf64>
    %1 = nn.reshape %0 : (tensor<2x4x4xf64>) -> tensor<2x4x2x2xf64>
    %2 = nn.transpose %1 [0, 2, 1, 3] : (tensor<2x4x2x2xf64>) -> tensor<2x2x4x2xf64>
    %a, %l = nn.attention %2, %2, %2 mask %mask {scale = 0.5 : f64} : (tensor<2x2x4x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x2xf64>, tensor<2x1x4x4xf64>) -> (tensor<2x2x4x2xf64>, tensor<2x2x4xf64>)
    %b, %m = nn.attention %a, %a, %a {causal, scale = 0.5 : f64} : (tensor<2x2x4x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x2xf64>) -> (tensor<2x2x4x2xf64>, tensor<2x2x4xf64>)
    %3 = nn.exp %b : tensor<2x2x4x2xf64>
    %4 = nn.reduce sum %3 dims [1, 2, 3] : (tensor<2x2x4x2xf64>) -> tensor<2xf64>
    %5 = nn.reduce sum %4 dims [0] : (tensor<2xf64>) -> tensor<f64>
    return %5 : tensor<f64>
  }
}
