// mlp.mlir split over dp and tp by hand.
#l = #dist.layout<@m [4 by {dp}, 4]>
module attributes {accel.phase = "local"} {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  nn.state @w : tensor<4x8xf32> = dense<[
    [0.5, -1.0, 0.25, 2.0, 1.5, -0.5, 1.0, 0.75],
    [1.0, 0.5, -0.75, 1.25, -2.0, 0.25, 0.5, -1.5],
    [-0.5, 1.5, 1.0, -1.0, 0.75, 2.0, -0.25, 0.5],
    [0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0]]>
  nn.state @b : tensor<8xf32> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>
  func.func @main(%x: tensor<2x4xf32> {nn.input = "x", dist.layout = #l},
                  %w: tensor<4x4xf32> {nn.state = @w, dist.layout = #dist.layout<@m [4, 8 by {tp}]>},
                  %b: tensor<4xf32> {nn.state = @b, dist.layout = #dist.layout<@m [8 by {tp}]>})
      -> (tensor<2x4xf32> {nn.output = "y", dist.layout = #l}) attributes {nn.entry} {
    %0 = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = nn.broadcast %b : (tensor<4xf32>) -> tensor<2x4xf32>
    %2 = nn.add %0, %1 : tensor<2x4xf32>
    %3 = nn.gelu erf %2 : tensor<2x4xf32>
    %4 = nn.matmul %3, %w {transpose_rhs} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %5 = dist.all_reduce sum %4 over @m {tp} : tensor<2x4xf32>
    return %5 : tensor<2x4xf32>
  }
}
