// Elementwise ops: one result element from the operands' elements in the same
// place. All operands have the result's shape; broadcasting is nn.broadcast.

#ifndef ACCEL_NN_ELEMENTWISE_TD
#define ACCEL_NN_ELEMENTWISE_TD

include "dialects/NN/NNBase.td"

def NN_Elementwise : NativeOpTrait<"Elementwise", [], [{}]> {
  let cppNamespace = "::accel::nn";
}

/// What the passes know of an elementwise function (ElementwiseFacts in NN.h).
class NN_Facts<int flops, bit isCheap, string linear> {
  string text = "static constexpr ::accel::nn::ElementwiseFacts kFacts = {" # flops # ", " #
                !if(isCheap, "true", "false") # ", {" # linear # "}};\n";
}
// One operation, which costs less than a trip to memory; the same, linear in
// operands by bits (0b01, 0b10: in each, 0b11: in both together); one that
// costs more; one that only moves.
def NN_Cheap : NN_Facts<1, 1, "">;
class NN_Linear<string groups> : NN_Facts<1, 1, groups>;
class NN_Dear<int flops = 1> : NN_Facts<flops, 0, "">;
def NN_Moves : NN_Facts<0, 1, "">;

class NN_ElementwiseOp<string mnemonic, NN_Facts facts, string inference = "", list<Trait> traits = []>
    : NN_InferredOp<mnemonic, !listconcat([NN_Elementwise], traits), inference> {
  /// Of a function of one float: its value and its gradient, in C++. `value` is
  /// what the evaluator computes, in double, of `x`. `gradient` is built by what
  /// lib/Autodiff/NNBuilder.h calls `e`, of the operand x, the result y and the
  /// gradient g of y. Without one a rule is in lib/Evaluate, lib/Autodiff.
  string value = "";
  string gradient = "";
  let extraClassDeclaration = facts.text #
    !if(!empty(value), "", "static double compute(double x) { return " # value # "; }\n") #
    !if(!empty(gradient), "", [{
      template <typename Emit>
      static ::mlir::Value differentiate(const Emit &e, [[maybe_unused]] ::mlir::Value x,
          [[maybe_unused]] ::mlir::Value y, [[maybe_unused]] ::mlir::Value g) {
        return }] # gradient # "; }\n");
}

class NN_UnaryOp<string mnemonic, Type type, string what, NN_Facts facts>
    : NN_ElementwiseOp<mnemonic, facts, NN_InferSame> {
  let summary = what;
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let assemblyFormat = "$input attr-dict `:` custom<OneType>(type($input), type($result))";
}
class NN_FunctionOp<string mnemonic, string what, NN_Facts facts, string formula, string slope = "">
    : NN_UnaryOp<mnemonic, NN_FloatTensor, what, facts> {
  let value = formula;
  let gradient = slope;
}

def NN_NegOp : NN_UnaryOp<"neg", NN_Tensor, "-x", NN_Linear<"0b1">> {
  let gradient = "e.neg(g)";
}
def NN_AbsOp : NN_UnaryOp<"abs", NN_Tensor, "|x|", NN_Cheap>;
def NN_ExpOp : NN_FunctionOp<"exp", "e to the x", NN_Dear<>, "std::exp(x)", "e.mul(g, y)">;
def NN_LogOp : NN_FunctionOp<"log", "Natural logarithm", NN_Dear<>, "std::log(x)", "e.div(g, x)">;
def NN_Log1pOp : NN_FunctionOp<"log1p", "log(1 + x), exact for small x too", NN_Dear<>,
    "std::log1p(x)", "e.div(g, e.add(x, e.splat(1, x)))">;
def NN_SqrtOp : NN_FunctionOp<"sqrt", "Square root", NN_Dear<>,
    "std::sqrt(x)", "e.div(e.scale(g, 0.5), y)">;
def NN_RsqrtOp : NN_FunctionOp<"rsqrt", "1 / sqrt(x)", NN_Dear<>,
    "1 / std::sqrt(x)", "e.mul(g, e.div(e.scale(y, -0.5), x))">; // y / x alone may overflow
def NN_ReciprocalOp : NN_FunctionOp<"reciprocal", "1 / x", NN_Dear<>,
    "1 / x", "e.neg(e.mul(g, e.mul(y, y)))">;
def NN_TanhOp : NN_FunctionOp<"tanh", "Hyperbolic tangent", NN_Dear<>,
    "std::tanh(x)", "e.mul(g, e.sub(e.splat(1, y), e.mul(y, y)))">;
def NN_ErfOp : NN_FunctionOp<"erf", "Error function", NN_Dear<>, "std::erf(x)">;
def NN_SigmoidOp : NN_FunctionOp<"sigmoid", "1 / (1 + exp(-x))", NN_Dear<>,
    "1 / (1 + std::exp(-x))", "e.mul(g, e.mul(y, e.sub(e.splat(1, y), y)))">;
def NN_ReluOp : NN_FunctionOp<"relu", "max(x, 0); NaN stays NaN", NN_Cheap, "x < 0 ? 0 : x">;
def NN_SinOp : NN_FunctionOp<"sin", "Sine", NN_Dear<>, "std::sin(x)", "e.mul(g, e.cos(x))">;
def NN_CosOp : NN_FunctionOp<"cos", "Cosine", NN_Dear<>, "std::cos(x)", "e.neg(e.mul(g, e.sin(x)))">;
def NN_AtanOp : NN_FunctionOp<"atan", "Inverse of the tangent, within (-π/2, π/2)", NN_Dear<>,
    "std::atan(x)", "e.div(g, e.add(e.mul(x, x), e.splat(1, x)))">;
def NN_FloorOp : NN_FunctionOp<"floor", "Largest integer not above x", NN_Cheap,
    "std::floor(x)", "e.splat(0, x)">;
def NN_RoundOp : NN_FunctionOp<"round", "Nearest integer; of two, the even one", NN_Cheap,
    "std::nearbyint(x)", "e.splat(0, x)">;
def NN_FloorPower2Op : NN_FunctionOp<"floor_power2", "The largest power of two that is not larger in magnitude, with the sign of x; 0, infinity and NaN stay", NN_Cheap,
    "x == 0 || !std::isfinite(x) ? x : std::copysign(std::ldexp(1.0, std::ilogb(x)), x)", "e.splat(0, x)">;
def NN_NotOp : NN_UnaryOp<"not", NN_BoolTensor, "Logical negation", NN_Cheap>;

def NN_IsNanOp : NN_ElementwiseOp<"is_nan", NN_Cheap, NN_InferBool> {
  let summary = "Whether x is not a number";
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "$input attr-dict `:` custom<PredicateType>(type($input), type($result))";
}

def NN_GeluOp : NN_ElementwiseOp<"gelu", NN_Dear<8>, NN_InferSame> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `erf`: x/2 (1 + erf(x/√2)); `tanh`: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))).
    Hendrycks and Gimpel, arXiv:1606.08415. Exporters decompose it;
    `nn-recognize-gelu` puts it together again.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_GeluKindAttr:$kind);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "`` $kind $input attr-dict `:` custom<OneType>(type($input), type($result))";
}

class NN_BinaryOp<string mnemonic, Type type, string what, NN_Facts facts>
    : NN_ElementwiseOp<mnemonic, facts, NN_InferSame> {
  let summary = what;
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` custom<OneType>(type($lhs), type($rhs), type($result))";
}
def NN_AddOp : NN_BinaryOp<"add", NN_Tensor, "x + y", NN_Linear<"0b11">> { let hasFolder = 1; }
def NN_SubOp : NN_BinaryOp<"sub", NN_Tensor, "x - y", NN_Linear<"0b11">> { let hasFolder = 1; }
def NN_MulOp : NN_BinaryOp<"mul", NN_Tensor, "x * y", NN_Linear<"0b01, 0b10">> { let hasFolder = 1; }
def NN_DivOp : NN_BinaryOp<"div", NN_Tensor, "x / y; on integers rounded towards zero", NN_Dear<>> { let hasFolder = 1; }
def NN_ModOp : NN_BinaryOp<"mod", NN_Tensor, "Remainder with the sign of y; on floats with the sign of x (fmod)", NN_Dear<>>;
def NN_PowOp : NN_BinaryOp<"pow", NN_Tensor, "x to the power y", NN_Dear<>> {
  let hasCanonicalizer = 1;
}
def NN_MinOp : NN_BinaryOp<"min", NN_Tensor, "The smaller; NaN if either is NaN", NN_Cheap>;
def NN_MaxOp : NN_BinaryOp<"max", NN_Tensor, "The larger; NaN if either is NaN", NN_Cheap>;
def NN_AndOp : NN_BinaryOp<"and", NN_IntegerTensor, "And of each bit", NN_Cheap>;
def NN_OrOp : NN_BinaryOp<"or", NN_IntegerTensor, "Or of each bit", NN_Cheap>;

def NN_CompareOp : NN_ElementwiseOp<"compare", NN_Cheap, NN_InferBool> {
  let summary = "Whether a relation holds between x and y";
  let arguments = (ins NN_ComparePredicateAttr:$predicate, NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "`` $predicate $lhs `,` $rhs attr-dict `:` custom<PredicateType>(type($lhs), type($rhs), type($result))";
}

def NN_SelectOp : NN_ElementwiseOp<"select", NN_Facts<0, 1, "0b110">, NN_InferSameFrom1> {
  let summary = "x where the condition holds, y elsewhere";
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$on_true, NN_Tensor:$on_false);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` custom<SelectType>(type($condition), type($on_true), type($on_false), type($result))";
  let hasFolder = 1;
}

def NN_CastOp : NN_Op<"cast", [NN_Elementwise]> {
  let extraClassDeclaration = NN_Moves.text;
  let summary = "The same values in another element type";
  let description = [{
    Float to integer rounds towards zero; to i1 is `!= 0`; float to a narrower
    float rounds to nearest, ties to even, once. What is beyond the largest
    number of the new type becomes infinity (NaN in f8E4M3FN and f8E8M0FNU, which
    have no infinity, the largest in f4E2M1FN, which has neither); with `saturate`
    the largest, infinities too. NaN stays NaN, and becomes zero in f4E2M1FN.
    f8E8M0FNU, the powers of two, has NaN for what is below zero, and for zero,
    which with `saturate` becomes the least. A barrier for partial sums, except
    to a type that has all numbers of this one: that changes none.

    ```mlir
    %q = nn.cast %x {saturate} : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN>
    ```
  }];
  let arguments = (ins NN_StoredTensor:$input, UnitAttr:$saturate);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_BitcastOp : NN_Op<"bitcast", [NN_Elementwise]> {
  let extraClassDeclaration = NN_Moves.text;
  let summary = "The bits of each element, read as another type of as many bits";
  let description = [{
    A float that is bits is not rounded on the way: what is computed wider is
    rounded to its type first. NaN keeps being one, not its bits.

    ```mlir
    %bits = nn.bitcast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_DynamicEncodeOp : NN_ElementwiseOp<"dynamic_encode", NN_Dear<10>, "return inferCode(operands, types);"> {
  let summary = "The code of 8 bits whose number is nearest";
  let description = [{
    The place of the nearest of the 256 ascending numbers of the dynamic map
    (Dettmers, arXiv:1511.04561; bitsandbytes' `create_dynamic_map`): seven
    decades below 1, in each twice as many numbers as in the one below, 0 and 1,
    and with `is_signed` the negatives of all but 1. Bounds between neighbours
    are their means, in float32; on a bound the lower code. NaN has some code.

    ```mlir
    %c = nn.dynamic_encode %x {is_signed} : (tensor<4x256xf32>) -> tensor<4x256xui8>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, UnitAttr:$is_signed);
  let results = (outs NN_CodeTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_DynamicDecodeOp : NN_Op<"dynamic_decode", [NN_Elementwise]> {
  let extraClassDeclaration = NN_Cheap.text;
  let summary = "The number that a code of 8 bits stands for";
  let description = [{
    That of the map of `nn.dynamic_encode`, with `is_signed` as it was there.

    ```mlir
    %x = nn.dynamic_decode %c {is_signed} : (tensor<4x256xui8>) -> tensor<4x256xf32>
    ```
  }];
  let arguments = (ins NN_CodeTensor:$input, UnitAttr:$is_signed);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

// Ten rounds of two multiplications and four other operations.
def NN_RandomUniformOp : NN_ElementwiseOp<"random_uniform", NN_Dear<60>> {
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
    %y = nn.dropout %x ratio 1.0e-01 site 3 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, F64Attr:$ratio, I64Attr:$site);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `ratio` $ratio `site` $site attr-dict `:` custom<OneType>(type($input), type($result))";
}

def NN_RngOp : NN_Op<"rng"> {
  let summary = "Random numbers, drawn anew in every step";
  let description = [{
    Numbers between 0 and 1, neither of which is drawn, so that logarithms are
    finite, or of the normal distribution of mean 0 and variance 1.
    `site` tells the draws of a model apart, dropouts among them; as theirs,
    the numbers are a function of the seed, the step's number and the logical
    coordinates, so an nn program alone does not say which. Entries that do not
    train draw the same numbers in every call.

    Lifetime: made by import of random numbers; becomes `nn.random_uniform` and
    what is computed from it in `nn-build-step`.
    ```mlir
    %e = nn.rng normal site 4 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_RngDistributionAttr:$distribution, I64Attr:$site);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "`` $distribution `site` $site attr-dict `:` type($result)";
}

def NN_StopGradientOp : NN_InferredOp<"stop_gradient", [], NN_InferSame> {
  let summary = "Passes the value, and no gradient";
  let description = [{
    The result is the operand; its gradient does not go further (PyTorch's
    `detach`, the boundary of `torch.no_grad`).

    Lifetime: made by import with --train; `nn-build-step` replaces it by its
    operand once gradients are there.
    ```mlir
    %y = nn.stop_gradient %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` custom<OneType>(type($input), type($result))";
}

#endif
