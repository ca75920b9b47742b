// Attention as one op: better kernels, rules and gradients than its parts.

#ifndef ACCEL_NN_ATTENTION_TD
#define ACCEL_NN_ATTENTION_TD

include "dialects/NN/NNBase.td"

class NN_AttentionLike<string mnemonic, list<Trait> traits = []>
    : NN_InferredOp<mnemonic, traits> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// With `causal`, row s sees keys up to s + this, but for what `row_steps`
    /// and `column_steps` add.
    int64_t getDiagonal() {
      return ::llvm::divideFloorSigned<int64_t>(
          int64_t(getRowOffset()) - int64_t(getColumnOffset()),
          int64_t(getStride()));
    }
  }];
}

def NN_AttentionOp : NN_AttentionLike<"attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    query [B, H, S, D], key [B, G, T, D], value [B, G, T, E], G dividing H
    (grouped queries: head h reads key head h / (H/G)). Of each row's scores =
    scale · query keyᵀ + mask, `result` [B, H, S, E] = softmax(scores) value, and
    `log_sum_exp` [B, H, S] = log Σ exp(scores), in f32, or f64 for operands of f64.
    It costs nothing where nobody reads it.

    `mask` [B|1, H|1, S|1, T] is added if it is of floats, and lets a score through
    where it is true if it is of i1. A row in which nothing is let through has the
    log-sum-exp -inf; its result is zeros if `zero_masked_rows` is set, and NaN
    otherwise. Vaswani et al., arXiv:1706.03762.

    A mask of floats may have one column more, [B|1, H|1, S|1, 1 + T]. The first is then
    no key's, but the level that each row's scores are counted from: it is subtracted
    from them once the mask is added. The result knows nothing of it; the log-sum-exp
    is that of what is left. In a row that numbers hide wholly, as the most negative
    one does, scores are alike, and so far from 0 that their log-sum-exp has no digit
    for how many they are: counted from the largest number in the mask's row, it has.

    With `causal`, the operands are the rows from `row_offset` on and the keys from
    `column_offset` on of a larger attention, and row s sees key t where
    t + column_offset <= s + row_offset. Both are 0 where they are not written: row 0
    sees key 0 alone. S rows that end where T keys end, as those of a decoder with a
    cache of T - S keys, have row_offset = T - S. Of a program that ranks run on rows of
    their own, `row_steps` says how far on they are: the coordinate along a mesh axis
    times its number is added to `row_offset` (`{cp = 64}`: the second rank's rows begin
    64 rows behind the first's). `column_steps` says the same of keys, which may be
    another rank's: those of the rank that stands `turn` places before along the axis,
    cyclically. With `{cp = 64}`, `turn = 1` and 4 ranks the second rank has keys from 0
    on, and the first those from 192 on, none of which its rows see.

    Rows, and keys, that do not follow each other are `stride` apart: row s is then row
    s · stride + row_offset of the larger attention, and so are keys. Of ranks that have
    each n-th row, the second of two has rows 1, 3, 5, … with `{cp = 1}` and `stride = 2`.

    So any rectangle of scores can be computed by itself, with `zero_masked_rows`, and
    rectangles of the same rows be combined exactly: with L their log-sum-exps,
    L' = log Σ exp(L) and result' = Σ exp(L - L') result (exp(-inf) being 0, even where
    L' is -inf).

    ```mlir
    %y, %l = nn.attention %q, %k, %v {causal, scale = 0.125} : (…) -> (tensor<4x12x128x64xf32>, tensor<4x12x128xf32>)
    // The lower left quarter of it: rows from 64 on, keys up to 63.
    %z, %m = nn.attention %low, %left, %v {causal, row_offset = 64, scale = 0.125, zero_masked_rows} : (…) -> (tensor<4x12x64x64xf32>, tensor<4x12x64xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key,
      NN_FloatTensor:$value, Optional<NN_Tensor>:$mask, F64Attr:$scale,
      UnitAttr:$causal, UnitAttr:$zero_masked_rows,
      DefaultValuedAttr<I64Attr, "0">:$row_offset, DefaultValuedAttr<I64Attr, "0">:$column_offset,
      OptionalAttr<DictionaryAttr>:$row_steps,
      OptionalAttr<DictionaryAttr>:$column_steps, DefaultValuedAttr<I64Attr, "0">:$turn,
      DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$log_sum_exp);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

def NN_AttentionGradOp : NN_AttentionLike<"attention_grad", [AttrSizedOperandSegments]> {
  let summary = "The vector-Jacobian product of nn.attention";
  let description = [{
    Operands, mask and attributes as in `nn.attention`; `output` and `log_sum_exp` are
    its results, `gradient` and `log_sum_exp_gradient` their gradients (the latter 0 if
    it is absent). Results: the gradients of query, key and value. With
    P = exp(scores - log_sum_exp) and dP = gradient · valueᵀ:
    dV = Pᵀ · gradient, dS = scale · P ∘ (dP - rowsum(gradient ∘ output) + log_sum_exp_gradient),
    dQ = dS · key, dK = dSᵀ · query, those of a key head summed over its query heads
    (Dao, arXiv:2307.08691, §3.1: P is computed again from the log-sum-exp, in one pass over
    a row of scores, so that nothing of their number is kept from forward to backward).
    With a mask of floats P is divided by its row's sum where that is above 1: in scores that
    such a mask leaves alike and far from 0, as its most negative number does in a row that it
    hides wholly, the logarithm of their number is lost in the log-sum-exp (of rectangles too:
    these rows alone are not combined exactly, unless the mask has levels).
    The mask gets no gradient. A row whose log-sum-exp is -inf contributes nothing
    with `zero_masked_rows`, and NaN otherwise (to the gradients of the keys that
    `causal` lets it see, at least).

    All of a row that the formulas need is in the four row operands. So of a
    rectangle of scores there are two gradients, both exact:
    - given its own output and log-sum-exp, and their two gradients, it is the vector-Jacobian
      product of this rectangle. Differentiating a combination of rectangles gives this;
    - given the output, its gradient and the log-sum-exp of the whole row, it is what
      the rectangle contributes to the gradients of the whole: no gradient of
      a log-sum-exp is needed, and nothing of the rectangle's own forward. A ring of
      ranks computes this.

    ```mlir
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v output %y, %l gradient %dy {causal, scale = 0.125} : (…) -> (…)
    %0:3 = nn.attention_grad %q, %k, %v output %y, %l gradient %dy, %dl mask %m {scale = 0.125} : (…) -> (…)
    ```

    Lifetime: made by the vector-Jacobian product of `nn.attention`.
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key,
      NN_FloatTensor:$value, NN_FloatTensor:$output, NN_FloatTensor:$log_sum_exp,
      NN_FloatTensor:$gradient, Optional<NN_FloatTensor>:$log_sum_exp_gradient,
      Optional<NN_Tensor>:$mask, F64Attr:$scale,
      UnitAttr:$causal, UnitAttr:$zero_masked_rows,
      DefaultValuedAttr<I64Attr, "0">:$row_offset, DefaultValuedAttr<I64Attr, "0">:$column_offset,
      OptionalAttr<DictionaryAttr>:$row_steps,
      OptionalAttr<DictionaryAttr>:$column_steps, DefaultValuedAttr<I64Attr, "0">:$turn,
      DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs NN_FloatTensor:$query_gradient,
      NN_FloatTensor:$key_gradient, NN_FloatTensor:$value_gradient);
  let assemblyFormat = "$query `,` $key `,` $value `output` $output `,` $log_sum_exp `gradient` $gradient (`,` $log_sum_exp_gradient^)? (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}

#endif
