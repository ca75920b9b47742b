// RUN: acc-opt %s --nn-recognize-log1p | FileCheck %s
// RUN: acc-opt %s --nn-recognize-log1p -o %t && acc-eval %t --compare %s --tolerance 1e-12

// The evaluator compares @main before and after, on numbers where the plain
// forms still hold.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<8xf64>, %[[Y:.*]]: tensor<8xf64>
func.func @main(%x: tensor<8xf64>, %y: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>, tensor<8xf64>, tensor<8xf64>) attributes {nn.entry} {
  %one = nn.constant dense<1.0> : tensor<8xf64>
  %square = nn.mul %x, %x : tensor<8xf64>

  // CHECK: %[[SQUARE:.*]] = nn.mul %[[X]], %[[X]]
  // CHECK: %[[A:.*]] = nn.log1p %[[SQUARE]]
  %a0 = nn.add %one, %square : tensor<8xf64>
  %a = nn.log %a0 : tensor<8xf64>
  // CHECK: %[[B:.*]] = nn.log1p %[[SQUARE]]
  %b0 = nn.add %square, %one : tensor<8xf64>
  %b = nn.log %b0 : tensor<8xf64>

  // CHECK-DAG: %[[LOW:.*]] = nn.min %[[X]], %{{.*}}
  // CHECK-DAG: %[[SIZE:.*]] = nn.abs %[[X]]
  // CHECK: %[[DOWN:.*]] = nn.neg %[[SIZE]]
  // CHECK: %[[EXP:.*]] = nn.exp %[[DOWN]]
  // CHECK: %[[TAIL:.*]] = nn.log1p %[[EXP]]
  // CHECK: %[[C:.*]] = nn.sub %[[LOW]], %[[TAIL]]
  %c0 = nn.sigmoid %x : tensor<8xf64>
  %c = nn.log %c0 : tensor<8xf64>

  // CHECK-DAG: %[[SAME:.*]] = nn.compare eq %[[X]], %[[Y]]
  // CHECK-DAG: %[[APART:.*]] = nn.sub %[[X]], %[[Y]]
  // CHECK: nn.select %[[SAME]], %{{.*}}, %[[APART]]
  // CHECK: nn.log1p
  %d0 = nn.exp %x : tensor<8xf64>
  %d1 = nn.exp %y : tensor<8xf64>
  %d2 = nn.add %d0, %d1 : tensor<8xf64>
  %d = nn.log %d2 : tensor<8xf64>
  return %a, %b, %c, %d : tensor<8xf64>, tensor<8xf64>, tensor<8xf64>, tensor<8xf64>
}

// CHECK-LABEL: @other_sums(
// CHECK-NOT: log1p
// CHECK: return
func.func @other_sums(%x: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %two = nn.constant dense<2.0> : tensor<8xf64>
  %a0 = nn.add %x, %two : tensor<8xf64>
  %a = nn.log %a0 : tensor<8xf64>
  %e = nn.exp %x : tensor<8xf64>
  %b0 = nn.add %e, %x : tensor<8xf64>
  %b = nn.log %b0 : tensor<8xf64>
  return %a, %b : tensor<8xf64>, tensor<8xf64>
}

