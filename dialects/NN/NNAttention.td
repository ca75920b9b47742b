// Attention as one op: better kernels, rules and gradients than its parts.

#ifndef ACCEL_NN_ATTENTION_TD
#define ACCEL_NN_ATTENTION_TD

include "dialects/NN/NNBase.td"

def NN_AttentionOp : NN_InferredOp<"attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    query [B, H, S, D], key [B, G, T, D], value [B, G, T, E], G dividing H
    (grouped queries: head h reads key head h / (H/G)); result [B, H, S, E] =
    softmax(scale · query keyᵀ + mask) value, row by row.

    `mask` [B|1, H|1, S|1, T] is added if it is of floats, and lets a score through
    where it is true if it is of i1; a row in which nothing is let through gives
    zeros if `zero_masked_rows` is set, and NaN otherwise. With `causal`, key t
    is hidden from query s where t > s + T - S.
    Vaswani et al., arXiv:1706.03762.

    ```mlir
    %y = nn.attention %q, %k, %v {causal, scale = 0.125} : (…) -> tensor<4x12x128x64xf32>
    %z = nn.attention %q, %k, %v mask %m {scale = 0.125} : (…) -> tensor<4x12x128x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key,
      NN_FloatTensor:$value, Optional<NN_Tensor>:$mask, F64Attr:$scale,
      UnitAttr:$causal, UnitAttr:$zero_masked_rows);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

#endif
