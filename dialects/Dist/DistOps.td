// The ops of dist: the mesh, what is asked of whole tensors, the collectives on
// one rank's tensors, and the schedule.

#ifndef ACCEL_DIST_OPS_TD
#define ACCEL_DIST_OPS_TD

include "dialects/Dist/DistAttrs.td"
include "dialects/Dist/DistInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, traits>;

def Dist_Tensor
    : Type<And<[TensorOf<[AnyFloat, AnyInteger]>.predicate, HasStaticShapePred]>,
           "statically shaped tensor", "::mlir::RankedTensorType">;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "Names the axes along which the ranks are arranged";
  let description = [{
    Axes are major to minor. `device_ids[r]` is the device of rank r (r itself if
    absent); `links` gives each axis its cost, in the order of the axes.

    ```mlir
    dist.mesh @m ["mb" = 1, "dp_replicate" = 2, "tp" = 4]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<Dist_AxisAttr, "axes">:$axes,
      OptionalAttr<DenseI64ArrayAttr>:$device_ids,
      OptionalAttr<TypedArrayAttrBase<Dist_LinkAttr, "links">>:$links);
  let assemblyFormat = "$sym_name custom<MeshAxes>($axes) (`device_ids` $device_ids^)? (`links` $links^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The reserved axis of micro-batches.
    static constexpr ::llvm::StringLiteral kMicroBatchAxis = "mb";
    /// The axis of the stages of a pipeline: ranks that have different ops.
    static constexpr ::llvm::StringLiteral kPipelineAxis = "pp";
    /// The axis of data-parallel ranks that share the states between them.
    static constexpr ::llvm::StringLiteral kShardAxis = "dp_shard";
    /// The axis of ranks that have different experts, and different samples.
    static constexpr ::llvm::StringLiteral kExpertAxis = "ep";
    /// The axis of tensor-parallel ranks, which share the work on a sample.
    static constexpr ::llvm::StringLiteral kTensorAxis = "tp";
    /// Axes of context parallelism, whose ranks attend to each other's keys, and
    /// of Ulysses, whose ranks exchange positions for heads.
    static constexpr ::llvm::StringLiteral kContextAxis = "cp", kUlyssesAxis = "sp";
    /// Whether there are axes, and all split sequences.
    static bool splitsSequences(AxesAttr axes);
    /// Size of an axis; none if the mesh has no such axis.
    std::optional<int64_t> findAxisSize(::llvm::StringRef axis);
    /// Where an axis that the mesh has stands among its axes.
    int64_t getAxisNumber(::llvm::StringRef axis);
    /// Product of the sizes of axes that the mesh has.
    int64_t getGroupSize(AxesAttr axes);
    /// Ranks: the product of all sizes but that of `mb`.
    int64_t getRankCount();
    /// Coordinate of a rank along an axis; 0 along `mb`.
    int64_t getCoordinate(int64_t rank, ::llvm::StringRef axis);
    /// Number of a rank within its group along `axes`, the first one major.
    int64_t getIndexInGroup(int64_t rank, AxesAttr axes);
    /// The ranks of a rank's group along `axes`, in the order of their numbers.
    ::llvm::SmallVector<int64_t> getGroup(int64_t rank, AxesAttr axes);
    /// The mesh of that name nearest to an op; null if there is none.
    static MeshOp lookup(::mlir::Operation *from, ::mlir::FlatSymbolRefAttr name);
    /// The mesh of a module; null if it has none.
    static MeshOp of(::mlir::ModuleOp module);
    /// The same where one is needed: reports at the module that it has none.
    static ::mlir::FailureOr<MeshOp> require(::mlir::ModuleOp module);
  }];
}

//===----------------------------------------------------------------------===//
// On whole tensors
//===----------------------------------------------------------------------===//

def Dist_ConstraintOp : Dist_Op<"constraint", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Asks that a tensor be sharded so";
  let description = [{
    Open lists (`{dp, ?}`, `{?}`) leave the rest to propagation. What makes the value
    follows, unless the readers `alone` are to get it so: then the one side says
    nothing of the other.

    Lifetime: made by `dist-annotate` and by users' configurations, removed by
    `dist-materialize`.

    ```mlir
    %1 = dist.constraint %0 to #dist.sharding<@m, [{dp}, {?} ]> : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$sharding, UnitAttr:$alone);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `to` $sharding (`alone` $alone^)? attr-dict `:` type($input)";
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure]> {
  let summary = "The same value, placed differently";
  let description = [{
    The only op that changes a sharding. Its source may be partial; its result is
    not, except over axes over which the source is.

    Lifetime: made by `dist-materialize` right before the consumer, becomes
    collectives in `dist-localize`.
  }];
  let arguments = (ins Dist_Tensor:$input);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_AccumulateOp : Dist_Op<"accumulate", [Pure]> {
  let summary = "What the micro-batches' terms come to, in an accumulator";
  let description = [{
    Micro-batches run one after another: what is partial over `mb` is combined
    where it is kept, in a state of role `accumulator` that has a sharding of its
    own, the result's: it may still be partial over ranks. The state holds what
    changes nothing (0 of a sum) before the first micro-batch and after the step.

    Lifetime: made by `dist-declare-accumulators`; `local-split-tasks` puts one
    addition into the loop and a read behind it. On one rank's tensors `layout`
    says what the sharding said.

    ```mlir
    %a = dist.accumulate sum %dw in @"accumulator/w"
        : tensor<4x4xf32, #dist.sharding<@m, [{}, {} ], partial = {mb, dp}>>
       -> tensor<4x4xf32, #dist.sharding<@m, [{}, {} ], partial = {dp}>>
    // of one rank
    %a = dist.accumulate sum %dw in @"accumulator/w" layout <@m [4, 4], partial = {dp}>
        : tensor<4x4xf32> -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Dist_ReductionAttr:$kind, Dist_Tensor:$input,
      FlatSymbolRefAttr:$state, OptionalAttr<Dist_LayoutAttr>:$layout);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `in` $state (`layout` $layout^)? attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Collectives, on one rank's tensors
//===----------------------------------------------------------------------===//

class Dist_CollectiveOp<string mnemonic, list<Trait> traits = [],
                        list<string> methods = []>
    : Dist_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<CollectiveOpInterface, methods>], traits)>;

defvar Wire = (ins OptionalAttr<TypeAttr>:$wire);
defvar Group = (ins FlatSymbolRefAttr:$mesh, Dist_AxesAttr:$axes);

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Combines the group's tensors; every rank gets the result";
  let arguments = !con((ins Dist_ReductionAttr:$kind, Dist_Tensor:$input), Group, Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `over` $mesh custom<AxisList>($axes) (`wire` $wire^)? attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Dist_ReduceScatterOp : Dist_CollectiveOp<"reduce_scatter"> {
  let summary = "Combines the group's tensors; rank i of the group gets chunk i of dimension `dim`";
  let arguments = !con((ins Dist_ReductionAttr:$kind, Dist_Tensor:$input), Group, (ins I64Attr:$dim), Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`` $kind $input `over` $mesh custom<AxisList>($axes) `dim` $dim (`wire` $wire^)? attr-dict `:` functional-type(operands, results)";
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather"> {
  let summary = "Joins the group's tensors along dimension `dim`, in the order of the group; every rank gets the result";
  let arguments = !con((ins Dist_Tensor:$input), Group, (ins I64Attr:$dim), Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` $mesh custom<AxisList>($axes) `dim` $dim (`wire` $wire^)? attr-dict `:` functional-type(operands, results)";
}

def Dist_AllSliceOp : Dist_CollectiveOp<"all_slice", [], ["communicates"]> {
  let summary = "Rank i of the group keeps chunk i of dimension `dim`; nothing is sent";
  let arguments = !con((ins Dist_Tensor:$input), Group, (ins I64Attr:$dim));
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` $mesh custom<AxisList>($axes) `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all"> {
  let summary = "Sends chunk i of dimension `split_dim` to rank i of the group and joins what comes in along `concat_dim`";
  let arguments = !con((ins Dist_Tensor:$input), Group, (ins I64Attr:$split_dim, I64Attr:$concat_dim), Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` $mesh custom<AxisList>($axes) `split` $split_dim `concat` $concat_dim (`wire` $wire^)? attr-dict `:` functional-type(operands, results)";
}

def Dist_PermuteOp : Dist_CollectiveOp<"permute", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Rank i of the group gets the tensor of rank `sources`[i]; `sources` is a permutation";
  let arguments = !con((ins Dist_Tensor:$input), Group, (ins DenseI64ArrayAttr:$sources), Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` $mesh custom<AxisList>($axes) `sources` $sources (`wire` $wire^)? attr-dict `:` type($input)";
}

def Dist_BroadcastOp : Dist_CollectiveOp<"broadcast", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Every rank of the group gets the tensor of rank `root`";
  let arguments = !con((ins Dist_Tensor:$input), Group, (ins I64Attr:$root), Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` $mesh custom<AxisList>($axes) `root` $root (`wire` $wire^)? attr-dict `:` type($input)";
}

def Dist_FetchRowsOp : Dist_CollectiveOp<"fetch_rows"> {
  let summary = "Each rank gets the rows that it names of the group's tensors, one after another";
  let description = [{
    Row i of the result is row `index`[i] of all ranks' inputs joined along
    dimension 0, in the order of the group; zeros where the index is -1. What is
    sent is what is named, known only at run time; the room for it is known
    before.

    ```mlir
    %y = dist.fetch_rows %x, %rows over @m {ep} : (tensor<8x4xf32>, tensor<16xi64>) -> tensor<16x4xf32>
    ```
  }];
  let arguments = !con((ins Dist_Tensor:$input, 1DTensorOf<[I64]>:$index), Group, Wire);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `,` $index `over` $mesh custom<AxisList>($axes) (`wire` $wire^)? attr-dict `:` functional-type(operands, results)";
}

def Dist_AxisIndexOp : Dist_CollectiveOp<"axis_index", [], ["communicates"]> {
  let summary = "The rank's number within its group along the axes, as a scalar i64";
  let arguments = Group;
  let results = (outs 0DTensorOf<[I64]>:$result);
  let assemblyFormat = "$mesh custom<AxisList>($axes) attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Tasks and the schedule
//===----------------------------------------------------------------------===//

class Dist_Container<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat(traits, [NoTerminator, SingleBlock, NoRegionArguments])> {
  let regions = (region SizedRegion<1>:$body);
}

def Dist_ScheduleOp : Dist_Container<"schedule", [Symbol,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Which task runs on which micro-batch, in which order, on each stage";
  let description = [{
    Holds one `dist.stage` per stage, in order, then the `dist.edge`s that carry
    values between tasks. `entry` is the function whose arguments and results
    are the entry's; of a schedule of a single task it is the task itself.

    ```mlir
    dist.schedule @infer entry @main micro_batches 1 {
      dist.stage 0 {
        dist.run @main[0]
      }
    }
    ```
    A stage is a list of runs and of loops of runs. No two tasks are of one kind,
    stage and chunk.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$entry, I64Attr:$micro_batches);
  let assemblyFormat = "$sym_name `entry` $entry `micro_batches` $micro_batches attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Dist_StageOp : Dist_Container<"stage", [HasParent<"ScheduleOp">]> {
  let summary = "The runs of one stage, in their order";
  let arguments = (ins I64Attr:$index);
  let assemblyFormat = "$index attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Dist_LoopOp : Dist_Container<"loop", [HasParent<"StageOp">]> {
  let summary = "Runs that repeat, turn after turn";
  let description = [{
    `trips` turns, from 0: in turn t a run works on micro-batch t + its offset.
    So a schedule is as long for a thousand micro-batches as for two: what comes
    before a loop, the loop, what comes after it. At least two turns: a run that
    has no loop around it is what a loop of one would be.

    Runs of one loop may have different offsets (of a pipeline, a forward runs
    ahead of its backward).

    ```mlir
    dist.loop 16 {
      dist.run @forward[turn + 1]
      dist.run @backward[turn]
    }
    ```
  }];
  let arguments = (ins I64Attr:$trips);
  let assemblyFormat = "$trips attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Dist_RunOp : Dist_Op<"run", [ParentOneOf<["StageOp", "LoopOp"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a task on a micro-batch";
  let description = [{
    On micro-batch `offset`, or in a loop on that of the turn + `offset`, which is
    written so (`[turn]` if the offset is 0).
  }];
  let arguments = (ins FlatSymbolRefAttr:$task, I64Attr:$offset, UnitAttr:$turn);
  let assemblyFormat = "$task `[` `` custom<MicroBatch>($offset, $turn) `` `]` attr-dict";
  let extraClassDeclaration = [{
    /// How often it runs: once for each turn of the loop around it.
    int64_t getTrips();
  }];
}

def Dist_EdgeOp : Dist_Op<"edge", [HasParent<"ScheduleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Carries a result of a task to an argument of another, of the same micro-batch";
  let description = [{
    A transfer if the tasks' stages differ, a buffer kept between them otherwise.
    ```mlir
    dist.edge @F0 2 -> @F1 0
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$source, I64Attr:$result, FlatSymbolRefAttr:$target, I64Attr:$argument);
  let assemblyFormat = "$source $result `->` $target $argument attr-dict";
}

#endif
