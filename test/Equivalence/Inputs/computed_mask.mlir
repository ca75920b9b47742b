// A mask of columns that are computed row by row, as those of padded places are, beside causal
// attention, whose rows a ring deals out.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x4xf64> = dense<[[0.5, -0.25, 0.125, 0.75], [-0.5, 0.25, 0.375, 0.125], [0.625, -0.125, 0.25, 0.5], [0.75, 0.5, -0.375, 0.25]]>
  func.func @main(%x: tensor<2x8x4xf64> {nn.input = "x"}, %keep: tensor<2x8xf64> {nn.input = "keep"}, %w: tensor<4x4xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %keeps = nn.reshape %keep : (tensor<2x8xf64>) -> tensor<2x8x1xf64>
    %all = nn.broadcast %keeps : (tensor<2x8x1xf64>) -> tensor<2x8x4xf64>
    %kept = nn.mul %x, %all : tensor<2x8x4xf64>
    %0 = nn.matmul %kept, %w : (tensor<2x8x4xf64>, tensor<4x4xf64>) -> tensor<2x8x4xf64>
    %1 = nn.reshape %0 : (tensor<2x8x4xf64>) -> tensor<2x8x2x2xf64>
    %2 = nn.transpose %1 [0, 2, 1, 3] : (tensor<2x8x2x2xf64>) -> tensor<2x2x8x2xf64>
    %b, %m = nn.attention %2, %2, %2 {causal, scale = 0.5 : f64} : (tensor<2x2x8x2xf64>, tensor<2x2x8x2xf64>, tensor<2x2x8x2xf64>) -> (tensor<2x2x8x2xf64>, tensor<2x2x8xf64>)
    %3 = nn.exp %keep : tensor<2x8xf64>
    %mask = nn.reshape %3 : (tensor<2x8xf64>) -> tensor<2x1x1x8xf64>
    %a, %l = nn.attention %b, %b, %b mask %mask {scale = 0.5 : f64} : (tensor<2x2x8x2xf64>, tensor<2x2x8x2xf64>, tensor<2x2x8x2xf64>, tensor<2x1x1x8xf64>) -> (tensor<2x2x8x2xf64>, tensor<2x2x8xf64>)
    %4 = nn.exp %a : tensor<2x2x8x2xf64>
    %5 = nn.reduce sum %4 dims [1, 2, 3] : (tensor<2x2x8x2xf64>) -> tensor<2xf64>
    %6 = nn.reduce sum %5 dims [0] : (tensor<2xf64>) -> tensor<f64>
    return %6 : tensor<f64>
  }
}
