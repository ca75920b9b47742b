// Linear algebra: the matrix products that nearly all time goes into.

#ifndef ACCEL_NN_LINEAR_TD
#define ACCEL_NN_LINEAR_TD

include "dialects/NN/NNBase.td"

def NN_MatmulOp : NN_InferredOp<"matmul"> {
  let summary = "Batched matrix product";
  let description = [{
    lhs is [b…, M, K] ([b…, K, M] with `transpose_lhs`), rhs [b…, K, N] or
    [K, N] ([…, N, K] with `transpose_rhs`): rhs either has lhs's batch
    dimensions or none. result is [b…, M, N]. Sums are at least as wide as f32.
    Operands of the 8-bit types may be of two of them, and give f32.

    ```mlir
    %y = nn.matmul %x, %w {transpose_rhs} : (tensor<4x8x16xf32>, tensor<32x16xf32>) -> tensor<4x8x32xf32>
    %z = nn.matmul %g, %w : (tensor<4x8xf8E5M2>, tensor<8x16xf8E4M3FN>) -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs,
      UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs NN_FloatTensor:$result);
  let hasCanonicalizer = 1;
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def NN_GroupedMatmulOp : NN_InferredOp<"grouped_matmul"> {
  let summary = "Each row times the matrix of its group";
  let description = [{
    result[r] = lhs[r] · rhs[groups[r]]: lhs is [R, K], rhs [G, K, N]
    ([G, N, K] with `transpose_rhs`), groups [R], result [R, N]. The products of
    a mixture of experts (Shazeer et al., arXiv:1701.06538), whose rows stay in
    the order of the tokens: no capacity, nothing dropped, nothing sorted that a
    reader would have to follow. A row of group -1 is in none: its result is
    zeros. Any other group outside [0, G) stops the run. Sums are at least as
    wide as f32.

    ```mlir
    %y = nn.grouped_matmul %x, %w, %expert {transpose_rhs}
        : (tensor<8x16xf32>, tensor<4x32x16xf32>, tensor<8xi64>) -> tensor<8x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs, NN_IndexTensor:$groups,
      UnitAttr:$transpose_rhs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `,` $groups attr-dict `:` functional-type(operands, results)";
}

def NN_GroupedMatmulGradOp : NN_InferredOp<"grouped_matmul_grad"> {
  let summary = "For each group, the products of its rows summed";
  let description = [{
    result[g] = Σ lhs[r]ᵀ · rhs[r] over the rows r whose group is g: lhs is
    [R, K], rhs [R, N], groups [R], result [`num_groups`, K, N]. The gradient of
    `nn.grouped_matmul`'s matrices. Groups as there; one without rows gets
    zeros.

    ```mlir
    %dw = nn.grouped_matmul_grad %x, %dy, %expert num_groups 4
        : (tensor<8x16xf32>, tensor<8x32xf32>, tensor<8xi64>) -> tensor<4x16x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs, NN_IndexTensor:$groups,
      I64Attr:$num_groups);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `,` $groups `num_groups` $num_groups attr-dict "
    # "`:` functional-type(operands, results)";
}

def NN_NewtonSchulzOp : NN_InferredOp<"newton_schulz"> {
  let summary = "Brings the singular values of matrices near 1";
  let description = [{
    Newton and Schulz's iteration of a quintic polynomial, as Muon has it (Jordan
    et al., 2024, https://kellerjordan.github.io/posts/muon): `steps` times
    X becomes aX + (bA + cA²)X, where A is XXᵀ; of a matrix with more rows than
    columns aX + X(bA + cA²), where A is XᵀX. `coefficients` are a, b and c. Each
    matrix [m, n] of the input [b…, m, n] is one by itself. Converges if no
    singular value is above 1, which whoever divides by a norm sees to. Products
    and sums are those of the `nn` ops in the input's type, coefficients
    included: in bf16 each is rounded.

    `Muon` makes it; `dist-assign-owners` stacks several, and `dist-localize` turns it
    into products: there is none from phase `local` on.

    ```mlir
    %y = nn.newton_schulz %x steps 5 coefficients [3.4445, -4.775, 2.0315] : tensor<2x768x3072xbf16>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, I64Attr:$steps, DenseF64ArrayAttr:$coefficients);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `steps` $steps `coefficients` $coefficients attr-dict `:` "
    # "custom<OneType>(type($input), type($result))";
}

def NN_DealRowsOp : NN_InferredOp<"deal_rows"> {
  let summary = "Which rows of some ranks have groups of one of them, and where each goes";
  let description = [{
    Ranks 0 to `ranks` - 1 have as many rows each, whose `groups` stand one rank's
    after another's; rank p has the groups [p, p + 1) · num_groups / ranks. For
    `rank`: `rows` are the numbers, among all, of the rows of its groups, in their
    order, and `own` their groups counted from its first; -1 stands behind the
    last of them, up to `room`. `places` says of each of its own rows where it
    is among those that all ranks have dealt so: rank · room + place, or -1 if it
    is in no group. Rows for which some rank has no room stop the run.

    ```mlir
    %rows, %own, %places = nn.deal_rows %groups, %rank num_groups 8 ranks 2 room 16
        : (tensor<16xi64>, tensor<i64>) -> (tensor<16xi64>, tensor<16xi64>, tensor<8xi64>)
    ```
  }];
  let arguments = (ins NN_IndexTensor:$groups, NN_IndexTensor:$rank, I64Attr:$num_groups,
      I64Attr:$ranks, I64Attr:$room);
  let results = (outs NN_IndexTensor:$rows, NN_IndexTensor:$own, NN_IndexTensor:$places);
  let assemblyFormat = "$groups `,` $rank `num_groups` $num_groups `ranks` $ranks `room` $room attr-dict "
    # "`:` functional-type(operands, results)";
}

#endif
