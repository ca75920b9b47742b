// States and constants: the values that no op computes.

#ifndef ACCEL_NN_STATE_TD
#define ACCEL_NN_STATE_TD

include "dialects/NN/NNBase.td"

def NN_StateOp : Op<NN_Dialect, "state", [Symbol,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Declares a state: a named tensor that outlives a step";
  let description = [{
    A parameter, or whatever else `role` says. A parameter's symbol is its name
    in the user's program; an optimizer's state is called after what it belongs
    to, `exp_avg/wte.weight`. Functions take states as arguments
    that carry `nn.state = @name`, and return new values as results that do.

    `stored` is the element type that the file holds where it is not the
    state's own: what loads the state converts (a float32 file in a program
    compiled in float64).

    `logical` is the shape of the value where the state is larger: each dimension
    is padded with zeros at its end, so that ranks can split it evenly. `init`
    has that shape, and so has what is saved of the state; the zeros stay zeros.

    `aliases` are the parameter's other names (tied weights), `initializers`
    which initializers of the model file it stands for, `init` its first value:
    a range of a file or an elements attribute, whose type is the value's.
    `initializers` are left out where there is one, of the state's own name and
    shape, or none. `frozen` states are never trained (buffers).

    `chunk` is the chunk of a pipeline that owns it, where the model is cut: the
    others get it by `nn.cut`. 0 is not written.

    A **stack** has the names of other parameters in the place of a first value:
    these, its members, are its rows along dimension 0, in their order. Functions
    take the stack, and not its members; files and users know the members alone,
    by their own names and shapes. They are of one kind: of one shape and element
    type, all frozen or none, stored alike, without aliases. A moment of a stack
    stands for those of the members.

    A `residual` begins with a dimension of 1. Ranks that have terms of the
    gradient have terms of it too, which nobody adds up: in `dist` its type is
    partial over them, and from `local` on that dimension has each rank's term.

    Lifetime: created by import (parameters), by `train` (moments) and by
    `dist-declare-accumulators`; becomes a buffer with role `state` in `plan`.

    ```mlir
    #model_onnx = #nn.file<"model.onnx">
    nn.state @wte.weight : tensor<96x32xf32> from #model_onnx[512 : 12288] hash 77 {aliases = ["lm_head.weight"]}
    nn.state @head : tensor<32x96xf32> from #model_onnx[12800 : 12288] transposed [1, 0] {
      initializers = [#nn.initializer<"val_313", [1, 0]>]}
    nn.state @"up.*" : tensor<2x8x32xf32> = [@up.0, @up.1]
    nn.state moment @"exp_avg/wte.weight" : tensor<96x32xf32> = dense<0.0>
    nn.state counter @"counter/call" : tensor<i64> = dense<0>
    nn.state @odd : tensor<8x2xf32> logical [7, 2] = dense<0.0>
    nn.state @h.5.weight : tensor<32x32xf32> = dense<0.0> {chunk = 1 : i64}
    nn.state residual @"power_sgd_error/wte.weight" : tensor<1x96x32xf32> = dense<0.0>
    nn.state quantizer @"fp8/h.5.weight/input/scale" : tensor<f32> = dense<1.0>
    nn.state factor @"power_sgd_q/wte.weight" : tensor<1x32xf32> = dense<0.0>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<NN_StoredTensor>:$type,
      AnyAttr:$init, OptionalAttr<StrArrayAttr>:$aliases,
      OptionalAttr<ArrayAttr>:$initializers, OptionalAttr<TypeAttr>:$stored,
      OptionalAttr<DenseI64ArrayAttr>:$logical, UnitAttr:$frozen, DefaultValuedAttr<NN_StateRoleAttr, "::accel::nn::StateRole::parameter">:$role,
      DefaultValuedAttr<I64Attr, "0">:$chunk);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of the value without padding: that of `init` (in a file,
    /// `stored` may be its element type).
    ::mlir::RankedTensorType getLogicalType();
    /// The names of the members of a stack; none of any other state.
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr> getMembers();
  }];
}

def NN_GradientOp : NN_InferredOp<"gradient", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Marks the finished gradient of a state";
  let description = [{
    The operand itself. What reads the result belongs to the update of the
    states; partial sums are reduced before it, and over micro-batches it is
    their accumulated sum. It must have the state's shape.

    Lifetime: made by `nn-build-step`, removed by `local-split-tasks`.
    ```mlir
    %g = nn.gradient %dw of @wte.weight : tensor<96x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, FlatSymbolRefAttr:$state);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `of` $state attr-dict `:` custom<OneType>(type($input), type($result))";
}

def NN_CutOp : NN_InferredOp<"cut", [], NN_InferSame> {
  let summary = "Takes a value from one chunk of a pipeline to another";
  let description = [{
    The operand itself, made by chunk `from` and read by chunk `to` (chunks are
    numbered from the model's input to its loss). Its vector-Jacobian product is
    the cut back. Which chunk any other op belongs to follows from its operands
    (`Chunks`): what depends on a cut, or on a state, is where that is; what
    depends on inputs and constants alone is computed wherever it is read.

    Partial sums over micro-batches are made before it, so that the gradient of a
    weight that two chunks share goes from one to the other once a step.

    Lifetime: made by `nn-cut-forward` and `nn-cut-update`; becomes an edge of the
    schedule in `local-split-tasks`.
    ```mlir
    %c = nn.cut %a from 0 to 1 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_StoredTensor:$input, I64Attr:$from, I64Attr:$to);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` custom<OneType>(type($input), type($result))";
  let hasVerifier = 1;
}

def NN_CompleteOp : NN_InferredOp<"complete", [], NN_InferSame> {
  let summary = "Says that a value is needed as a sum, not as terms of it";
  let description = [{
    The operand itself. Where ranks have terms of it, they are added up here:
    partial sums are reduced before it, though what reads it is linear in it. So a
    compressed gradient is sent as its factors, and not as their product.

    Lifetime: made by `nn-build-step`, removed by `dist-localize`.
    ```mlir
    %q = nn.complete %0 : tensor<1x96xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` custom<OneType>(type($input), type($result))";
}

def NN_ConstantOp : NN_Op<"constant", [ConstantLike]> {
  let summary = "A value known when the model is compiled";
  let description = [{
    Tables, masks and scalars: everything that was proven not to be a parameter.
    ```mlir
    %c = nn.constant dense<0.5> : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_StoredTensor:$result);
  let assemblyFormat = "attr-dict custom<ConstantValue>($value, type($result))";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, ::mlir::cast<::mlir::RankedTensorType>(value.getType()), value);
  }]>];
}

def NN_IotaOp : NN_Op<"iota"> {
  let summary = "Counts along a dimension";
  let description = [{
    result[…, i, …] = start + i, i being the index in dimension `dim`. The
    offset operand of a shard (`start`) is an attribute before localisation and
    becomes an addition of `dist.axis_index` in it.
  }];
  let arguments = (ins I64Attr:$dim, DefaultValuedAttr<I64Attr, "0">:$start);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
