// Each rank looks up what lies in its own rows of a table, and adds to these:
// masked lookups are terms of the lookup, and masked additions those of the rank's
// rows. An index that points nowhere must still point nowhere.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s < %t/local.mlir
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// CHECK: nn.gather {{.*}} dim 0 : (tensor<4x3xf64>, tensor<5xi64>) -> tensor<5x3xf64>
// CHECK: nn.gather {{.*}} dim 1 {non_negative} : (tensor<3x4xf64>, tensor<5xi64>) -> tensor<3x5xf64>
// CHECK: nn.scatter_add {{.*}} dim 0 : (tensor<4x3xf64>, tensor<5xi64>, tensor<5x3xf64>) -> tensor<4x3xf64>
// CHECK-NOT: all_gather

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not diff -q %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT
// NOT: error: does not follow from the logical program

// Another rank's offset, or range.
// REDEFINE: %{edit} = s/nn.constant dense<4> : tensor<i64>/nn.constant dense<3> : tensor<i64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.constant dense<4> : tensor<5xi64>/nn.constant dense<5> : tensor<5xi64>/
// RUN: %{refused}
// Of another table's size: indices from the end, and what points nowhere.
// REDEFINE: %{edit} = s/nn.constant dense<8> : tensor<5xi64>/nn.constant dense<9> : tensor<5xi64>/
// RUN: %{refused}
// A boundary.
// REDEFINE: %{edit} = s/nn.compare lt \(.*\) : tensor<5xi64>/nn.compare le \1 : tensor<5xi64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.compare ge \(.*\) : tensor<5xi64>/nn.compare gt \1 : tensor<5xi64>/
// RUN: %{refused}
// The offset taken the other way, or from what is elsewhere.
// REDEFINE: %{edit} = s/nn.sub \(.*\) : tensor<5xi64>/nn.add \1 : tensor<5xi64>/
// RUN: %{refused}
// No mask, and one that is turned around.
// REDEFINE: %{edit} = s/nn.select \(%[0-9]*\), \(%[0-9]*\), %[0-9]* : tensor<5x3xf64>/nn.select \1, \2, \2 : tensor<5x3xf64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.select \(%[0-9]*\), \(%[0-9]*\), \(%[0-9]*\) : tensor<5x3xf64>/nn.select \1, \3, \2 : tensor<5x3xf64>/
// RUN: %{refused}
// The same of elements picked by tuples of one index.
// REDEFINE: %{edit} = s/nn.select \(%[0-9]*\), \(%[0-9]*\), %[0-9]* : tensor<4x2xf64>/nn.select \1, \2, \2 : tensor<4x2xf64>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.select \(%[0-9]*\), \(%[0-9]*\), \(%[0-9]*\) : tensor<4x2xf64>/nn.select \1, \3, \2 : tensor<4x2xf64>/
// RUN: %{refused}
// A lookup that stops for other indices.
// REDEFINE: %{edit} = s/ {non_negative}//
// RUN: %{refused}
// No sum over ranks.
// REDEFINE: %{edit} = s/dist.all_reduce sum \(.*\) over @mesh {tp}.*: \(.*\)$/nn.mul \1, \1 : \2/
// RUN: %{refused}
module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%w: tensor<8x3xf64> {nn.input = "w"}, %v: tensor<3x8xf64> {nn.input = "v"}, %i: tensor<5xi64> {nn.input = "i"}, %u: tensor<5x3xf64> {nn.input = "u"}, %j: tensor<7xi64> {nn.input = "j"}, %t: tensor<7x3xf64> {nn.input = "t"}, %n: tensor<4x8xf64> {nn.input = "n"}, %k: tensor<4x2x1xi64> {nn.input = "k"})
      -> (tensor<5x3xf64> {nn.output = "x"}, tensor<3x5xf64> {nn.output = "y"}, tensor<8x3xf64> {nn.output = "z"}, tensor<8x3xf64> {nn.output = "p"}, tensor<4x2xf64> {nn.output = "e"}) attributes {nn.entry} {
    %a = dist.constraint %w to <@mesh, [{tp}, {}]> : tensor<8x3xf64>
    %b = dist.constraint %v to <@mesh, [{}, {tp}]> : tensor<3x8xf64>
    %x = nn.gather %a, %i dim 0 padding 1 : (tensor<8x3xf64>, tensor<5xi64>) -> tensor<5x3xf64>
    %y = nn.gather %b, %i dim 1 {non_negative} : (tensor<3x8xf64>, tensor<5xi64>) -> tensor<3x5xf64>
    %zero = nn.constant dense<0.0> : tensor<8x3xf64>
    %s = nn.scatter_add %zero, %i, %u dim 0 : (tensor<8x3xf64>, tensor<5xi64>, tensor<5x3xf64>) -> tensor<8x3xf64>
    %z = dist.constraint %s to <@mesh, [{tp}, {}]> : tensor<8x3xf64>
    // As the gradient of a table with a row for padding.
    %one = nn.constant dense<1> : tensor<7xi64>
    %isPadding = nn.compare eq %j, %one : tensor<7xi64>
    %mask = nn.reshape %isPadding : (tensor<7xi1>) -> tensor<7x1xi1>
    %masks = nn.broadcast %mask : (tensor<7x1xi1>) -> tensor<7x3xi1>
    %zeros = nn.constant dense<0.0> : tensor<7x3xf64>
    %kept = nn.select %masks, %zeros, %t : tensor<7x3xf64>
    %r = nn.scatter_add %zero, %j, %kept dim 0 : (tensor<8x3xf64>, tensor<7xi64>, tensor<7x3xf64>) -> tensor<8x3xf64>
    %p = dist.constraint %r to <@mesh, [{tp}, {}]> : tensor<8x3xf64>
    %d = dist.constraint %n to <@mesh, [{}, {tp}]> : tensor<4x8xf64>
    %e = nn.gather_nd %d, %k {batch_dims = 1 : i64} : (tensor<4x8xf64>, tensor<4x2x1xi64>) -> tensor<4x2xf64>
    return %x, %y, %z, %p, %e : tensor<5x3xf64>, tensor<3x5xf64>, tensor<8x3xf64>, tensor<8x3xf64>, tensor<4x2xf64>
  }
}
