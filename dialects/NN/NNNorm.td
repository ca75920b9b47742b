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

def NN_BatchNormOp : NN_InferredOp<"batch_norm"> {
  let summary = "Normalises each channel by statistics of the batch, and keeps running ones";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) for each channel, dimension `dim` (Ioffe and
    Szegedy, arXiv:1502.03167). In a step mean and (biased) variance are the
    batch's own, and the states `mean` and `variance` become
    (1 - momentum) · running + momentum · own, the variance that of a sample if
    `unbiased`, as in PyTorch. Elsewhere they are the running ones.

    Lifetime: made by import of batch normalisation that is trained; becomes other
    ops in `nn-add-inference` and `nn-build-step`.
    ```mlir
    %y = nn.batch_norm %x, %mean, %variance dim 1 momentum 1.0e-01 epsilon 1.0e-05 unbiased : (tensor<8x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<8x3x4x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$mean,
      NN_FloatTensor:$variance, I64Attr:$dim, F64Attr:$momentum, F64Attr:$epsilon,
      UnitAttr:$unbiased);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $mean `,` $variance `dim` $dim `momentum` $momentum `epsilon` $epsilon (`unbiased` $unbiased^)? attr-dict `:` functional-type(operands, results)";
}

#endif
