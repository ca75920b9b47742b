// A mean over the labels that count, of which rows have different numbers.
module attributes {accel.phase = "nn"} {
nn.state @w : tensor<8x5xf32> = dense<1.0>
func.func @main(%ids: tensor<4x3xi64> {nn.input = "ids"}, %labels: tensor<4x3xi64> {nn.input = "labels"}, %w: tensor<8x5xf32> {nn.state = @w}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %ignored = nn.constant dense<-100> : tensor<12xi64>
  %x = nn.gather %w, %ids dim 0 : (tensor<8x5xf32>, tensor<4x3xi64>) -> tensor<4x3x5xf32>
  %flat = nn.reshape %x : (tensor<4x3x5xf32>) -> tensor<12x5xf32>
  %l = nn.reshape %labels : (tensor<4x3xi64>) -> tensor<12xi64>
  %losses = nn.cross_entropy %flat, %l : (tensor<12x5xf32>, tensor<12xi64>) -> tensor<12xf32>
  %sum = nn.reduce sum %losses dims [0] : (tensor<12xf32>) -> tensor<f32>
  %is = nn.compare ne %l, %ignored : tensor<12xi64>
  %ones = nn.cast %is : (tensor<12xi1>) -> tensor<12xf32>
  %count = nn.reduce sum %ones dims [0] : (tensor<12xf32>) -> tensor<f32>
  %loss = nn.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}
}
