// A vocabulary of 97, read by the first and the last chunk of two.
module attributes {accel.phase = "nn"} {
  nn.state @e : tensor<97x16xf32> = dense<0.5>
  nn.state @w : tensor<16x16xf32> = dense<0.25>
  func.func @main(%ids: tensor<8xi64> {nn.input = "ids"}, %labels: tensor<8xi64> {nn.input = "labels"},
                  %e: tensor<97x16xf32> {nn.state = @e}, %w: tensor<16x16xf32> {nn.state = @w})
      -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.gather %e, %ids dim 0 : (tensor<97x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
    %1 = nn.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = nn.tanh %1 : tensor<8x16xf32>
    %3 = nn.matmul %2, %e {transpose_rhs} : (tensor<8x16xf32>, tensor<97x16xf32>) -> tensor<8x97xf32>
    %4 = nn.cross_entropy %3, %labels : (tensor<8x97xf32>, tensor<8xi64>) -> tensor<8xf32>
    %5 = nn.reduce sum %4 dims [0] : (tensor<8xf32>) -> tensor<f32>
    return %5 : tensor<f32>
  }
}
