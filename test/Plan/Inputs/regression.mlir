// Linear regression: loss = sum((x w - y)² m) / sum(m²).
module attributes {accel.phase = "train"} {
nn.state @w : tensor<4x2xf64> = dense<0.5>
nn.state counter @step : tensor<i64> = dense<0>
func.func @main(%x: tensor<8x4xf64> {nn.input = "x"}, %y: tensor<8x2xf64> {nn.input = "y"}, %m: tensor<8x2xf64> {nn.input = "m"}, %w: tensor<4x2xf64> {nn.state = @w}, %step: tensor<i64> {nn.state = @step}) -> (tensor<f64> {nn.output = "loss"}, tensor<f64> {nn.output = "grad_norm"}, tensor<4x2xf64> {nn.output = "w.grad"}, tensor<4x2xf64> {nn.state = @w}, tensor<i64> {nn.state = @step}) attributes {nn.entry = #nn<entry step>} {
  %p = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x2xf64>) -> tensor<8x2xf64>
  %d = nn.sub %p, %y : tensor<8x2xf64>
  %dm = nn.mul %d, %m : tensor<8x2xf64>
  %sq = nn.mul %dm, %d : tensor<8x2xf64>
  %s = nn.reduce sum %sq dims [0, 1] : (tensor<8x2xf64>) -> tensor<f64>
  %mm = nn.mul %m, %m : tensor<8x2xf64>
  %c = nn.reduce sum %mm dims [0, 1] : (tensor<8x2xf64>) -> tensor<f64>
  %loss = nn.div %s, %c : tensor<f64>
  %two = nn.constant dense<2.0> : tensor<f64>
  %k = nn.div %two, %c : tensor<f64>
  %kb = nn.broadcast %k : (tensor<f64>) -> tensor<8x2xf64>
  %dp = nn.mul %dm, %kb : tensor<8x2xf64>
  %dw = nn.matmul %x, %dp {transpose_lhs} : (tensor<8x4xf64>, tensor<8x2xf64>) -> tensor<4x2xf64>
  %g = nn.gradient %dw of @w : tensor<4x2xf64>
  %gg = nn.mul %g, %g : tensor<4x2xf64>
  %n2 = nn.reduce sum %gg dims [0, 1] : (tensor<4x2xf64>) -> tensor<f64>
  %n = nn.sqrt %n2 : tensor<f64>
  %lr = nn.constant dense<0.1> : tensor<4x2xf64>
  %u = nn.mul %g, %lr : tensor<4x2xf64>
  %w1 = nn.sub %w, %u : tensor<4x2xf64>
  %one = nn.constant dense<1> : tensor<i64>
  %s1 = nn.add %step, %one : tensor<i64>
  return %loss, %n, %g, %w1, %s1 : tensor<f64>, tensor<f64>, tensor<4x2xf64>, tensor<4x2xf64>, tensor<i64>
}
}
