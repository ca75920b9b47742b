// RUN: acc-opt %s --nn-cut-forward="chunks=3 cut=times,h.1" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: acc-eval %t.mlir --compare %s --tolerance 0
// RUN: acc-opt %s --nn-cut-forward="chunks=3 cut=/m/h.0/Mul,m.h.1" | FileCheck %s
// RUN: acc-opt %s --nn-cut-forward="chunks=2 cut=sum" | FileCheck %s --check-prefix=TAKEN-IN

// Chunks begin before what is named: a node, or the first op of a module, which is
// called by its path as the exporter wrote it down, or as names of nodes are paths.
// Work has no say: the first chunk has one product, the second one addition.
// CHECK: nn.state @w1 : tensor<64x64xf32> = {{.*}} {chunk = 2 : i64}
// CHECK-LABEL: func.func @main
// CHECK: %[[PRODUCT:.*]] = nn.matmul
// CHECK-NEXT: %[[ONE:.*]] = nn.cut %[[PRODUCT]] from 0 to 1
// CHECK-NEXT: %[[TIMES:.*]] = nn.mul %[[ONE]], %[[ONE]]
// CHECK-NEXT: %[[TWO:.*]] = nn.cut %[[TIMES]] from 1 to 2
// CHECK-NEXT: nn.matmul %[[TWO]]
// CHECK-NOT: nn.cut

// The op that a node has become with others is where that node is.
// TAKEN-IN: nn.matmul
// TAKEN-IN: %[[SECOND:.*]] = nn.matmul
// TAKEN-IN-NEXT: %[[CUT:.*]] = nn.cut %[[SECOND]] from 0 to 1
// TAKEN-IN-NEXT: nn.relu %[[CUT]]

// RUN: not acc-opt %s --nn-cut-forward="chunks=3 cut=times" 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: expected 2 --cut for 3 chunks, found 1
// RUN: not acc-opt %s --nn-cut-forward="cut=times" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected 0 --cut for 1 chunk (a mesh with pp has several), found 1
// RUN: not acc-opt %s --nn-cut-forward="chunks=2 cut=tines" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown node or module 'tines' of --cut, the nearest is 'times'
// RUN: not acc-opt %s --nn-cut-forward="chunks=2 cut=m.h.2" 2>&1 | FileCheck %s --check-prefix=MODULE
// MODULE: error: unknown node or module 'm.h.2' of --cut, the nearest is 'm.h.0'
// RUN: not acc-opt %s --nn-cut-forward="chunks=2 cut=mask" 2>&1 | FileCheck %s --check-prefix=INPUTS
// INPUTS: error: cannot cut the model at 'mask': it is made of inputs alone, or of states alone, and lies with whatever reads it
// RUN: not acc-opt %s --nn-cut-forward="chunks=3 cut=relu,times" 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: {{.*}}expected 'relu' of --cut, which is behind 'times', after it: cuts are named in their order
// RUN: not acc-opt %s --nn-cut-forward="chunks=2 cut=m" 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: {{.*}}expected 'm' of --cut behind the model's first op: no chunk is empty
// RUN: not acc-opt %s --nn-cut-forward="chunks=3 cut=relu,sum" 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: {{.*}}expected 'relu' and 'sum' of --cut at different ops: no chunk is empty

nn.state @w0 : tensor<64x64xf32> = dense<0.5>
nn.state @w1 : tensor<64x64xf32> = dense<0.25>
func.func @main(%x: tensor<512x64xf32> {nn.input = "x"}, %w0: tensor<64x64xf32> {nn.state = @w0},
                %w1: tensor<64x64xf32> {nn.state = @w1})
    -> (tensor<512x64xf32> {nn.output = "y"}) attributes {nn.entry} {
  %mask = nn.relu %x : tensor<512x64xf32> loc("mask")
  %0 = nn.matmul %x, %w0 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc(fused<"m.h.0.fc">["product"])
  %1 = nn.mul %0, %0 : tensor<512x64xf32> loc(fused["times", "/m/h.0/Mul"])
  %2 = nn.matmul %1, %w1 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc(fused<"h.1.fc">["/m/h.1/fc/MatMul"])
  %3 = nn.relu %2 : tensor<512x64xf32> loc(fused<"h.1">["relu", "sum"])
  %4 = nn.mul %3, %mask : tensor<512x64xf32> loc(fused<"h.1">["masked"])
  return %4 : tensor<512x64xf32>
}
