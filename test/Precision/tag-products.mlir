// Which linear layers are quantized is said on the products of the forward; the others say why not.
// RUN: acc-opt %s --nn-tag-products | FileCheck %s
// RUN: acc-opt %s --nn-tag-products="outer=true" | FileCheck %s --check-prefix=OUTER
// RUN: acc-opt %s --nn-tag-products="only=b,c skip=c" | FileCheck %s --check-prefix=CHOSEN
// RUN: acc-opt %s --nn-tag-products="eval=true" | FileCheck %s --check-prefix=EVAL
// RUN: not acc-opt %s --nn-tag-products="skip=[a" 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: expected a glob pattern of names of weights, found '[a'
module {
  nn.state @a : tensor<32x16xf32> = dense<0.0>
  nn.state @b : tensor<32x32xf32> = dense<0.0>
  nn.state @odd : tensor<32x24xf32> = dense<0.0>
  nn.state @c : tensor<32x16xf32> = dense<0.0>

  // Through casts and views; a product of two activations, or of a matrix of weights on its left,
  // is none of a linear layer.
  // CHECK-LABEL: @main(
  // CHECK: nn.matmul {{.*}} {nn.product = #nn.product<"a", fprop>, transpose_rhs}
  // CHECK: nn.matmul {{.*}} {nn.product = #nn.product<"b", fprop>}
  // CHECK: nn.matmul {{.*}} {nn.reason = "16 bits: 24 is no multiple of 16", transpose_lhs}
  // CHECK: nn.matmul {{.*}} {transpose_rhs} :
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : (tensor<32x16xbf16>
  // CHECK: nn.matmul {{.*}} {nn.product = #nn.product<"c", fprop>}

  // OUTER-LABEL: @main(
  // OUTER: nn.reason = "16 bits: the first linear layer"
  // OUTER: #nn.product<"b", fprop>
  // OUTER: nn.reason = "16 bits: the last linear layer"

  // CHOSEN-LABEL: @main(
  // CHOSEN: nn.reason = "16 bits: not among fp8.only"
  // CHOSEN: #nn.product<"b", fprop>
  // CHOSEN: nn.reason = "16 bits: not among fp8.only"
  // CHOSEN: nn.reason = "16 bits: fp8.skip has it"
  func.func @main(%x: tensor<4x16xbf16> {nn.input = "x"}, %a: tensor<32x16xf32> {nn.state = @a}, %b: tensor<32x32xf32> {nn.state = @b}, %odd: tensor<32x24xf32> {nn.state = @odd}, %c: tensor<32x16xf32> {nn.state = @c}) -> (tensor<24x24xbf16> {nn.output = "y"}, tensor<4x4xbf16> {nn.output = "z"}, tensor<32x16xbf16> {nn.output = "l"}, tensor<4x16xbf16> {nn.output = "r"}) attributes {nn.entry} {
    %a16 = nn.cast %a : (tensor<32x16xf32>) -> tensor<32x16xbf16>
    %h = nn.matmul %x, %a16 {transpose_rhs} : (tensor<4x16xbf16>, tensor<32x16xbf16>) -> tensor<4x32xbf16>
    %bt = nn.transpose %b [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %b16 = nn.cast %bt : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %i = nn.matmul %h, %b16 : (tensor<4x32xbf16>, tensor<32x32xbf16>) -> tensor<4x32xbf16>
    %o16 = nn.cast %odd : (tensor<32x24xf32>) -> tensor<32x24xbf16>
    %t = nn.transpose %i [1, 0] : (tensor<4x32xbf16>) -> tensor<32x4xbf16>
    %u = nn.matmul %t, %o16 {transpose_lhs} : (tensor<32x4xbf16>, tensor<32x24xbf16>) -> tensor<4x24xbf16>
    %z = nn.matmul %u, %u {transpose_rhs} : (tensor<4x24xbf16>, tensor<4x24xbf16>) -> tensor<4x4xbf16>
    %y = nn.matmul %u, %u {transpose_lhs} : (tensor<4x24xbf16>, tensor<4x24xbf16>) -> tensor<24x24xbf16>
    %xt = nn.slice %x starts [0, 0] sizes [4, 16] steps [1, 1] : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
    %cT = nn.cast %c : (tensor<32x16xf32>) -> tensor<32x16xbf16>
    %sq = nn.slice %x starts [0, 0] sizes [4, 4] steps [1, 1] : (tensor<4x16xbf16>) -> tensor<4x4xbf16>
    %l0 = nn.matmul %cT, %xt {transpose_rhs} : (tensor<32x16xbf16>, tensor<4x16xbf16>) -> tensor<32x4xbf16>
    %l = nn.matmul %l0, %xt : (tensor<32x4xbf16>, tensor<4x16xbf16>) -> tensor<32x16xbf16>
    %r = nn.matmul %i, %cT : (tensor<4x32xbf16>, tensor<32x16xbf16>) -> tensor<4x16xbf16>
    return %y, %z, %l, %r : tensor<24x24xbf16>, tensor<4x4xbf16>, tensor<32x16xbf16>, tensor<4x16xbf16>
  }
  // CHECK-LABEL: @eval(
  // CHECK-NOT: nn.product
  // EVAL-LABEL: @eval(
  // EVAL: #nn.product<"a", fprop>
  func.func @eval(%x: tensor<4x16xbf16> {nn.input = "x"}, %a: tensor<32x16xf32> {nn.state = @a}) -> (tensor<4x32xbf16> {nn.output = "y"}) attributes {nn.entry = #nn<entry eval>} {
    %a16 = nn.cast %a : (tensor<32x16xf32>) -> tensor<32x16xbf16>
    %h = nn.matmul %x, %a16 {transpose_rhs} : (tensor<4x16xbf16>, tensor<32x16xbf16>) -> tensor<4x32xbf16>
    return %h : tensor<4x32xbf16>
  }
}
