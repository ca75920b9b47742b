// Attributes and enums of dist: axes, shardings, layouts and tasks.

#ifndef ACCEL_DIST_ATTRS_TD
#define ACCEL_DIST_ATTRS_TD

include "dialects/Dist/DistDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/TensorEncoding.td"

class Dist_Enum<string name, string what, list<string> names>
    : I32EnumAttr<name, what,
        !foreach(i, !range(!size(names)), I32EnumAttrCase<names[i], i>)> {
  let cppNamespace = "::accel::dist";
  let genSpecializedAttr = 0;
}
class Dist_EnumAttr<Dist_Enum enum, string mnemonic>
    : EnumAttr<Dist_Dialect, enum, mnemonic> {
  let assemblyFormat = "$value";
}

def Dist_Reduction : Dist_Enum<"Reduction", "how the ranks' partial results combine",
    ["sum", "max", "min"]>;
def Dist_ReductionAttr : Dist_EnumAttr<Dist_Reduction, "reduction">;
def Dist_TaskKind : Dist_Enum<"TaskKind", "what a task is for",
    ["prepare", "count", "forward", "backward", "backward_input", "backward_weight", "norm", "update"]>;

class Dist_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<Dist_Dialect, name, traits> {
  let mnemonic = mnem;
}

def Dist_AxisAttr : Dist_Attr<"Axis", "axis"> {
  let summary = "An axis of a mesh and its size";
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$size);
  let assemblyFormat = "`<` $name `=` $size `>`";
}

def Dist_LinkAttr : Dist_Attr<"Link", "link"> {
  let summary = "What a message along an axis costs: alpha seconds and beta seconds per byte";
  let parameters = (ins "::mlir::FloatAttr":$alpha, "::mlir::FloatAttr":$beta);
  let assemblyFormat = "`<` `alpha` `=` $alpha `,` `beta` `=` $beta `>`";
}

def Dist_AxesAttr : Dist_Attr<"Axes", "axes"> {
  let summary = "Names of mesh axes, major to minor";
  let description = [{
    `{mb, dp}` splits into mb chunks, each of them into dp. An open list, `{dp, ?}`,
    lets propagation add axes at the end; it stands only in a `dist.constraint`. One
    whose lists are all open is a wish, which gives way where closed ones conflict.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::mlir::StringAttr">:$names, "bool":$open);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$names, CArg<"bool", "false">:$open), [{
      ::llvm::SmallVector<::mlir::StringAttr> attrs;
      for (::llvm::StringRef name : names)
        attrs.push_back(::mlir::StringAttr::get($_ctxt, name));
      return $_get($_ctxt, attrs, open);
    }]>,
  ];
  let extraClassDeclaration = [{
    bool empty() const { return getNames().empty(); }
    bool contains(::llvm::StringRef axis) const;
  }];
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
     DeclareAttrInterfaceMethods<OpAsmAttrInterface, ["getAlias"]>]> {
  let summary = "Where a tensor lives: the axes that split each dimension, and those over which it is partial";
  let description = [{
    The encoding of a tensor type in phase `dist`. Dimension d is cut into equal
    chunks by `dims[d]`, major to minor, and replicated over axes that are named
    nowhere. Over the axes in `partial` the ranks hold terms which, combined by
    `reduce`, are the value. No axis is named twice.

    Axis names are looked up by the verifiers that can see the mesh; an encoding
    alone checks rank and repetition.

    ```mlir
    tensor<8x64xf32, #dist.sharding<@m, [{dp}, {} ], partial = {tp}>>
    tensor<8xf32, #dist.sharding<@m, [{} ], partial = {tp}, reduce = max>>
    ```
    Modules are printed with names for shardings, which say dimension by dimension
    what splits it: `#dp-all-sum_over_tp` is the first of these.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
      OptionalArrayRefParameter<"AxesAttr">:$dims, "AxesAttr":$partial, "Reduction":$reduction);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "::mlir::FlatSymbolRefAttr":$mesh, "::llvm::ArrayRef<AxesAttr>":$dims), [{
      return $_get($_ctxt, mesh, dims, AxesAttr::get($_ctxt, ::llvm::ArrayRef<::llvm::StringRef>()), Reduction::sum);
    }]>,
  ];
  let extraClassDeclaration = [{
    /// The sharding in which every rank holds the whole of a tensor.
    static ShardingAttr getReplicated(::mlir::FlatSymbolRefAttr mesh, int64_t rank);
    /// The encoding of a tensor type; null if it has none of ours.
    static ShardingAttr of(::mlir::Type type);
    bool isPartial() const { return !getPartial().empty(); }
  }];
}

def Dist_InterleavedAttr : Dist_Attr<"Interleaved", "interleaved"> {
  let summary = "An order of a dimension in which ranks that split it evenly have their share of each part of it";
  let description = [{
    Dimension `dim` is parts of `sizes`, one after another: the columns of a fused
    weight that make queries, keys and values. Interleaved, the first of `by`
    shares of each part come first, part after part, then the second shares. So
    of [4, 2] by 2 elements 0 1 2 3, 4 5 stand as 0 1 4, 2 3 5. The parts may come
    several `times`: of [2] times 3 by 2, the rows of a sequence of which two ranks have
    each second one, 0 1, 2 3, 4 5 stand as 0 2 4, 1 3 5.

    Of arguments and results of a function in phase `dist` (`dist.interleaved`):
    the program has the dimension in this order, files and whoever calls it in
    the parts' own. Localisation puts it into the layout.

    ```mlir
    %w: tensor<32x96xf32> {dist.interleaved = #dist.interleaved<1 [32, 32, 32] by 2>, nn.state = @c_attn.weight}
    ```
  }];
  let parameters = (ins "int64_t":$dim, ArrayRefParameter<"int64_t">:$sizes, "int64_t":$by,
      DefaultValuedParameter<"int64_t", "1">:$times);
  let assemblyFormat = "`<` $dim `[` $sizes `]` (`times` $times^)? `by` $by `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Of how many elements all parts are.
    int64_t getSize();
    /// Calls `run(from, to, count)` for elements that follow each other in both
    /// orders: from the parts' own to the interleaved one, in the latter.
    void forEachRun(::llvm::function_ref<void(int64_t, int64_t, int64_t)> run);
    /// Emits an error unless the sizes are those of a dimension of `shape`, and
    /// `ranks` ranks' pieces of it no larger than a share.
    ::mlir::LogicalResult verifyShape(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        ::llvm::ArrayRef<int64_t> shape);
  }];
}

def Dist_LayoutAttr : Dist_Attr<"Layout", "layout"> {
  let summary = "Which piece of a global tensor an argument or result of a local function is";
  let description = [{
    Put by localisation on arguments and results, whose types are then one rank's:
    the global shape, and the axes that split each dimension, major to minor.
    Axes of size 1 are left out. Over the axes in `partial`, which only an
    accumulator has, each rank holds a term of its own. What is `interleaved` is
    split in that order.

    ```mlir
    %x: tensor<2x64xf32> {dist.layout = #dist.layout<@m [8 by {dp}, 64]>}
    %a: tensor<2x64xf32> {dist.layout = #dist.layout<@m [2, 64], partial = {dp}>}
    %w: tensor<48x32xf32> {dist.layout = #dist.layout<@m [96 by {tp}, 32], interleaved = <0 [64, 32] by 2>>}
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
      OptionalArrayRefParameter<"int64_t">:$shape, OptionalArrayRefParameter<"AxesAttr">:$dims,
      "AxesAttr":$partial, OptionalParameter<"InterleavedAttr">:$interleaved);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_TaskAttr : Dist_Attr<"Task", "task"> {
  let summary = "Marks a function as a task: its kind, its stage, its chunk of it and its round";
  let description = [{
    A stage's layers may be several chunks, which its tasks go through one after
    another (the virtual stages of an interleaved pipeline, Narayanan et al. 2021,
    arXiv:2104.04473): chunk 0 begins a micro-batch's forward and ends its
    backward. A chunk that is not written is 0; chunks of a stage count from 0
    without a gap. A backward may be two tasks: what the chunks before wait for
    (`backward_input`), and the gradients of weights (`backward_weight`; Qi et al.
    2023, arXiv:2401.10241). What runs once a step, and waits for other stages, does so in
    rounds (the norm of the gradients: each stage's own in round 0, all of them in
    round 1, the update in round 2). The tasks of a schedule differ in one of the
    four.

    `func.func @f(…) attributes {dist.task = #dist.task<forward stage 0>}`,
    `#dist.task<backward stage 1 chunk 2>`, `#dist.task<update stage 1 round 2>`
  }];
  let parameters = (ins EnumParameter<Dist_TaskKind>:$kind, "int64_t":$stage,
      DefaultValuedParameter<"int64_t", "0">:$chunk,
      DefaultValuedParameter<"int64_t", "0">:$round);
  let assemblyFormat = "`<` $kind `stage` $stage (`chunk` $chunk^)? (`round` $round^)? `>`";
  let genVerifyDecl = 1;
}

#endif
