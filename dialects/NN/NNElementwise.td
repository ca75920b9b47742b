// Elementwise ops: one result element from the operands' elements in the same
// place. All operands have the result's shape; broadcasting is nn.broadcast.

#ifndef ACCEL_NN_ELEMENTWISE_TD
#define ACCEL_NN_ELEMENTWISE_TD

include "dialects/NN/NNBase.td"

def NN_Elementwise : NativeOpTrait<"Elementwise", [], [{}]> {
  let cppNamespace = "::accel::nn";
}

class NN_UnaryOp<string mnemonic, Type type, string what>
    : NN_InferredOp<mnemonic, [NN_Elementwise]> {
  let summary = what;
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def NN_NegOp : NN_UnaryOp<"neg", NN_Tensor, "-x">;
def NN_AbsOp : NN_UnaryOp<"abs", NN_Tensor, "|x|">;
def NN_ExpOp : NN_UnaryOp<"exp", NN_FloatTensor, "e to the x">;
def NN_LogOp : NN_UnaryOp<"log", NN_FloatTensor, "Natural logarithm">;
def NN_Log1pOp : NN_UnaryOp<"log1p", NN_FloatTensor, "log(1 + x), exact for small x too">;
def NN_SqrtOp : NN_UnaryOp<"sqrt", NN_FloatTensor, "Square root">;
def NN_RsqrtOp : NN_UnaryOp<"rsqrt", NN_FloatTensor, "1 / sqrt(x)">;
def NN_ReciprocalOp : NN_UnaryOp<"reciprocal", NN_FloatTensor, "1 / x">;
def NN_TanhOp : NN_UnaryOp<"tanh", NN_FloatTensor, "Hyperbolic tangent">;
def NN_ErfOp : NN_UnaryOp<"erf", NN_FloatTensor, "Error function">;
def NN_SigmoidOp : NN_UnaryOp<"sigmoid", NN_FloatTensor, "1 / (1 + exp(-x))">;
def NN_ReluOp : NN_UnaryOp<"relu", NN_FloatTensor, "max(x, 0); NaN stays NaN">;
def NN_SinOp : NN_UnaryOp<"sin", NN_FloatTensor, "Sine">;
def NN_CosOp : NN_UnaryOp<"cos", NN_FloatTensor, "Cosine">;
def NN_FloorOp : NN_UnaryOp<"floor", NN_FloatTensor, "Largest integer not above x">;
def NN_NotOp : NN_UnaryOp<"not", NN_BoolTensor, "Logical negation">;

def NN_IsNanOp : NN_InferredOp<"is_nan", [NN_Elementwise]> {
  let summary = "Whether x is not a number";
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_GeluOp : NN_InferredOp<"gelu", [NN_Elementwise]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `erf`: x/2 (1 + erf(x/√2)); `tanh`: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))).
    Hendrycks and Gimpel, arXiv:1606.08415. Exporters decompose it;
    `nn-recognize-gelu` puts it together again.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_GeluKindAttr:$kind);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "`` $kind $input attr-dict `:` functional-type(operands, results)";
}

class NN_BinaryOp<string mnemonic, Type type, string what, list<Trait> traits = []>
    : NN_InferredOp<mnemonic, !listconcat([NN_Elementwise], traits)> {
  let summary = what;
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
def NN_AddOp : NN_BinaryOp<"add", NN_Tensor, "x + y"> { let hasFolder = 1; }
def NN_SubOp : NN_BinaryOp<"sub", NN_Tensor, "x - y"> { let hasFolder = 1; }
def NN_MulOp : NN_BinaryOp<"mul", NN_Tensor, "x * y"> { let hasFolder = 1; }
def NN_DivOp : NN_BinaryOp<"div", NN_Tensor, "x / y; on integers rounded towards zero"> { let hasFolder = 1; }
def NN_ModOp : NN_BinaryOp<"mod", NN_Tensor, "Remainder with the sign of y; on floats with the sign of x (fmod)">;
def NN_PowOp : NN_BinaryOp<"pow", NN_Tensor, "x to the power y"> {
  let hasCanonicalizer = 1;
}
def NN_MinOp : NN_BinaryOp<"min", NN_Tensor, "The smaller; NaN if either is NaN">;
def NN_MaxOp : NN_BinaryOp<"max", NN_Tensor, "The larger; NaN if either is NaN">;
def NN_AndOp : NN_BinaryOp<"and", NN_BoolTensor, "Logical and">;
def NN_OrOp : NN_BinaryOp<"or", NN_BoolTensor, "Logical or">;

def NN_CompareOp : NN_InferredOp<"compare", [NN_Elementwise]> {
  let summary = "Whether a relation holds between x and y";
  let arguments = (ins NN_ComparePredicateAttr:$predicate, NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "`` $predicate $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def NN_SelectOp : NN_InferredOp<"select", [NN_Elementwise]> {
  let summary = "x where the condition holds, y elsewhere";
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$on_true, NN_Tensor:$on_false);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def NN_CastOp : NN_Op<"cast", [NN_Elementwise]> {
  let summary = "The same values in another element type";
  let description = [{
    Float to integer rounds towards zero; to i1 is `!= 0`; float to a narrower
    float rounds to nearest, ties to even. A barrier for partial sums, except
    to a wider float: that changes no number.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def NN_RandomUniformOp : NN_InferredOp<"random_uniform", [NN_Elementwise]> {
  let summary = "A pseudo-random number in [0, 1) for each counter";
  let description = [{
    The upper 24 bits of the first word of Philox4x32-10 (Salmon et al., SC'11),
    keyed by `key`, at `counter`, times 2^-24. The counter is a logical
    coordinate, so that every layout draws the same numbers. `key` has the
    counter's shape (a broadcast scalar).
  }];
  let arguments = (ins TensorOf<[I64]>:$counter, TensorOf<[I64]>:$key);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$counter `,` $key attr-dict `:` functional-type(operands, results)";
}

def NN_DropoutOp : NN_InferredOp<"dropout"> {
  let summary = "Zeroes elements at random, and scales the others up";
  let description = [{
    Each element is 0 with probability `ratio`, and else divided by 1 - ratio
    (Srivastava et al., JMLR 2014). `site` tells the dropouts of a model apart:
    with the seed and the step's number it is the key of the numbers drawn, so
    an nn program alone does not say which.

    Lifetime: made by import of dropout in training mode; becomes
    `nn.random_uniform` and a selection in `nn-build-step`.
    ```mlir
    %y = nn.dropout %x ratio 1.0e-01 site 3 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, F64Attr:$ratio, I64Attr:$site);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `ratio` $ratio `site` $site attr-dict `:` functional-type(operands, results)";
}

def NN_StopGradientOp : NN_InferredOp<"stop_gradient"> {
  let summary = "Passes the value, and no gradient";
  let description = [{
    The result is the operand; its gradient does not go further (PyTorch's
    `detach`, the boundary of `torch.no_grad`).

    Lifetime: made by import with --train; `nn-build-step` replaces it by its
    operand once gradients are there.
    ```mlir
    %y = nn.stop_gradient %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

#endif
