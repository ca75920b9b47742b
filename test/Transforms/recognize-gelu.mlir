// RUN: acc-opt %s --nn-recognize-gelu | FileCheck %s
// RUN: acc-opt %s --nn-recognize-gelu -o %t && acc-eval %t --compare %s --tolerance 1e-7

// The forms exporters write; @main holds all of them, for the evaluator.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = nn.gelu tanh %[[X]]
// CHECK-NEXT: %[[B:.*]] = nn.gelu tanh %[[X]]
// CHECK-NEXT: %[[C:.*]] = nn.gelu tanh %[[X]]
// CHECK-NEXT: %[[D:.*]] = nn.gelu erf %[[X]]
// CHECK-NEXT: %[[E:.*]] = nn.gelu erf %[[X]]
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {nn.entry} {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %three = nn.constant dense<3.0> : tensor<8xf32>
  %cubic = nn.constant dense<0.044715> : tensor<8xf32>
  %outer = nn.constant dense<0.797884583> : tensor<8xf32>
  %root = nn.constant dense<1.41421354> : tensor<8xf32>
  %inverse = nn.constant dense<0.707106769> : tensor<8xf32>

  // (x · ½) · (tanh(k · (x + c · x³)) + 1), the cube a power
  %a0 = nn.mul %x, %half : tensor<8xf32>
  %a1 = nn.pow %x, %three : tensor<8xf32>
  %a2 = nn.mul %a1, %cubic : tensor<8xf32>
  %a3 = nn.add %x, %a2 : tensor<8xf32>
  %a4 = nn.mul %a3, %outer : tensor<8xf32>
  %a5 = nn.tanh %a4 : tensor<8xf32>
  %a6 = nn.add %a5, %one : tensor<8xf32>
  %a = nn.mul %a0, %a6 : tensor<8xf32>

  // ½ · (x · (1 + tanh(k · (c · (x · x · x) + x)))), the cube a product
  %b0 = nn.mul %x, %x : tensor<8xf32>
  %b1 = nn.mul %b0, %x : tensor<8xf32>
  %b2 = nn.mul %cubic, %b1 : tensor<8xf32>
  %b3 = nn.add %b2, %x : tensor<8xf32>
  %b4 = nn.mul %outer, %b3 : tensor<8xf32>
  %b5 = nn.tanh %b4 : tensor<8xf32>
  %b6 = nn.add %one, %b5 : tensor<8xf32>
  %b7 = nn.mul %x, %b6 : tensor<8xf32>
  %b = nn.mul %half, %b7 : tensor<8xf32>

  // x · (½ · (1 + tanh((x · k) · (1 + c · x · x))))
  %c0 = nn.mul %x, %outer : tensor<8xf32>
  %c1 = nn.mul %x, %cubic : tensor<8xf32>
  %c2 = nn.mul %c1, %x : tensor<8xf32>
  %c3 = nn.add %c2, %one : tensor<8xf32>
  %c4 = nn.mul %c0, %c3 : tensor<8xf32>
  %c5 = nn.tanh %c4 : tensor<8xf32>
  %c6 = nn.add %c5, %one : tensor<8xf32>
  %c7 = nn.mul %half, %c6 : tensor<8xf32>
  %c = nn.mul %x, %c7 : tensor<8xf32>

  // x · (1 + erf(x / √2)) · ½
  %d0 = nn.div %x, %root : tensor<8xf32>
  %d1 = nn.erf %d0 : tensor<8xf32>
  %d2 = nn.add %d1, %one : tensor<8xf32>
  %d3 = nn.mul %x, %d2 : tensor<8xf32>
  %d = nn.mul %d3, %half : tensor<8xf32>

  // (½ · x) · (1 + erf(x · √½))
  %e0 = nn.mul %x, %inverse : tensor<8xf32>
  %e1 = nn.erf %e0 : tensor<8xf32>
  %e2 = nn.add %one, %e1 : tensor<8xf32>
  %e3 = nn.mul %half, %x : tensor<8xf32>
  %e = nn.mul %e3, %e2 : tensor<8xf32>
  return %a, %b, %c, %d, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// x is a product itself.
// CHECK-LABEL: @of_a_product(
// CHECK: %[[X:.*]] = nn.mul
// CHECK-NEXT: nn.gelu erf %[[X]]
func.func @of_a_product(%u: tensor<8xf32>, %v: tensor<8xf32>) -> tensor<8xf32> {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %inverse = nn.constant dense<0.707106769> : tensor<8xf32>
  %x = nn.mul %u, %v : tensor<8xf32>
  %0 = nn.mul %x, %inverse : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %one, %1 : tensor<8xf32>
  %3 = nn.mul %x, %half : tensor<8xf32>
  %4 = nn.mul %3, %2 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// Another constant inside, another factor outside, another x: none is a GELU.
// CHECK-LABEL: @other_constants(
// CHECK-NOT: nn.gelu
// CHECK: return
func.func @other_constants(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %off = nn.constant dense<0.7072> : tensor<8xf32>
  %inverse = nn.constant dense<0.707106769> : tensor<8xf32>
  %0 = nn.mul %x, %off : tensor<8xf32>
  %1 = nn.erf %0 : tensor<8xf32>
  %2 = nn.add %one, %1 : tensor<8xf32>
  %3 = nn.mul %half, %x : tensor<8xf32>
  %4 = nn.mul %3, %2 : tensor<8xf32>
  %5 = nn.mul %x, %inverse : tensor<8xf32>
  %6 = nn.erf %5 : tensor<8xf32>
  %7 = nn.add %one, %6 : tensor<8xf32>
  %8 = nn.mul %x, %7 : tensor<8xf32>
  %9 = nn.mul %3, %7 : tensor<8xf32>
  %half_y = nn.mul %half, %y : tensor<8xf32>
  %10 = nn.mul %half_y, %7 : tensor<8xf32>
  return %4, %8, %10 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
