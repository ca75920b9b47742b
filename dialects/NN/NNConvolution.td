// Convolutions over one to three dimensions of space, and their two gradients.

#ifndef ACCEL_NN_CONVOLUTION_TD
#define ACCEL_NN_CONVOLUTION_TD

include "dialects/NN/NNBase.td"

// Every op of this family multiplies two of three tensors and sums into the
// third: for positions p of y, k of w and i = p · strides + k · dilations - low
// of x, those in x alone,
//
//   x[n, (g,) c, i…]   w[(g,) o, c, k…]   y[n, (g,) o, p…]
class NN_ConvolutionOp<string mnemonic>
    : NN_InferredOp<mnemonic> {
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs,
      DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `sizes` $sizes `strides` $strides "
    # "`dilations` $dilations `low` $low attr-dict `:` functional-type(operands, results)";
}

def NN_ConvOp : NN_ConvolutionOp<"conv"> {
  let summary = "Convolution: at each position, the window of the input times the weight";
  let description = [{
    result[n, o, p…] = Σ input[n, c, p·strides + k·dilations - low…] ·
    weight[o, c, k…] over channels c and places k of the window, as ONNX's Conv
    (Dumoulin and Visin, arXiv:1603.07285). Elements outside the input are zeros:
    `low` says how many stand before its first one in each dimension of space,
    `sizes`, how many positions there are, says what stands behind the last.

    input is [N, C, S…], weight [O, C, K…], result [N, O, sizes…]; of several
    groups, which know nothing of each other, [N, G, C, S…], [G, O, C, K…] and
    [N, G, O, sizes…]. There are one to three dimensions of space. Sums are at
    least as wide as f32.

    ```mlir
    %y = nn.conv %x, %w sizes [4, 4] strides [2, 2] dilations [1, 1] low [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x4x4xf32>
    %z = nn.conv %u, %v sizes [8] strides [1] dilations [1] low [1]
        : (tensor<2x4x1x8xf32>, tensor<4x1x1x3xf32>) -> tensor<2x4x1x8xf32>
    ```
  }];
}

def NN_ConvInputGradOp : NN_ConvolutionOp<"conv_input_grad"> {
  let summary = "The gradient of a convolution's input; a transposed convolution";
  let description = [{
    The transpose of `nn.conv` as a linear function of its input: result[n, c, i…]
    = Σ gradient[n, o, p…] · weight[o, c, k…] over the channels o, positions p and
    places k with i = p·strides + k·dilations - low. gradient is [N, O, P…],
    weight [O, C, K…], result [N, C, sizes…], or of groups as there. ONNX's
    ConvTranspose, whose input channels are `O`.

    ```mlir
    %dx = nn.conv_input_grad %dy, %w sizes [8, 8] strides [2, 2] dilations [1, 1] low [1, 1]
        : (tensor<2x5x4x4xf32>, tensor<5x3x3x3xf32>) -> tensor<2x3x8x8xf32>
    ```
  }];
}

def NN_ConvWeightGradOp : NN_ConvolutionOp<"conv_weight_grad"> {
  let summary = "The gradient of a convolution's weight";
  let description = [{
    The transpose of `nn.conv` as a linear function of its weight: result[o, c, k…]
    = Σ input[n, c, p·strides + k·dilations - low…] · gradient[n, o, p…] over
    samples n and positions p. input is [N, C, S…], gradient [N, O, P…], result
    [O, C, sizes…], or of groups as there.

    ```mlir
    %dw = nn.conv_weight_grad %x, %dy sizes [3, 3] strides [2, 2] dilations [1, 1] low [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<2x5x4x4xf32>) -> tensor<5x3x3x3xf32>
    ```
  }];
}

#endif
