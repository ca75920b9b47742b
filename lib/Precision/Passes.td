// The passes that choose in which types a program computes.

#ifndef ACCEL_PRECISION_PASSES_TD
#define ACCEL_PRECISION_PASSES_TD

include "mlir/Pass/PassBase.td"

def NarrowProductsPass : Pass<"nn-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "Computes products, convolutions and attention in 16 bits";
  let description = [{
    Ops that implement Castable get their f32 operands cast to `type`, and their
    results cast back, so that everything else (norms, softmax of losses, sums,
    updates) stays in f32, and states keep their type: the weights in f32 are the
    master weights. A value is cast once, above the ops that only view it (the
    query, key and value of one product share a cast). Each cast says why it is
    there (`nn.reason`). Runs on the forward program, before differentiation:
    the vector-Jacobian product of a cast is the cast back, so the products of
    the backward are narrow as well, and gradients of weights are f32 before
    anything adds them up. What torch.autocast does, as rewrites to be read.
    Gradients in f16 vanish without a scaled loss (`scaler.type`).

    ```mlir
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    // becomes
    %0 = nn.cast %x {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %1 = nn.cast %w {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<8x2xf32>) -> tensor<8x2xbf16>
    %2 = nn.matmul %0, %1 : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %y = nn.cast %2 {nn.reason = "matmul: bf16 operands, f32 sums"} : (tensor<4x2xbf16>) -> tensor<4x2xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">];
}

def AutocastPass : Pass<"nn-autocast", "::mlir::ModuleOp"> {
  let summary = "Computes each op in the type that torch.autocast gives it";
  let description = [{
    The lists of torch.autocast (`lists`: those for CUDA, or those for CPUs) say of PyTorch's
    operators whether they run in `type`, in f32, or in the widest type of their operands; results
    stay in that type. Which call of the traced program an op is of, `nn.calls` says by the nodes
    that locations name; where nothing says it, or an op stands for several calls, the list's word
    for the op itself counts, a product and its bias are a linear layer, and a sum over its number
    of terms is a mean. What is of one call and sums (a mean, a variance) is
    computed in f32 and rounded once, as PyTorch's kernels do; a normalisation of 16 bits reads
    scale and bias in f32. Numbers (constants of one value, tensors of rank 0) widen nothing, and
    are not rounded. Casts that the model writes, inputs, states and results of
    functions keep their types. Runs before differentiation, so that a gradient has the type that
    its op ran in; a weight is cast once. Each cast says why (`nn.reason`).

    ```mlir
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %z = nn.softmax %y dim 1 : tensor<4x2xf32>
    // becomes, by CUDA's list
    %0 = nn.cast %x {nn.reason = "matmul: bf16 by the cuda list"} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %1 = nn.cast %w {nn.reason = "matmul: bf16 by the cuda list"} : (tensor<8x2xf32>) -> tensor<8x2xbf16>
    %y = nn.matmul %0, %1 : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %2 = nn.cast %y {nn.reason = "softmax: f32 by the cuda list"} : (tensor<4x2xbf16>) -> tensor<4x2xf32>
    %z = nn.softmax %2 dim 1 : tensor<4x2xf32>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
  let options = [
    Option<"lists", "lists", "std::string", "\"none\"", "none, cuda or cpu">,
    Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">,
  ];
}

def TagProductsPass : Pass<"nn-tag-products", "::mlir::ModuleOp"> {
  let summary = "Names the products of linear layers that are to be quantized";
  let description = [{
    Gives each `nn.matmul` of the forward whose right operand is a matrix of
    weights, read as it is, cast or viewed, the name of that weight as its site
    (`nn.product`), from which its vector-Jacobian product gives theirs to the
    products of the backward. Layers that stay in 16 bits say why instead
    (`nn.reason`): those with a side that is no multiple of 16, those that `skip` matches
    and `only` does not (globs on the weights' names), and, with `outer`, the first and the last.

    ```mlir
    %y = nn.matmul %x, %w : (tensor<4x16xbf16>, tensor<16x32xbf16>) -> tensor<4x32xbf16>
    // becomes
    %y = nn.matmul %x, %w {nn.product = #nn.product<"fc.weight", fprop>} : (tensor<4x16xbf16>, tensor<16x32xbf16>) -> tensor<4x32xbf16>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
  let options = [
    ListOption<"only", "only", "std::string", "Weights of layers that are quantized, as globs; none: all">,
    ListOption<"skip", "skip", "std::string", "Weights of layers that stay in 16 bits, as globs">,
    Option<"keepsOuter", "outer", "bool", "false", "The first and the last linear layer stay in 16 bits">,
    Option<"evaluates", "eval", "bool", "false", "Also in the entries eval and forward">,
  ];
}

def QuantizeProductsPass : Pass<"train-quantize-products", "::mlir::ModuleOp"> {
  let summary = "Computes the products of linear layers in fp8";
  let description = [{
    The operands of the products that `nn-tag-products` has named are multiplied with a
    scale and cast to a format of 8 bits (f8E4M3FN; gradients to f8E5M2 where the format is hybrid),
    saturating; the product of the codes, an f32, is multiplied with the scales'
    inverses. All of it is ordinary ops, so that the proofs, recomputation, sharding and
    the plan treat it as they treat all others. A tensor is quantized once for all
    products that read it; weights from their f32 values.

    `recipe` says where scales come from. `delayed` (Micikevicius et al., FP8 Formats
    for Deep Learning, arXiv:2209.05433; Transformer Engine's DelayedScaling): from the
    largest magnitudes (amax) of the steps before, states of the step (`fp8/SITE/ROLE/scale`
    and `…/amax_history`), which it writes unless it fails. The amax is that of the
    whole batch, so that no layout changes it. `current` and `tensorwise` (Transformer Engine's
    Float8CurrentScaling, torchao's tensorwise): from the tensor itself, of which each of `blocks` equal parts of the
    batch has its own: what a micro-batch of one rank has. `msamp_o1` and `msamp_o2` (Peng et al., FP8-LM,
    arXiv:2310.18313; MS-AMP) differ in the optimizer alone: powers of two, from the tensor itself as in `current` until 16 steps
    have been seen, then from their amaxes (with `…/amax_counter` as a state more); a step leaves weights as f16 with a scale says
    them; and the gradient of a weight is rounded to f8E4M3FN, that of each of `gradient-parts` equal parts of the batch, with the
    scale of the largest of all of them, before the parts are added up.
    `nvfp4` (arXiv:2509.25149) rounds to
    E2M1 with a scale for 16 elements and one for the tensor, gradients up or down by numbers that are
    functions of the seed, the layer, the call and the coordinates, as those of dropout are.

    ```mlir
    %y = nn.matmul %x, %w {nn.product = #nn.product<"fc.weight", fprop>} : (tensor<4x16xbf16>, tensor<16x32xbf16>) -> tensor<4x32xbf16>
    // becomes, where %w is the cast of %weight
    %0 = nn.cast %x : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %1 = nn.mul %0, %x_scale : tensor<4x16xf32>
    %2 = nn.cast %1 {saturate} : (tensor<4x16xf32>) -> tensor<4x16xf8E4M3FN>
    %3 = nn.mul %weight, %w_scale : tensor<16x32xf32>
    %4 = nn.cast %3 {saturate} : (tensor<16x32xf32>) -> tensor<16x32xf8E4M3FN>
    %5 = nn.matmul %2, %4 {nn.product = #nn.product<"fc.weight", fprop>, nn.reason = "fp8 delayed: scales of the steps before"} : (tensor<4x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>) -> tensor<4x32xf32>
    %6 = nn.mul %5, %inverses : tensor<4x32xf32>
    %y = nn.cast %6 : (tensor<4x32xf32>) -> tensor<4x32xbf16>
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"delayed\"", "delayed, current, block, mxfp8, nvfp4, tensorwise, rowwise, rowwise_with_gw_hp, msamp_o1 or msamp_o2">,
    Option<"format", "format", "std::string", "\"hybrid\"", "hybrid or e4m3">,
    Option<"margin", "margin", "int64_t", "0", "Delayed scales are 2^margin smaller">,
    Option<"historyLength", "amax-history-len", "int64_t", "1024", "Steps that a delayed scale looks back">,
    Option<"amax", "amax-compute-algo", "std::string", "\"max\"", "max or most_recent: of these steps">,
    Option<"interval", "interval", "int64_t", "1", "Steps from one delayed scale to the next">,
    Option<"overrides", "override-linear-precision", "std::string", "\"false,false,false\"", "Whether fprop, dgrad and wgrad stay in 16 bits">,
    Option<"blocks", "blocks", "int64_t", "1", "Equal parts of a batch that have a current scale each">,
    Option<"gradientParts", "gradient-parts", "int64_t", "1", "Equal parts of a batch whose gradients MS-AMP rounds before they are added up">,
    Option<"power2", "power-2-scale", "std::string", "\"\"", "true or false: whether scales are powers of two; none: as the recipe has it">,
    Option<"hadamard", "random-hadamard-transform", "bool", "true", "NVFP4 rotates what a weight's gradient is made of">,
    Option<"stochastic", "stochastic-rounding", "bool", "true", "NVFP4 rounds gradients up or down by chance">,
    Option<"tiles", "fp4-2d-quantization", "bool", "true", "NVFP4 gives blocks of 16 x 16 of weights a scale, not of 1 x 16">,
  ];
}

def MeasureRoundingPass : Pass<"train-measure-rounding", "::mlir::ModuleOp"> {
  let summary = "Measures what a step loses where it rounds to float16 or to 8 bits";
  let description = [{
    Each cast of the step to f16 or to a type of 8 bits gets an output `metrics/NAME`, five f32: the largest
    magnitude before the scale, the smallest and the largest scale (1 where nothing multiplies), how many
    elements overflow (those that are rounded to none of the type's numbers), and how many that are not 0 become 0. NAME is that of
    the layer's weight, the kind of product and the operand (`fc.weight/dgrad/left`), or that of the node that
    reads what is cast. A step without such casts is refused.

    ```mlir
    %0 = nn.mul %x, %scales : tensor<4x16xf32>
    %1 = nn.cast %0 {saturate} : (tensor<4x16xf32>) -> tensor<4x16xf8E4M3FN>
    // becomes
    %0 = nn.mul %x, %scales : tensor<4x16xf32>
    %1 = nn.cast %0 {saturate} : (tensor<4x16xf32>) -> tensor<4x16xf8E4M3FN>
    %2 = nn.concat %amax, %least, %most, %beyond, %lost dim 0 : (…) -> tensor<5xf32>
    return …, %2 : …, tensor<5xf32>  // {nn.output = "metrics/fc.weight/fprop/left"}
    ```
  }];
  let dependentDialects = ["::accel::nn::NNDialect"];
}

def DeclareWirePass : Pass<"train-declare-wire", "::mlir::ModuleOp"> {
  let summary = "Says in which type data-parallel ranks send their terms of gradients";
  let description = [{
    Writes `accel.gradient_wire` on a module that has a training step: what
    `dist-compress-gradients` obeys, and what the proof of one rank's program takes for
    a rounding that was asked for. It changes no op: on one rank no gradient is sent.

    ```mlir
    module attributes {accel.gradient_wire = bf16} { … }
    ```
  }];
  let dependentDialects = ["::accel::AccelDialect"];
  let options = [Option<"hook", "hook", "std::string", "\"no\"", "no, fp16 or bf16: what `comm_hook` of PyTorch's DDP is">];
}

#endif
