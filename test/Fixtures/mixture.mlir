// A mixture of four experts, of which each token asks two, beside a shared one: widths that are
// alike, so that a wrong matrix, row or dimension has the right type.
module attributes {accel.phase = "nn"} {
  nn.state @shared : tensor<8x8xf32> = dense<0.0>
  nn.state @gate : tensor<4x8xf32> = dense<0.0>
  nn.state @up : tensor<4x8x8xf32> = dense<0.0>
  nn.state @down : tensor<4x8x8xf32> = dense<0.0>
  func.func @main(%x: tensor<8x4x8xf32> {nn.input = "x"}, %y: tensor<8x4x8xf32> {nn.input = "y"}, %shared: tensor<8x8xf32> {nn.state = @shared}, %gate: tensor<4x8xf32> {nn.state = @gate}, %up: tensor<4x8x8xf32> {nn.state = @up}, %down: tensor<4x8x8xf32> {nn.state = @down}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    %mixed = nn.matmul %x, %shared : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
    %tokens = nn.reshape %mixed : (tensor<8x4x8xf32>) -> tensor<32x8xf32>
    %logits = nn.matmul %tokens, %gate {transpose_rhs} : (tensor<32x8xf32>, tensor<4x8xf32>) -> tensor<32x4xf32>
    %odds = nn.softmax %logits dim 1 : tensor<32x4xf32>
    %chosen = nn.top_k %odds k 2 : (tensor<32x4xf32>) -> tensor<32x2xi64>
    %at = nn.reshape %chosen : (tensor<32x2xi64>) -> tensor<32x2x1xi64>
    %share = nn.gather_nd %odds, %at {batch_dims = 1 : i64} : (tensor<32x4xf32>, tensor<32x2x1xi64>) -> tensor<32x2xf32>
    %experts = nn.reshape %chosen : (tensor<32x2xi64>) -> tensor<64xi64>
    %one = nn.reshape %tokens : (tensor<32x8xf32>) -> tensor<32x1x8xf32>
    %two = nn.broadcast %one : (tensor<32x1x8xf32>) -> tensor<32x2x8xf32>
    %rows = nn.reshape %two : (tensor<32x2x8xf32>) -> tensor<64x8xf32>
    %u = nn.grouped_matmul %rows, %up, %experts {transpose_rhs} : (tensor<64x8xf32>, tensor<4x8x8xf32>, tensor<64xi64>) -> tensor<64x8xf32>
    %h = nn.gelu erf %u : tensor<64x8xf32>
    %d = nn.grouped_matmul %h, %down, %experts {transpose_rhs} : (tensor<64x8xf32>, tensor<4x8x8xf32>, tensor<64xi64>) -> tensor<64x8xf32>
    %each = nn.reshape %d : (tensor<64x8xf32>) -> tensor<32x2x8xf32>
    %share1 = nn.reshape %share : (tensor<32x2xf32>) -> tensor<32x2x1xf32>
    %share8 = nn.broadcast %share1 : (tensor<32x2x1xf32>) -> tensor<32x2x8xf32>
    %weighed = nn.mul %each, %share8 : tensor<32x2x8xf32>
    %both = nn.reduce sum %weighed dims [1] : (tensor<32x2x8xf32>) -> tensor<32x8xf32>
    %out = nn.add %both, %tokens : tensor<32x8xf32>
    %all = nn.reshape %out : (tensor<32x8xf32>) -> tensor<8x4x8xf32>
    %difference = nn.sub %all, %y : tensor<8x4x8xf32>
    %square = nn.mul %difference, %difference : tensor<8x4x8xf32>
    %total = nn.reduce sum %square dims [0, 1, 2] : (tensor<8x4x8xf32>) -> tensor<f32>
    %mean = nn.constant dense<0.00390625> : tensor<f32>
    %loss = nn.mul %total, %mean : tensor<f32>
    return %loss : tensor<f32>
  }
}
