// Four products with weights of their own, whose parts of a step are alike: of 8 x 16
// numbers with 16 x 16 each.
module attributes {accel.phase = "nn"} {
  nn.state @w0 : tensor<16x16xf32> = dense<0.5>
  nn.state @w1 : tensor<16x16xf32> = dense<0.25>
  nn.state @w2 : tensor<16x16xf32> = dense<-0.5>
  nn.state @w3 : tensor<16x16xf32> = dense<0.125>
  func.func @main(%x: tensor<16x16xf32> {nn.input = "x"},
                  %w0: tensor<16x16xf32> {nn.state = @w0}, %w1: tensor<16x16xf32> {nn.state = @w1},
                  %w2: tensor<16x16xf32> {nn.state = @w2}, %w3: tensor<16x16xf32> {nn.state = @w3})
      -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %fc0 = nn.matmul %x, %w0 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %fc1 = nn.matmul %fc0, %w1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %fc2 = nn.matmul %fc1, %w2 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %fc3 = nn.matmul %fc2, %w3 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc("fourth")
    %square = nn.mul %fc3, %fc3 : tensor<16x16xf32>
    %loss = nn.reduce sum %square dims [0, 1] : (tensor<16x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
