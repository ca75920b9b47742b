// The text of a phase is for people: values are called after inputs, states and nodes,
// a long signature has a line for each argument, a long op its types on a second one.
// RUN: acc-opt %s --compile-to=nn -o %t.nn.mlir && FileCheck %s < %t.nn.mlir

// It means what it meant, and read again it is the same text.
// RUN: acc-opt %t.nn.mlir --compile-to=nn | diff - %t.nn.mlir
// RUN: acc-eval %s --compare %t.nn.mlir --tolerance 0

// What was read goes on under its names: a later phase's text is the same, however it came about.
// DEFINE: %{train} = --train --loss loss --optimizer sgd
// RUN: acc-opt %s %{train} --compile-to=train -o %t.train.mlir
// RUN: acc-opt %t.nn.mlir %{train} --compile-to=train | diff - %t.train.mlir
// RUN: FileCheck %s --check-prefix=TRAIN < %t.train.mlir
// What differentiation made for a node is called so.
// TRAIN: %d_query_projection_MatMul{{(_[0-9]+)?}} = nn.mul
// TRAIN: nn.gradient %{{.*}} of @w.3

// With locations it is MLIR's own text, and theirs are the nodes' names.
// RUN: acc-opt %s --compile-to=nn --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC
// LOC: loc("/h.0/attn/MatMul")
// LOC-NOT: loc("h.0_attn_MatMul")

module attributes {accel.phase = "nn"} {
  nn.state @w.3 : tensor<2xf32> = dense<0.5>
  // CHECK: func.func @main(
  // CHECK-NEXT: %a_b_c_d: tensor<2xf32> {nn.input = "a b/c, (d"},
  // CHECK-NEXT: %given: tensor<2xf32> {nn.input = "given"},
  // CHECK-NEXT: %w.3: tensor<2xf32> {nn.state = @w.3}
  // CHECK-NEXT: ) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  func.func @main(%x: tensor<2xf32> {nn.input = "a b/c, (d"}, %given: tensor<2xf32> {nn.input = "given"}, %w: tensor<2xf32> {nn.state = @w.3}) -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
    // CHECK-NEXT: %h.0_attn_MatMul = nn.neg %a_b_c_d
    %0 = nn.neg %x : tensor<2xf32> loc("/h.0/attn/MatMul")
    // torch's exporter numbers nodes; what the printer adds is told apart.
    // CHECK-NEXT: %exp.3 = nn.exp %h.0_attn_MatMul
    %1 = nn.exp %0 : tensor<2xf32> loc("node_exp_3")
    // CHECK-NEXT: %exp.3_0 = nn.exp %exp.3
    %2 = nn.exp %1 : tensor<2xf32> loc("node_exp_3")
    // The first parts of a long name are those that it shares with others.
    // CHECK-NEXT: %query_projection_MatMul = nn.mul %exp.3_0, %w.3
    %3 = nn.mul %2, %w : tensor<2xf32> loc("model/layers.0/self_attention/query_projection/MatMul")
    // What the text calls it, where no node does; else a number.
    // CHECK-NEXT: %mine = nn.add %query_projection_MatMul, %given
    %mine = nn.add %3, %given : tensor<2xf32>
    // CHECK-NEXT: %0 = nn.add %mine, %mine
    %4 = nn.add %mine, %mine : tensor<2xf32> loc(unknown)
    // CHECK-NEXT: %joined_one_name_long_enough = nn.concat
    // CHECK-NEXT: {{^}}        : (tensor<2xf32>, tensor<2xf32>
    %5 = nn.concat %3, %3, %3, %3, %3, %3, %3, %4 dim 0 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<16xf32> loc("joined/one/name/long/enough")
    %6 = nn.reduce sum %5 dims [0] : (tensor<16xf32>) -> tensor<f32> loc("sum")
    return %6 : tensor<f32>
  }
}
