// Rows dealt to the ranks that have their experts: which rows a rank has nobody knows
// beforehand, but the same ones of all that was dealt by the same numbers. Other numbers,
// another rank's experts, other rows beside them, and a sum over ranks of what has all rows
// already are refused.
// RUN: rm -rf %t && mkdir %t
// RUN: acc-opt %S/../Parallel/keep-dealt.mlir --accel-run-phases="to=decided" -o %t/decided.mlir
// RUN: acc-opt %t/decided.mlir --accel-run-phases="to=local" -o %t/local.mlir
// RUN: acc-opt %t/local.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null

// DEFINE: %{edit} =
// DEFINE: %{refused} = sed '%{edit}' %t/local.mlir > %t/edited.mlir && not cmp -s %t/local.mlir %t/edited.mlir && not acc-opt %t/edited.mlir --dist-verify-equivalence=logical=%t/decided.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Rows by their experts' numbers; products with the experts that rows' numbers say.
// REDEFINE: %{edit} = s/\(dist.fetch_rows %arg0, \)%rows/\1%own/
// RUN: %{refused}
// REDEFINE: %{edit} = s/\(nn.grouped_matmul %4, %arg2, \)%own/\1%rows/
// RUN: %{refused}
// REDEFINE: %{edit} = s/\(nn.grouped_matmul_grad %9, %6, \)%own/\1%rows/
// RUN: %{refused}
// More experts than there are; those of another rank; of other rows.
// REDEFINE: %{edit} = /nn.deal_rows/s/num_groups 4/num_groups 8/
// RUN: %{refused}
// REDEFINE: %{edit} = /dist.axis_index/s/$/\n%one = nn.constant dense<1> : tensor<i64>\n%back = nn.sub %one, %3 : tensor<i64>/; s/nn.deal_rows %2, %3/nn.deal_rows %2, %back/
// RUN: %{refused}
// REDEFINE: %{edit} = /%1 = nn.reshape/s/$/\n%numbers = nn.constant dense<3> : tensor<8xi64>\n%other = nn.sub %numbers, %1 : tensor<8xi64>/; s/dist.all_gather %1/dist.all_gather %other/
// RUN: %{refused}
// Another function of them; other rows beside them; others than were sent.
// REDEFINE: %{edit} = s/nn.relu/nn.exp/
// RUN: %{refused}
// REDEFINE: %{edit} = s/nn.grouped_matmul_grad %15, %4/nn.grouped_matmul_grad %15, %9/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.fetch_rows %arg4/dist.fetch_rows %arg0/
// RUN: %{refused}
// REDEFINE: %{edit} = s/dist.fetch_rows %17,/dist.fetch_rows %7,/
// RUN: %{refused}
// All rows of a rank's experts are there: their sum is no term.
// REDEFINE: %{edit} = /%16 = nn.grouped_matmul_grad/s/$/\n%again = dist.all_reduce sum %16 over @mesh {ep} : tensor<2x6x4xf64>/; s/return %8, %18, %16/return %8, %18, %again/
// RUN: %{refused}
