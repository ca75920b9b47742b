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

def NN_AttentionGradOp : NN_InferredOp<"attention_grad"> {
  let summary = "The vector-Jacobian product of nn.attention";
  let description = [{
    Operands, mask and attributes as in `nn.attention`; `gradient` is that of its
    result. Results: the gradients of query, key and value. With P the row's
    softmax and dP = gradient · valueᵀ: dV = Pᵀ · gradient,
    dS = scale · P ∘ (dP - rowsum(dP ∘ P)), dQ = dS · key, dK = dSᵀ · query,
    those of a key head summed over its query heads. P is computed again, row by
    row, so that nothing but the operands is kept from forward to backward
    (Dao et al., arXiv:2205.14135, §3.1 and appendix B.4). The mask gets no
    gradient. A row in which nothing is let through contributes nothing with
    `zero_masked_rows`, and NaN otherwise (to the gradients of the keys that
    `causal` lets it see, at least).

    Lifetime: made by the vector-Jacobian product of `nn.attention`.
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key,
      NN_FloatTensor:$value, NN_FloatTensor:$gradient,
      Optional<NN_Tensor>:$mask, F64Attr:$scale,
      UnitAttr:$causal, UnitAttr:$zero_masked_rows);
  let results = (outs NN_FloatTensor:$query_gradient,
      NN_FloatTensor:$key_gradient, NN_FloatTensor:$value_gradient);
  let assemblyFormat = "$query `,` $key `,` $value `,` $gradient (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

#endif
