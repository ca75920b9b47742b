// Losses: one value per row; their sums and counts are ordinary reductions.

#ifndef ACCEL_NN_LOSS_TD
#define ACCEL_NN_LOSS_TD

include "dialects/NN/NNBase.td"

def NN_CrossEntropyOp : NN_InferredOp<"cross_entropy"> {
  let summary = "-log softmax(logits)[label], per row";
  let description = [{
    logits [r…, C], labels [r…]; result [r…]: 0 where the label equals
    `ignore_index`. A label outside [0, C) that is not `ignore_index` stops the
    run with an error that names the op.
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IndexTensor:$labels,
      DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` functional-type(operands, results)";
}

#endif
