// Linear algebra: the matrix product that nearly all time goes into.

#ifndef ACCEL_NN_LINEAR_TD
#define ACCEL_NN_LINEAR_TD

include "dialects/NN/NNBase.td"

def NN_MatmulOp : NN_InferredOp<"matmul"> {
  let summary = "Batched matrix product";
  let description = [{
    lhs is [b…, M, K] ([b…, K, M] with `transpose_lhs`), rhs [b…, K, N] or
    [K, N] ([…, N, K] with `transpose_rhs`): rhs either has lhs's batch
    dimensions or none. result is [b…, M, N]. Sums are at least as wide as f32.

    ```mlir
    %y = nn.matmul %x, %w {transpose_rhs} : (tensor<4x8x16xf32>, tensor<32x16xf32>) -> tensor<4x8x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs,
      UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs NN_FloatTensor:$result);
  let hasCanonicalizer = 1;
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

#endif
