// One of each collective, on rank numbers: 4 ranks, x[r] = [2r+1, 2r+2].
module {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  func.func @main(%x: tensor<1x2xf64> {nn.input = "x", dist.layout = #dist.layout<@m [4 by {dp, tp}, 2]>})
      -> (tensor<1x2xf64> {nn.output = "sum_tp", dist.layout = #dist.layout<@m [2 by {dp}, 2]>},
          tensor<1x2xf64> {nn.output = "max_dp", dist.layout = #dist.layout<@m [2 by {tp}, 2]>},
          tensor<1x1xf64> {nn.output = "scatter", dist.layout = #dist.layout<@m [2 by {dp}, 2 by {tp}]>},
          tensor<4x2xf64> {nn.output = "gather"},
          tensor<2x1xf64> {nn.output = "swap", dist.layout = #dist.layout<@m [4 by {dp}, 2 by {tp}]>},
          tensor<1x2xf64> {nn.output = "permute", dist.layout = #dist.layout<@m [4 by {dp, tp}, 2]>},
          tensor<1x2xf64> {nn.output = "root", dist.layout = #dist.layout<@m [2 by {dp}, 2]>},
          tensor<1x1xf64> {nn.output = "slice", dist.layout = #dist.layout<@m [4 by {dp, tp}, 1]>},
          tensor<1xi64> {nn.output = "index", dist.layout = #dist.layout<@m [4 by {dp, tp}]>}) {
    %0 = dist.all_reduce sum %x over @m {tp} : tensor<1x2xf64>
    %1 = dist.all_reduce max %x over @m {dp} : tensor<1x2xf64>
    %2 = dist.reduce_scatter sum %x over @m {tp} dim 1 : (tensor<1x2xf64>) -> tensor<1x1xf64>
    %3 = dist.all_gather %x over @m {dp, tp} dim 0 : (tensor<1x2xf64>) -> tensor<4x2xf64>
    %4 = dist.all_to_all %x over @m {tp} split 1 concat 0 : (tensor<1x2xf64>) -> tensor<2x1xf64>
    %5 = dist.permute %x over @m {dp, tp} sources [3, 0, 1, 2] : tensor<1x2xf64>
    %6 = dist.broadcast %x over @m {tp} root 1 : tensor<1x2xf64>
    %7 = dist.all_slice %x over @m {tp} dim 1 : (tensor<1x2xf64>) -> tensor<1x1xf64>
    %8 = dist.axis_index @m {tp, dp} : tensor<i64>
    %9 = nn.reshape %8 : (tensor<i64>) -> tensor<1xi64>
    return %0, %1, %2, %3, %4, %5, %6, %7, %9 : tensor<1x2xf64>, tensor<1x2xf64>, tensor<1x1xf64>, tensor<4x2xf64>, tensor<2x1xf64>, tensor<1x2xf64>, tensor<1x2xf64>, tensor<1x1xf64>, tensor<1xi64>
  }
}
