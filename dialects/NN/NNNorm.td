// Softmax and normalisations.

#ifndef ACCEL_NN_NORM_TD
#define ACCEL_NN_NORM_TD

include "dialects/NN/NNBase.td"

def NN_SoftmaxOp : NN_InferredOp<"softmax"> {
  let summary = "exp(x - max) / sum exp(x - max) along a dimension";
  let description = "With `log`, its logarithm. A row of nothing but -inf gives NaN, as in PyTorch.";
  let arguments = (ins NN_FloatTensor:$input, I64Attr:$dim, UnitAttr:$log);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` custom<OneType>(type($input), type($result))";
}

def NN_LayerNormOp : NN_InferredOp<"layer_norm"> {
  let summary = "Layer normalisation over the last dimensions";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) · scale + bias; mean and (biased)
    variance over dimensions `dim`…; scale and bias have the shape of those
    dimensions. Ba, Kiros and Hinton, arXiv:1607.06450.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$scale,
      Optional<NN_FloatTensor>:$bias, I64Attr:$dim, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale (`,` $bias^)? `dim` $dim `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

#endif
