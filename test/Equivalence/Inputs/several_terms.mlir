// A weight that is read twice by what is made of the batch, and in the loss itself.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<16x16xf64> = dense<0.25>
  nn.state @v : tensor<16x16xf64> = dense<0.25>
  nn.state @u : tensor<16x2xf64> = dense<0.5>
  func.func @main(%x: tensor<8x2x16xf64> {nn.input = "x"}, %w: tensor<16x16xf64> {nn.state = @w}, %v: tensor<16x16xf64> {nn.state = @v}, %u: tensor<16x2xf64> {nn.state = @u}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w : (tensor<8x2x16xf64>, tensor<16x16xf64>) -> tensor<8x2x16xf64>
    %1 = nn.matmul %0, %w : (tensor<8x2x16xf64>, tensor<16x16xf64>) -> tensor<8x2x16xf64>
    %2 = nn.matmul %1, %v {transpose_rhs} : (tensor<8x2x16xf64>, tensor<16x16xf64>) -> tensor<8x2x16xf64>
    %3 = nn.matmul %2, %u : (tensor<8x2x16xf64>, tensor<16x2xf64>) -> tensor<8x2x2xf64>
    %4 = nn.reduce sum %3 dims [0, 1, 2] : (tensor<8x2x2xf64>) -> tensor<f64>
    %5 = nn.reduce sum %w dims [0, 1] : (tensor<16x16xf64>) -> tensor<f64>
    %6 = nn.add %4, %5 : tensor<f64>
    return %6 : tensor<f64>
  }
}
