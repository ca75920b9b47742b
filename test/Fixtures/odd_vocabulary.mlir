// A bigram model whose table is its head, with a bias for each of 63 words: a vocabulary that no
// even number of ranks divides.
module attributes {accel.phase = "nn"} {
  nn.state @table : tensor<63x32xf32> = dense<0.01>
  nn.state @bias : tensor<63xf32> = dense<0.0>
  func.func @main(%ids: tensor<64xi64> {nn.input = "ids"}, %labels: tensor<64xi64> {nn.input = "labels"}, %z: tensor<64x32xf32> {nn.input = "z"}, %table: tensor<63x32xf32> {nn.state = @table}, %bias: tensor<63xf32> {nn.state = @bias}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %x = nn.gather %table, %ids dim 0 {non_negative} : (tensor<63x32xf32>, tensor<64xi64>) -> tensor<64x32xf32>
    %s = nn.add %x, %z : tensor<64x32xf32>
    %h = nn.tanh %s : tensor<64x32xf32>
    %products = nn.matmul %h, %table {transpose_rhs} : (tensor<64x32xf32>, tensor<63x32xf32>) -> tensor<64x63xf32>
    %each = nn.broadcast %bias : (tensor<63xf32>) -> tensor<64x63xf32>
    %logits = nn.add %products, %each : tensor<64x63xf32>
    %losses = nn.cross_entropy %logits, %labels {ignore_index = -100 : i64} : (tensor<64x63xf32>, tensor<64xi64>) -> tensor<64xf32>
    %sum = nn.reduce sum %losses dims [0] : (tensor<64xf32>) -> tensor<f32>
    %share = nn.constant dense<0.015625> : tensor<f32>
    %loss = nn.mul %sum, %share : tensor<f32>
    return %loss : tensor<f32>
  }
}
