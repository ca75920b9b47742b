// Reductions over dimensions.

#ifndef ACCEL_NN_REDUCTION_TD
#define ACCEL_NN_REDUCTION_TD

include "dialects/NN/NNBase.td"

def NN_ReduceOp : NN_InferredOp<"reduce"> {
  let summary = "Combines all elements of some dimensions, which disappear";
  let description = [{
    A mean is a sum times a constant, from import on. `dims` are ascending.

    Where several elements attain a `max` or `min`, they share its gradient
    evenly (torch.amax); with `first`, which takes one dimension, the first of
    them gets all of it (torch.max(x, dim)). The result does not depend on it.
    ```mlir
    %s = nn.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    %m = nn.reduce max %x dims [1] {first} : (tensor<4x8xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins NN_ReductionKindAttr:$kind, NN_Tensor:$input, DenseI64ArrayAttr:$dims,
      UnitAttr:$first);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "`` $kind $input `dims` $dims attr-dict `:` functional-type(operands, results)";
}

def NN_CumsumOp : NN_InferredOp<"cumsum"> {
  let summary = "Running sum along a dimension";
  let description = "result[i] = sum of input[0..i]; without input[i] if `exclusive`, from the end if `reverse`.";
  let arguments = (ins NN_Tensor:$input, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` custom<OneType>(type($input), type($result))";
}

def NN_TopKOp : NN_InferredOp<"top_k"> {
  let summary = "Places of the greatest elements of each row";
  let description = [{
    The places, along the last dimension, of its `k` greatest elements (of its
    least with `smallest`), the first of them first. Of equal elements the one
    that stands first comes first, as ONNX says; NaN is greater than any number,
    as in PyTorch. The elements themselves are what `nn.gather_nd` picks there,
    which has the gradient.

    ```mlir
    %places = nn.top_k %x k 2 : (tensor<4x8xf32>) -> tensor<4x2xi64>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, I64Attr:$k, UnitAttr:$smallest);
  let results = (outs NN_IndexTensor:$result);
  let assemblyFormat = "$input `k` $k attr-dict `:` functional-type(operands, results)";
}

#endif
