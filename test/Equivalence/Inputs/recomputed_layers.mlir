// Three layers with a normalisation, an activation, a dropout and a residual each.
module attributes {accel.phase = "nn"} {
  nn.state @h.0.g : tensor<8xf32> = dense<1.5>
  nn.state @h.0.w : tensor<8x8xf32> = dense<0.5>
  nn.state @h.1.g : tensor<8xf32> = dense<1.25>
  nn.state @h.1.w : tensor<8x8xf32> = dense<0.25>
  nn.state @h.2.g : tensor<8xf32> = dense<0.75>
  nn.state @h.2.w : tensor<8x8xf32> = dense<0.125>
  func.func @main(%x: tensor<4x8xf32> {nn.input = "x"},
      %g0: tensor<8xf32> {nn.state = @h.0.g}, %w0: tensor<8x8xf32> {nn.state = @h.0.w},
      %g1: tensor<8xf32> {nn.state = @h.1.g}, %w1: tensor<8x8xf32> {nn.state = @h.1.w},
      %g2: tensor<8xf32> {nn.state = @h.2.g}, %w2: tensor<8x8xf32> {nn.state = @h.2.w})
      -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %zero = nn.constant dense<0.0> : tensor<8xf32>
    %l0n = nn.layer_norm %x, %g0, %zero dim 1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %l0y = nn.matmul %l0n, %w0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %l0a = nn.gelu tanh %l0y : tensor<4x8xf32>
    %l0d = nn.dropout %l0a ratio 0.5 site 0 : tensor<4x8xf32>
    %l0t = nn.tanh %l0d : tensor<4x8xf32>
    %h1 = nn.add %x, %l0t : tensor<4x8xf32>
    %l1n = nn.layer_norm %h1, %g1, %zero dim 1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %l1y = nn.matmul %l1n, %w1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %l1a = nn.gelu tanh %l1y : tensor<4x8xf32>
    %l1d = nn.dropout %l1a ratio 0.25 site 1 : tensor<4x8xf32>
    %l1t = nn.sigmoid %l1d : tensor<4x8xf32>
    %h2 = nn.add %h1, %l1t : tensor<4x8xf32>
    %l2n = nn.layer_norm %h2, %g2, %zero dim 1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %l2y = nn.matmul %l2n, %w2 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %l2a = nn.gelu tanh %l2y : tensor<4x8xf32>
    %l2d = nn.dropout %l2a ratio 0.5 site 2 : tensor<4x8xf32>
    %l2t = nn.tanh %l2d : tensor<4x8xf32>
    %h3 = nn.add %h2, %l2t : tensor<4x8xf32>
    %q = nn.mul %h3, %h3 : tensor<4x8xf32>
    %loss = nn.reduce sum %q dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
