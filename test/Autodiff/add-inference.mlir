// RUN: acc-opt %s --nn-add-inference="loss=loss entries=step,eval,forward" | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: acc-opt %s --nn-add-inference="loss=loss entries=eval eval-outputs=y" | FileCheck %s --check-prefixes=CHECK,EVAL
// RUN: acc-opt %s --nn-add-inference="loss=cross_entropy:y,labels entries=eval,forward" | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: not acc-opt %s --nn-add-inference="loss=loss entries=eval eval-outputs=z" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// RUN: acc-opt %s --nn-add-inference="loss=cross_entropy:y,labels entries=forward" 2>&1 | FileCheck %s --check-prefix=REPORT
// REPORT: warning: the model's output "loss" is called as what a step reports: the entry 'forward' goes without it; give it another name in the model to have it
// RUN: not acc-opt %s --nn-add-inference="loss=cross_entropy:y,labels entries=eval eval-outputs=loss" 2>&1 | FileCheck %s --check-prefix=ASKED
// ASKED: error: the model's output "loss" is called as what a step reports: give it another name in the model to have it in --eval-outputs
// RUN: sed 's/nn.output = "y"/nn.output = "loss.term.0.numerator"/' %s > %t.mlir && acc-opt %t.mlir --nn-add-inference="loss=loss entries=forward" 2>&1 | FileCheck %s --check-prefix=TERM
// TERM: warning: the model's output "loss.term.0.numerator" is called as what a step reports
// RUN: not acc-opt %s --nn-add-inference="loss=loss entries=eval eval-outputs=y,y" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: found 'y' twice in --eval-outputs

// UNKNOWN: error: expected one of the model's outputs beside the loss in --eval-outputs, found 'z'

// The entry that becomes a step is as it was, dropout and all.
// CHECK: func.func @main({{.*}}nn.output = "loss"{{.*}}nn.output = "y"{{.*}}attributes {nn.entry}
// CHECK: nn.dropout
// CHECK: nn.stop_gradient

// Evaluation gives the loss, and what else is asked for, without dropout.
// ALL: func.func @eval(%[[X:.*]]: tensor<4x3xf32> {nn.input = "x"}, %[[T:.*]]: tensor<4x3xf32> {nn.input = "t"}, %[[W:.*]]: tensor<3x3xf32> {nn.state = @w})
// ALL-SAME: -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry = #nn<entry eval>}
// ALL-NOT: nn.dropout
// ALL-NOT: nn.stop_gradient
// EVAL: func.func @eval({{.*}}-> (tensor<f32> {nn.output = "loss"}, tensor<4x3xf32> {nn.output = "y"}) attributes {nn.entry = #nn<entry eval>}
// EVAL-NOT: func.func
// OWN: func.func @eval({{.*}}nn.input = "labels"{{.*}}-> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "loss.term.0.numerator"}, tensor<f32> {nn.output = "loss.term.0.denominator"})
// OWN: nn.cross_entropy

// Inference gives all outputs but the loss, and takes what they need.
// ALL: func.func @forward(%[[X:.*]]: tensor<4x3xf32> {nn.input = "x"}, %[[W:.*]]: tensor<3x3xf32> {nn.state = @w}) -> (tensor<4x3xf32> {nn.output = "y"}) attributes {nn.entry}
// ALL-NEXT: %[[Y:.*]] = nn.matmul %[[X]], %[[W]]
// ALL-NEXT: return %[[Y]]
// What is called as a report is not given; asked for by name it is refused.
// OWN: func.func @forward({{.*}}-> (tensor<4x3xf32> {nn.output = "y"}) attributes {nn.entry}
// OWN-NOT: labels
nn.state @w : tensor<3x3xf32> = dense<1.0>
nn.state @u : tensor<3xf32> = dense<1.0>
func.func @main(%x: tensor<4x3xf32> {nn.input = "x"}, %t: tensor<4x3xf32> {nn.input = "t"}, %w: tensor<3x3xf32> {nn.state = @w}, %u: tensor<3xf32> {nn.state = @u}) -> (tensor<f32> {nn.output = "loss"}, tensor<4x3xf32> {nn.output = "y"}) attributes {nn.entry} {
  %m = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %y = nn.dropout %m ratio 5.000000e-01 site 1 : tensor<4x3xf32>
  %s = nn.stop_gradient %t : tensor<4x3xf32>
  %d = nn.sub %y, %s : tensor<4x3xf32>
  %q = nn.mul %d, %d : tensor<4x3xf32>
  %l = nn.reduce sum %q dims [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %l, %y : tensor<f32>, tensor<4x3xf32>
}

// The loss alone: there is nothing to infer.
// RUN: acc-opt %fixtures/regression.mlir --nn-add-inference="loss=loss entries=eval,forward" | FileCheck %s --check-prefix=ALONE
// ALONE: func.func @main
// ALONE: func.func @eval
// ALONE-NOT: func.func
