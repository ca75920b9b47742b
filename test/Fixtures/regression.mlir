// A linear regression, written by hand: the smallest program that trains.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x2xf32> = dense<0.5>
  func.func @main(%x: tensor<8x4xf32> {nn.input = "x"}, %t: tensor<8x2xf32> {nn.input = "t"}, %w: tensor<4x2xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %d = nn.sub %y, %t : tensor<8x2xf32>
    %s = nn.mul %d, %d : tensor<8x2xf32>
    %sum = nn.reduce sum %s dims [0, 1] : (tensor<8x2xf32>) -> tensor<f32>
    %share = nn.constant dense<0.0625> : tensor<f32>
    %loss = nn.mul %sum, %share : tensor<f32>
    return %loss : tensor<f32>
  }
}
