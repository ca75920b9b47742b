// Attributes and enums of plan: views (where bytes are), parts (which piece of a
// logical tensor they hold), and the closed sets of spaces, roles and engines.

#ifndef ACCEL_PLAN_ATTRS_TD
#define ACCEL_PLAN_ATTRS_TD

include "dialects/Plan/PlanDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Plan_Enum<string name, string what, list<string> names>
    : I32EnumAttr<name, what,
        !foreach(i, !range(!size(names)), I32EnumAttrCase<names[i], i>)> {
  let cppNamespace = "::accel::plan";
  let genSpecializedAttr = 0;
}
class Plan_EnumAttr<Plan_Enum enum, string mnemonic>
    : EnumAttr<Plan_Dialect, enum, mnemonic> {
  let assemblyFormat = "$value";
}

def Plan_Space : Plan_Enum<"Space", "the memory an arena lies in: the device's own, page-locked host, host, shared between the ranks of a machine, or storage",
    ["device", "pinned", "host", "shared", "nvme"]>;
def Plan_SpaceAttr : Plan_EnumAttr<Plan_Space, "space">;
def Plan_Role : Plan_Enum<"Role", "why a buffer exists",
    ["state", "packed", "constant", "input", "output", "activation", "communication", "scratch"]>;
def Plan_RoleAttr : Plan_EnumAttr<Plan_Role, "role">;
def Plan_Engine : Plan_Enum<"Engine", "what executes a command", ["cpu", "cuda", "null"]>;
def Plan_EngineAttr : Plan_EnumAttr<Plan_Engine, "engine">;
def Plan_Collective : Plan_Enum<"Collective", "the kinds of collective",
    ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "permute",
     "fetch_rows"]>;
def Plan_CollectiveAttr : Plan_EnumAttr<Plan_Collective, "collective_kind">;
def Plan_Combine : Plan_Enum<"Combine", "how a reducing collective combines",
    ["sum", "max", "min"]>;
def Plan_CombineAttr : Plan_EnumAttr<Plan_Combine, "combine">;
def Plan_Convolution : Plan_Enum<"Convolution", "which of a convolution's three tensors is computed from the others",
    ["forward", "input_grad", "weight_grad"]>;
def Plan_ConvolutionAttr : Plan_EnumAttr<Plan_Convolution, "convolution_kind">;
def Plan_Source : Plan_Enum<"Source", "what an io command reads or writes",
    ["input", "output", "state"]>;
def Plan_SourceAttr : Plan_EnumAttr<Plan_Source, "source">;

class Plan_Attr<string name, string mnem> : AttrDef<Plan_Dialect, name> {
  let mnemonic = mnem;
}

def Plan_AxisStrideAttr : Plan_Attr<"AxisStride", "axis_stride"> {
  let summary = "Bytes between neighbouring coordinates of a mesh axis";
  let parameters = (ins StringRefParameter<>:$axis, "int64_t":$bytes);
  let assemblyFormat = "`<` $axis `*` $bytes `>`";
}

def Plan_ViewAttr : Plan_Attr<"View", "view"> {
  let summary = "A strided tensor in a buffer";
  let description = [{
    Element [i…] lies at buffer base + (micro-batch mod slots) · slot stride +
    `offset` + Σ coordinate(axis) · bytes + Σ i · stride · element size.
    `strides` are in elements; the micro-batch is the run's, and so is the
    coordinate of the axis `mb`.

    Rows that follow each other from the buffer's first byte are what is not
    written: `strides` and `at` say what is otherwise. Commands write views
    without `#plan.view<>`.

    ```mlir
    #plan.view<@x[16x16xf32]>
    #plan.view<@qkv[4x12x128x64xf32 at 256 strides [294912, 64, 2304, 1]]>
    #plan.view<@w[16x16xf32 at 64 + dp*1024]>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$buffer, "int64_t":$offset,
      OptionalArrayRefParameter<"AxisStrideAttr">:$axes,
      "::mlir::Type":$element, OptionalArrayRefParameter<"int64_t">:$shape,
      OptionalArrayRefParameter<"int64_t">:$strides);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Number of elements.
    int64_t getNumElements();
    /// Bytes from the first to the end of the last element (strides are never
    /// negative), coordinates and slot aside.
    int64_t getSpanBytes();
    /// Bytes of one element; i1 takes one byte.
    int64_t getElementBytes();
    /// Whether the elements follow each other in row-major order without gaps.
    bool isContiguous();
    /// The tensor type of the viewed elements.
    ::mlir::RankedTensorType getTensorType();
  }];
  let genVerifyDecl = 1;
}

def Plan_PartAttr : Plan_Attr<"Part", "part"> {
  let summary = "Which piece of a logical tensor a rank holds";
  let description = [{
    The logical shape, and for each dimension the mesh axes that split it, major
    to minor, `mb` included. A replicated dimension has none. What is
    `interleaved` (`#dist.interleaved`) is split in that order.

    ```mlir
    #plan.part<[8/mb/dp, 64]>
    #plan.part<[32, 96/tp] interleaved <1 [64, 32] by 2>>
    ```
  }];
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$shape, "::mlir::ArrayAttr":$axes,
      OptionalParameter<"::accel::dist::InterleavedAttr">:$interleaved);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::ArrayAttr":$axes), [{
      return $_get($_ctxt, shape, axes, ::accel::dist::InterleavedAttr());
    }]>,
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
