// Ops that move elements and compute nothing: reshape, transpose, broadcast,
// slice, concatenate, pad, gather.

#ifndef ACCEL_NN_SHAPE_TD
#define ACCEL_NN_SHAPE_TD

include "dialects/NN/NNBase.td"

def NN_ReshapeOp : NN_Op<"reshape"> {
  let summary = "The same elements in row-major order under another shape";
  let arguments = (ins NN_StoredTensor:$input);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_TransposeOp : NN_InferredOp<"transpose"> {
  let summary = "Permutes dimensions: result dim d = input dim permutation[d]";
  let arguments = (ins NN_StoredTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def NN_BroadcastOp : NN_Op<"broadcast"> {
  let summary = "Repeats dimensions of size 1 and adds leading ones";
  let description = [{
    Shapes are aligned at the last dimension, as in NumPy; a dimension of size 1
    or a missing leading one is repeated.
    ```mlir
    %r = nn.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_StoredTensor:$input);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_SliceOp : NN_InferredOp<"slice"> {
  let summary = "Elements starts + i·steps of every dimension, i < sizes";
  let description = [{
    All arrays have one entry per dimension; steps may be negative. Import
    normalises ONNX's ends and negative indices away.
  }];
  let arguments = (ins NN_StoredTensor:$input, DenseI64ArrayAttr:$starts,
      DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input `starts` $starts `sizes` $sizes `steps` $steps attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def NN_ConcatOp : NN_InferredOp<"concat"> {
  let summary = "Joins tensors along a dimension";
  let arguments = (ins Variadic<NN_StoredTensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def NN_PadOp : NN_InferredOp<"pad"> {
  let summary = "Surrounds a tensor with a constant";
  let description = "`low` and `high` elements of `value` (a scalar tensor) before and after each dimension; neither is negative.";
  let arguments = (ins NN_StoredTensor:$input, NN_StoredTensor:$value,
      DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input `,` $value `low` $low `high` $high attr-dict `:` functional-type(operands, results)";
}

def NN_GatherOp : NN_InferredOp<"gather"> {
  let summary = "Picks slices of a table by index (embedding)";
  let description = [{
    result[a…, i…, b…] = table[a…, indices[i…], b…], the index standing in
    dimension `dim` of the table. An index in [-n, -1] counts from the end; one
    outside [-n, n-1] stops the run with an error that names the op. With
    `non_negative` so does one below 0 (torch.nn.functional.embedding).

    What is picked by `padding_index` gives the table no gradient (padding_idx of
    torch.nn.Embedding); the result does not depend on it.
    ```mlir
    %x = nn.gather %table, %ids dim 0 padding 1 {non_negative} : (tensor<96x32xf32>, tensor<4x8xi64>) -> tensor<4x8x32xf32>
    ```
  }];
  let arguments = (ins NN_StoredTensor:$table, NN_IndexTensor:$indices, I64Attr:$dim,
      OptionalAttr<I64Attr>:$padding_index, UnitAttr:$non_negative);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$table `,` $indices `dim` $dim (`padding` $padding_index^)? attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizer = 1;
}

def NN_GatherNdOp : NN_InferredOp<"gather_nd"> {
  let summary = "Picks elements or slices by index tuples, per batch (ONNX GatherND)";
  let description = [{
    result[b…, i…, s…] = table[b…, indices[b…, i…, :]…, s…] with `batch_dims`
    dimensions b. Index rules as in `nn.gather`.
  }];
  let arguments = (ins NN_StoredTensor:$table, NN_IndexTensor:$indices,
      DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$table `,` $indices attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizer = 1;
}

def NN_ScatterAddOp : NN_InferredOp<"scatter_add"> {
  let summary = "Adds slices to a table by index (gradient of nn.gather)";
  let description = [{
    result = init with updates[a…, i…, b…] added to [a…, indices[i…], b…], the
    index standing in dimension `dim`; slices of equal index all count. Index
    rules as in `nn.gather`.

    With `batch_dims`, as many leading dimensions are common to all three, and
    each batch has indices of its own: updates[c…, a…, i…, b…] are added to
    [c…, a…, indices[c…, i…], b…] (gradient of nn.gather_nd).
    ```mlir
    %g = nn.scatter_add %zeros, %ids, %dy dim 0 : (tensor<96x32xf32>, tensor<4x8xi64>, tensor<4x8x32xf32>) -> tensor<96x32xf32>
    %h = nn.scatter_add %none, %labels, %dz dim 1 {batch_dims = 1 : i64} : (tensor<4x96xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> tensor<4x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$init, NN_IndexTensor:$indices,
      NN_Tensor:$updates, I64Attr:$dim,
      DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$init `,` $indices `,` $updates `dim` $dim attr-dict `:` functional-type(operands, results)";
}

#endif
