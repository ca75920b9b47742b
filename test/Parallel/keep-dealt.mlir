// Expert parallelism: rows go to the ranks that have their experts, stay there from one
// product to the next, and come back once; no matrix is gathered, no gradient of one
// is summed.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %s --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --dist-plan-reshards --dist-localize -o %t/each.mlir
// RUN: FileCheck %s --check-prefix=EACH < %t/each.mlir
// RUN: acc-opt %t/each.mlir --dist-keep-dealt | FileCheck %s
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null
// RUN: acc-eval %t/local.mlir --compare %s --tolerance 1e-12
// RUN: acc-opt %t/local.mlir --proved-against=%s --compile-to=plan -o %t/plan.mlir
// RUN: acc-eval %t/plan.mlir --compare %s --tolerance 1e-12

// Each product by itself deals its rows.
// EACH-COUNT-6: nn.deal_rows

// Of 8 rows of each rank, two for each of 4 tokens, as many may go to one rank as all ranks
// have tokens times the two experts that it has.
// CHECK: %[[ALL:.*]] = dist.all_gather %[[E:.*]] over @mesh {ep} dim 0 {{.*}} : (tensor<8xi64>) -> tensor<16xi64>
// CHECK: %[[RANK:.*]] = dist.axis_index @mesh {ep}
// CHECK: %[[ROWS:.*]], %[[OWN:.*]], %[[PLACES:.*]] = nn.deal_rows %[[ALL]], %[[RANK]] num_groups 4 ranks 2 room 16
// CHECK: %[[X:.*]] = dist.fetch_rows %{{.*}}, %[[ROWS]] over @mesh {ep} {dist.inserted_by = "dist-localize"} : (tensor<8x4xf64>, tensor<16xi64>) -> tensor<16x4xf64>
// CHECK: %[[H:.*]] = nn.grouped_matmul %[[X]], %{{.*}}, %[[OWN]] {transpose_rhs} : (tensor<16x4xf64>, tensor<2x6x4xf64>, tensor<16xi64>) -> tensor<16x6xf64>
// CHECK: %[[R:.*]] = nn.relu %[[H]] : tensor<16x6xf64>
// CHECK: %[[Y:.*]] = nn.grouped_matmul %[[R]], %{{.*}}, %[[OWN]] {transpose_rhs}
// CHECK: dist.fetch_rows %[[Y]], %[[PLACES]] over @mesh {ep} {{.*}} : (tensor<16x4xf64>, tensor<8xi64>) -> tensor<8x4xf64>
// CHECK: %[[G:.*]] = dist.fetch_rows %{{.*}}, %[[ROWS]]
// CHECK: %[[DR:.*]] = nn.grouped_matmul %[[G]], %{{.*}}, %[[OWN]]
// CHECK: nn.grouped_matmul_grad %[[G]], %[[R]], %[[OWN]] num_groups 2 : {{.*}} -> tensor<2x4x6xf64>
// CHECK: %[[ON:.*]] = nn.compare gt %[[H]]
// CHECK: %[[DH:.*]] = nn.select %[[ON]], %[[DR]]
// CHECK: nn.grouped_matmul_grad %[[DH]], %[[X]], %[[OWN]] num_groups 2
// CHECK: %[[DX:.*]] = nn.grouped_matmul %[[DH]], %{{.*}}, %[[OWN]]
// CHECK: dist.fetch_rows %[[DX]], %[[PLACES]]
// CHECK-NOT: nn.deal_rows
// CHECK-NOT: dist.fetch_rows

module attributes {accel.phase = "train"} {
  dist.mesh @mesh ["ep" = 2]
  func.func @main(%0: tensor<16x4xf64> {nn.input = "x"}, %1: tensor<8x4xf64> {nn.input = "s"}, %2: tensor<4x6x4xf64> {nn.input = "w"}, %3: tensor<4x4x6xf64> {nn.input = "v"}, %4: tensor<16x4xf64> {nn.input = "g"})
      -> (tensor<16x4xf64> {nn.output = "y"}, tensor<16x4xf64> {nn.output = "dx"}, tensor<4x6x4xf64> {nn.output = "dw"}, tensor<4x4x6xf64> {nn.output = "dv"}) attributes {nn.entry} {
    %x = dist.constraint %0 to <@mesh, [{ep}, {}]> : tensor<16x4xf64>
    %s = dist.constraint %1 to <@mesh, [{ep}, {}]> : tensor<8x4xf64>
    %w = dist.constraint %2 to <@mesh, [{ep}, {}, {}]> : tensor<4x6x4xf64>
    %v = dist.constraint %3 to <@mesh, [{ep}, {}, {}]> : tensor<4x4x6xf64>
    %g = dist.constraint %4 to <@mesh, [{ep}, {}]> : tensor<16x4xf64>
    %t = nn.top_k %s k 2 : (tensor<8x4xf64>) -> tensor<8x2xi64>
    %e = nn.reshape %t : (tensor<8x2xi64>) -> tensor<16xi64>
    %h = nn.grouped_matmul %x, %w, %e {transpose_rhs} : (tensor<16x4xf64>, tensor<4x6x4xf64>, tensor<16xi64>) -> tensor<16x6xf64>
    %r = nn.relu %h : tensor<16x6xf64>
    %y = nn.grouped_matmul %r, %v, %e {transpose_rhs} : (tensor<16x6xf64>, tensor<4x4x6xf64>, tensor<16xi64>) -> tensor<16x4xf64>
    %dr = nn.grouped_matmul %g, %v, %e : (tensor<16x4xf64>, tensor<4x4x6xf64>, tensor<16xi64>) -> tensor<16x6xf64>
    %5 = nn.grouped_matmul_grad %g, %r, %e num_groups 4 : (tensor<16x4xf64>, tensor<16x6xf64>, tensor<16xi64>) -> tensor<4x4x6xf64>
    %dv = dist.constraint %5 to <@mesh, [{ep}, {}, {}]> : tensor<4x4x6xf64>
    %zero = nn.constant dense<0.0> : tensor<16x6xf64>
    %on = nn.compare gt %h, %zero : (tensor<16x6xf64>, tensor<16x6xf64>) -> tensor<16x6xi1>
    %dh = nn.select %on, %dr, %zero : (tensor<16x6xi1>, tensor<16x6xf64>, tensor<16x6xf64>) -> tensor<16x6xf64>
    %6 = nn.grouped_matmul_grad %dh, %x, %e num_groups 4 : (tensor<16x6xf64>, tensor<16x4xf64>, tensor<16xi64>) -> tensor<4x6x4xf64>
    %dw = dist.constraint %6 to <@mesh, [{ep}, {}, {}]> : tensor<4x6x4xf64>
    %dx = nn.grouped_matmul %dh, %w, %e : (tensor<16x6xf64>, tensor<4x6x4xf64>, tensor<16xi64>) -> tensor<16x4xf64>
    return %y, %dx, %dw, %dv : tensor<16x4xf64>, tensor<16x4xf64>, tensor<4x6x4xf64>, tensor<4x4x6xf64>
  }
}
