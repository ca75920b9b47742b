// A loss of which ranks have some of the classes: the largest logit, the sum of
// exponentials and the label's logit are those of all ranks, by the definitions of
// softmax and cross-entropy. What is missing of them is refused, and so is a label
// that nobody looks at.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// CHECK-NOT: all_gather
// CHECK: dist.all_reduce max {{.*}} : tensor<5xf64>
// CHECK: dist.all_reduce sum {{.*}} : tensor<5xf64>
// CHECK: dist.all_reduce sum {{.*}} : tensor<5xf64>
// CHECK-NOT: all_gather

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not diff -q %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: does not follow from the logical program

// The largest of a rank, and its sum, alone.
// REDEFINE: %{edit} = s/dist.all_reduce max \(%[0-9]*\) over .*: \(.*\)$/nn.max \1, \1 : \2/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce sum \(%[0-9]*\) over .*: \(.*\)$/nn.max \1, \1 : \2/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.all_reduce max/dist.all_reduce sum/
// RUN: %{refused}
// Another rank's classes, other labels, and what is ignored.
// REDEFINE: %{edit} = s/nn.constant dense<4> : tensor<i64>/nn.constant dense<3> : tensor<i64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.constant dense<-100> : tensor<5xi64>/nn.constant dense<-1> : tensor<5xi64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.compare eq \(.*\) : tensor<5x4xi64>/nn.compare le \1 : tensor<5x4xi64>/
// RUN: %{refused}
// A label that is no class would stop nothing, or another would.
// REDEFINE: %{edit} = s/ {non_negative}//
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.iota {dim = 0 : i64} : tensor<8xi64>/nn.iota {dim = 0 : i64, start = 1 : i64} : tensor<8xi64>/
// RUN: %{refused}
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%x: tensor<5x8xf64> {nn.input = "x"}, %i: tensor<5xi64> {nn.input = "i"})
      -> (tensor<5xf64> {nn.output = "loss"}, tensor<5x8xf64> {nn.output = "p"}, tensor<5x8xf64> {nn.output = "q"}) attributes {nn.entry} {
    %a = dist.constraint %x to <@mesh, [{}, {tp}]> : tensor<5x8xf64>
    %loss = nn.cross_entropy %a, %i : (tensor<5x8xf64>, tensor<5xi64>) -> tensor<5xf64>
    %s = nn.softmax %a dim 1 : tensor<5x8xf64>
    %l = nn.softmax %a dim 1 {log} : tensor<5x8xf64>
    %p = dist.constraint %s to <@mesh, [{}, {tp}]> : tensor<5x8xf64>
    %q = dist.constraint %l to <@mesh, [{}, {tp}]> : tensor<5x8xf64>
    return %loss, %p, %q : tensor<5xf64>, tensor<5x8xf64>, tensor<5x8xf64>
  }
}
