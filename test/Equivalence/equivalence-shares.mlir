// Parts of a fused weight, of which a rank has its share: what it cuts out of its shares is its share
// of what the step cuts out, and what it joins likewise. The parts are of 8, 4 and 4 columns.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=local" -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%s -o /dev/null
// LOCAL: %[[H:.*]] = nn.matmul %{{.*}} : (tensor<256x4xf64>, tensor<4x8xf64>) -> tensor<256x8xf64>
// LOCAL: %[[S:.*]] = nn.add %[[H]]
// LOCAL: nn.slice %[[S]] starts [0, 0] sizes [256, 4]
// LOCAL: nn.slice %[[S]] starts [0, 4] sizes [256, 4]
// LOCAL: nn.slice %{{.*}} starts [0, 0] sizes [256, 2]
// LOCAL: nn.concat
// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/m.mlir && not cmp -s %t/local.mlir %t/m.mlir && not acc-opt %t/m.mlir --dist-verify-equivalence=logical=%s -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*}}{{(does not follow from the logical program|found something else|expected the layout|expected .* found .*by)}}

// A part at another offset, and keys for values.
// REDEFINE: %{edit} = s/starts .0, 4. sizes .256, 4./starts [0, 3] sizes [256, 4]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/starts .0, 0. sizes .256, 2./starts [0, 2] sizes [256, 2]/
// RUN: %{refused}
// REDEFINE: %{edit} = s/starts .0, 4. sizes .256, 4./starts [0, 0] sizes [256, 4]/
// RUN: %{refused}
// Gradients joined in another order.
// REDEFINE: %{edit} = s/nn.concat \(%[^ ,]*\), \(%[^ ,]*\), \(%[^ ,]*\)/nn.concat \1, \3, \2/
// RUN: %{refused}
// A weight in the order of files, in parts of other sizes, in other shares; or its bias.
// REDEFINE: %{edit} = s/, interleaved = <1.8, 4, 4. by 2>//
// RUN: %{refused}
// REDEFINE: %{edit} = s/interleaved = <1.8, 4, 4. by 2>/interleaved = <1[4, 8, 4] by 2>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/interleaved = <1.8, 4, 4. by 2>/interleaved = <1[8, 4, 4] by 4>/
// RUN: %{refused}
// REDEFINE: %{edit} = s/, interleaved = <0.8, 4, 4. by 2>//
// RUN: %{refused}

module attributes {accel.phase = "train"} {
dist.mesh @mesh ["tp" = 2]
nn.state @w : tensor<4x16xf64> = dense<0.5>
nn.state @b : tensor<16xf64> = dense<0.25>
nn.state @o : tensor<8x4xf64> = dense<0.5>
nn.state @p : tensor<4x4xf64> = dense<0.25>
func.func @main(%x: tensor<256x4xf64> {nn.input = "x"}, %w: tensor<4x16xf64> {nn.state = @w}, %b: tensor<16xf64> {nn.state = @b}, %o: tensor<8x4xf64> {nn.state = @o}, %p: tensor<4x4xf64> {nn.state = @p})
    -> (tensor<256x4xf64> {nn.output = "y"}, tensor<256x4xf64> {nn.output = "back"}, tensor<4x16xf64> {nn.output = "w.grad"}) attributes {nn.entry} {
  %w0 = dist.constraint %w to <@mesh, [{}, {tp} ]> : tensor<4x16xf64>
  %h = nn.matmul %x, %w0 : (tensor<256x4xf64>, tensor<4x16xf64>) -> tensor<256x16xf64>
  %c = nn.broadcast %b : (tensor<16xf64>) -> tensor<256x16xf64>
  %s = nn.add %h, %c : tensor<256x16xf64>
  %q = nn.slice %s starts [0, 0] sizes [256, 8] steps [1, 1] : (tensor<256x16xf64>) -> tensor<256x8xf64>
  %kv = nn.slice %s starts [0, 8] sizes [256, 8] steps [1, 1] : (tensor<256x16xf64>) -> tensor<256x8xf64>
  %k = nn.slice %kv starts [0, 0] sizes [256, 4] steps [1, 1] : (tensor<256x8xf64>) -> tensor<256x4xf64>
  %v = nn.slice %kv starts [0, 4] sizes [256, 4] steps [1, 1] : (tensor<256x8xf64>) -> tensor<256x4xf64>
  %m = nn.mul %k, %v : tensor<256x4xf64>
  %e = nn.exp %k : tensor<256x4xf64>
  %0 = nn.matmul %q, %o : (tensor<256x8xf64>, tensor<8x4xf64>) -> tensor<256x4xf64>
  %1 = nn.matmul %m, %p : (tensor<256x4xf64>, tensor<4x4xf64>) -> tensor<256x4xf64>
  %y = nn.add %0, %1 : tensor<256x4xf64>
  %d = nn.exp %q : tensor<256x8xf64>
  %ds = nn.concat %d, %e, %m dim 1 : (tensor<256x8xf64>, tensor<256x4xf64>, tensor<256x4xf64>) -> tensor<256x16xf64>
  %back = nn.matmul %ds, %w0 {transpose_rhs} : (tensor<256x16xf64>, tensor<4x16xf64>) -> tensor<256x4xf64>
  %dw = nn.matmul %x, %ds {transpose_lhs} : (tensor<256x4xf64>, tensor<256x16xf64>) -> tensor<4x16xf64>
  return %y, %back, %dw : tensor<256x4xf64>, tensor<256x4xf64>, tensor<4x16xf64>
}
}
