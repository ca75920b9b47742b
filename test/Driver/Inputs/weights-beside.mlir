// Of test/Driver/output.test, which says which FILE.
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<2xf32> from #nn.file<"FILE">[0 : 8]
  func.func @main(%x: tensor<2xf32> {nn.input = "x"}, %w: tensor<2xf32> {nn.state = @w}) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.mul %x, %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
