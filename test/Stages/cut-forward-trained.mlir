// What a chunk takes is what its forward and its backward take. Of nine products of equal work only
// the last two are trained: the forward alone is cut in the middle; of both, which are twelve (of the
// eighth product the backward makes the gradient of its weight alone, since nothing before it is
// trained), each chunk has six.
// DEFINE: %{options} = trained
// DEFINE: %{cut} = acc-opt %s --nn-cut-forward="chunks=2 %{options}"
// RUN: %{cut} | FileCheck %s
// REDEFINE: %{options} =
// RUN: %{cut} | FileCheck %s --check-prefix=FORWARD
// CHECK-COUNT-6: nn.matmul
// CHECK-NEXT: nn.cut %{{.*}} from 0 to 1
// FORWARD-COUNT-5: nn.matmul
// FORWARD-NEXT: nn.cut %{{.*}} from 0 to 1
nn.state @w0 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w1 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w2 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w3 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w4 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w5 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w6 : tensor<64x64xf32> = dense<0.5> {frozen}
nn.state @w7 : tensor<64x64xf32> = dense<0.5>
nn.state @w8 : tensor<64x64xf32> = dense<0.5>
func.func @main(%x: tensor<512x64xf32> {nn.input = "x"},
                %w0: tensor<64x64xf32> {nn.state = @w0},
                %w1: tensor<64x64xf32> {nn.state = @w1},
                %w2: tensor<64x64xf32> {nn.state = @w2},
                %w3: tensor<64x64xf32> {nn.state = @w3},
                %w4: tensor<64x64xf32> {nn.state = @w4},
                %w5: tensor<64x64xf32> {nn.state = @w5},
                %w6: tensor<64x64xf32> {nn.state = @w6},
                %w7: tensor<64x64xf32> {nn.state = @w7},
                %w8: tensor<64x64xf32> {nn.state = @w8})
    -> (tensor<512x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w0 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %1 = nn.matmul %0, %w1 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %2 = nn.matmul %1, %w2 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %3 = nn.matmul %2, %w3 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %4 = nn.matmul %3, %w4 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %5 = nn.matmul %4, %w5 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %6 = nn.matmul %5, %w6 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %7 = nn.matmul %6, %w7 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  %8 = nn.matmul %7, %w8 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  return %8 : tensor<512x64xf32>
}
