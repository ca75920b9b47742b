// Two products and a gelu with the bias added: what phases are compared with.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x8xf32> = dense<[
    [0.5, -1.0, 0.25, 2.0, 1.5, -0.5, 1.0, 0.75],
    [1.0, 0.5, -0.75, 1.25, -2.0, 0.25, 0.5, -1.5],
    [-0.5, 1.5, 1.0, -1.0, 0.75, 2.0, -0.25, 0.5],
    [0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0]]>
  nn.state @b : tensor<8xf32> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>
  func.func @main(%x: tensor<4x4xf32> {nn.input = "x"}, %w: tensor<4x8xf32> {nn.state = @w},
                  %b: tensor<8xf32> {nn.state = @b}) -> (tensor<4x4xf32> {nn.output = "y"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = nn.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
    %2 = nn.add %0, %1 : tensor<4x8xf32>
    %3 = nn.gelu erf %2 : tensor<4x8xf32>
    %4 = nn.matmul %3, %w {transpose_rhs} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
    return %4 : tensor<4x4xf32>
  }
}
