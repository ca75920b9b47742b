// Eight products before one that takes as long as eight: how those are divided in two, the longest
// chunk does not say. Where a rank has as much of each chunk that is kept, they are divided alike;
// where it has three times as much of the first's, as 1F1B of three stages does, the first gets fewer.
// What states take counts as well; what a forward alone leaves, nobody keeps.
// DEFINE: %{options} = trained copies=1,1,1 state-copies=0
// DEFINE: %{cut} = acc-opt %s --nn-cut-forward="chunks=3 %{options}"
// RUN: %{cut} | FileCheck %s --check-prefix=EVEN
// REDEFINE: %{options} = trained copies=3,1,1 state-copies=0
// RUN: %{cut} | FileCheck %s --check-prefix=FEWER
// REDEFINE: %{options} = trained copies=3,1,1 state-copies=100
// RUN: %{cut} | FileCheck %s --check-prefix=EVEN
// REDEFINE: %{options} = copies=3,1,1
// RUN: %{cut} | FileCheck %s --check-prefix=EVEN
// EVEN-COUNT-4: nn.matmul
// EVEN-NEXT: nn.cut %{{.*}} from 0 to 1
// EVEN-COUNT-4: nn.matmul
// EVEN-NEXT: nn.cut %{{.*}} from 1 to 2
// FEWER-COUNT-2: nn.matmul
// FEWER-NEXT: nn.cut %{{.*}} from 0 to 1
// FEWER-COUNT-6: nn.matmul
// FEWER-NEXT: nn.cut %{{.*}} from 1 to 2
nn.state @w0 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w1 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w2 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w3 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w4 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w5 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w6 : tensor<2048x2048xf32> = dense<0.5>
nn.state @w7 : tensor<2048x2048xf32> = dense<0.5>
nn.state @long : tensor<2048x16384xf32> = dense<0.5>
func.func @main(%x: tensor<512x2048xf32> {nn.input = "x"},
                %w0: tensor<2048x2048xf32> {nn.state = @w0},
                %w1: tensor<2048x2048xf32> {nn.state = @w1},
                %w2: tensor<2048x2048xf32> {nn.state = @w2},
                %w3: tensor<2048x2048xf32> {nn.state = @w3},
                %w4: tensor<2048x2048xf32> {nn.state = @w4},
                %w5: tensor<2048x2048xf32> {nn.state = @w5},
                %w6: tensor<2048x2048xf32> {nn.state = @w6},
                %w7: tensor<2048x2048xf32> {nn.state = @w7},
                %long: tensor<2048x16384xf32> {nn.state = @long})
    -> (tensor<512x16384xf32> {nn.output = "y"}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w0 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %1 = nn.matmul %0, %w1 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %2 = nn.matmul %1, %w2 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %3 = nn.matmul %2, %w3 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %4 = nn.matmul %3, %w4 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %5 = nn.matmul %4, %w5 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %6 = nn.matmul %5, %w6 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %7 = nn.matmul %6, %w7 : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  %8 = nn.matmul %7, %long : (tensor<512x2048xf32>, tensor<2048x16384xf32>) -> tensor<512x16384xf32>
  return %8 : tensor<512x16384xf32>
}
