// Philox4x32-10: the known answer of the authors' Random123 for zeros, and two of
// another implementation of the paper (checked by both of Random123's answers).
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/../Scripts/write_npy.py %t/u.npy "<f4" 3 0.3990464210510254 0.3607293367385864 0.12346619367599487
// RUN: acc-eval %s --expect %t --tolerance 0
module {
  func.func @main() -> (tensor<3xf32> {nn.output = "u"}) attributes {nn.entry} {
    %counter = nn.constant dense<[0, 5, 38654705665]> : tensor<3xi64>
    %key = nn.constant dense<[0, 30064771075, 11]> : tensor<3xi64>
    %u = nn.random_uniform %counter, %key : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xf32>
    return %u : tensor<3xf32>
  }
}
