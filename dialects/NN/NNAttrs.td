// Attributes and enums of nn: where a state's first value comes from, which
// initializers of the model a state stands for, and the small closed sets that
// name variants of an op.

#ifndef ACCEL_NN_ATTRS_TD
#define ACCEL_NN_ATTRS_TD

include "dialects/NN/NNDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"

class NN_Enum<string name, string what, list<string> names>
    : I32EnumAttr<name, what,
        !foreach(i, !range(!size(names)), I32EnumAttrCase<names[i], i>)> {
  let cppNamespace = "::accel::nn";
  let genSpecializedAttr = 0;
}
class NN_EnumAttr<NN_Enum enum, string mnemonic>
    : EnumAttr<NN_Dialect, enum, mnemonic> {
  let assemblyFormat = "$value";
}

def NN_ReductionKind : NN_Enum<"ReductionKind", "how a reduction combines",
    ["sum", "max", "min", "prod"]>;
def NN_ReductionKindAttr : NN_EnumAttr<NN_ReductionKind, "reduction">;
def NN_ComparePredicate : NN_Enum<"ComparePredicate", "the relation compared for",
    ["eq", "ne", "lt", "le", "gt", "ge"]>;
def NN_ComparePredicateAttr : NN_EnumAttr<NN_ComparePredicate, "predicate">;
def NN_GeluKind : NN_Enum<"GeluKind", "exact (erf) or approximated by tanh",
    ["erf", "tanh"]>;
def NN_GeluKindAttr : NN_EnumAttr<NN_GeluKind, "gelu_kind">;

def NN_RngDistribution : NN_Enum<"RngDistribution", "what random numbers are drawn from",
    ["uniform", "normal"]>;
def NN_RngDistributionAttr : NN_EnumAttr<NN_RngDistribution, "rng_distribution">;

def NN_StateRole : NN_Enum<"StateRole", "what a state is for: a weight that is trained or frozen, the optimizer's running averages, a sum over micro-batches, a count of steps, what the model itself carries along, or, of a gradient that is compressed, what has been left out so far, and the factor to begin with, or, of a loss that is scaled, the scale and what it follows from, or, of a tensor that is quantized, its scale and the history of its largest magnitudes",
    ["parameter", "moment", "accumulator", "counter", "buffer", "residual", "factor", "scaler", "quantizer"]>;
def NN_StateRoleAttr : NN_EnumAttr<NN_StateRole, "role">;

def NN_ProductKind : NN_Enum<"ProductKind", "which of a linear layer's three products: of its input and weight, of a gradient and the weight, or of the input and a gradient",
    ["fprop", "dgrad", "wgrad"]>;

def NN_WriteKind : NN_Enum<"WriteKind", "when a state gets its new value: once, in the update, or from each micro-batch, combined with what it holds in any order",
    ["step", "accumulate_sum", "accumulate_max", "accumulate_min"]>;
def NN_WriteKindAttr : NN_EnumAttr<NN_WriteKind, "write">;

def NN_EntryKind : NN_Enum<"EntryKind", "what a call of an entry does: gives the model's outputs, makes a step of training, or gives the loss without one",
    ["forward", "step", "eval"]>;
def NN_EntryKindAttr : NN_EnumAttr<NN_EntryKind, "entry">;

class NN_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<NN_Dialect, name, traits> {
  let mnemonic = mnem;
}

def NN_InitializerAttr : NN_Attr<"Initializer", "initializer"> {
  let summary = "One initializer of the model file that holds a state's value";
  let description = [{
    The initializer's value is the state's value transposed by `permutation`
    (initializer dim d = state dim permutation[d]).

    ```mlir
    #nn.initializer<"val_313", [1, 0]>
    #nn.initializer<"lm_head.weight"> // in the state's own order
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name,
                        OptionalArrayRefParameter<"int64_t">:$permutation);
  let assemblyFormat = "`<` $name (`,` `[` $permutation^ `]`)? `>`";
}

def NN_ProductAttr : NN_Attr<"Product", "product"> {
  let summary = "The linear layer that a product is of, and which of its three it is";
  let description = [{
    `site` is the name of the layer's weight. On `nn.matmul` (attribute `nn.product`)
    where precision is chosen by layer and kind: `nn-tag-products` sets it on
    the forward, and the vector-Jacobian product of a product that has it gives the
    other kinds to those that it makes.

    ```mlir
    %y = nn.matmul %x, %w {nn.product = #nn.product<"h.0.mlp.weight", fprop>} : …
    ```
  }];
  let parameters = (ins StringRefParameter<>:$site, EnumParameter<NN_ProductKind>:$kind);
  let assemblyFormat = "`<` $site `,` $kind `>`";
}

def NN_FileAttr : NN_Attr<"File", "file", [DeclareAttrInterfaceMethods<OpAsmAttrInterface, ["getAlias"]>]> {
  let summary = "A file that values are read from";
  let description = [{
    `path` is as the tool was given it, relative paths being relative to the
    working directory. Printed under a short name, which the file's gives.

    ```mlir
    #model_onnx = #nn.file<"model.onnx">
    ```
  }];
  let parameters = (ins StringRefParameter<>:$path);
  let assemblyFormat = "`<` $path `>`";
}

def NN_RangeAttr : NN_Attr<"Range", "range"> {
  let summary = "A value by reference: a byte range of a file";
  let description = [{
    `bytes` bytes at `offset` of `file`: little-endian raw data in row-major
    order, of the state's element type. `hash` is XXH3-64 of the range where
    somebody has read it: weights may be larger than memory, or absent where they
    are compiled for. If there is a `permutation`, the bytes hold the *transposed*
    value (file dim d = state dim permutation[d]). Stands in an `nn.state`, which
    writes it without brackets.

    ```mlir
    #nn.range<#model_onnx[4096 : 3072] hash 81985529216486895>
    #nn.range<#nn.file<"model.onnx.data">[0 : 3072] transposed [1, 0]>
    ```
  }];
  let parameters = (ins "FileAttr":$file, "uint64_t":$offset,
                        "uint64_t":$bytes,
                        OptionalParameter<"std::optional<uint64_t>">:$hash,
                        OptionalArrayRefParameter<"int64_t">:$permutation);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getPath() const { return getFile().getPath(); }
  }];
}

#endif
