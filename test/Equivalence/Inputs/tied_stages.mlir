// A table that the first and the last chunk of three read, and a residual that goes
// over the middle one.
module attributes {accel.phase = "nn"} {
  nn.state @e : tensor<16x16xf32> = dense<0.5>
  nn.state @w : tensor<16x16xf32> = dense<0.25>
  func.func @main(%x: tensor<2048x16xf32> {nn.input = "x"}, %e: tensor<16x16xf32> {nn.state = @e},
                  %w: tensor<16x16xf32> {nn.state = @w})
      -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %e : (tensor<2048x16xf32>, tensor<16x16xf32>) -> tensor<2048x16xf32>
    %1 = nn.tanh %0 : tensor<2048x16xf32>
    %product = nn.matmul %1, %w : (tensor<2048x16xf32>, tensor<16x16xf32>) -> tensor<2048x16xf32>
    %active = nn.tanh %product : tensor<2048x16xf32>
    %joined = nn.add %active, %0 : tensor<2048x16xf32>
    %scores = nn.matmul %joined, %e {transpose_rhs} : (tensor<2048x16xf32>, tensor<16x16xf32>) -> tensor<2048x16xf32>
    %2 = nn.mul %scores, %scores : tensor<2048x16xf32>
    %3 = nn.reduce sum %2 dims [0, 1] : (tensor<2048x16xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
