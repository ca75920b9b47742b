// The ops of plan: the program and its parts, and the command kinds.

#ifndef ACCEL_PLAN_OPS_TD
#define ACCEL_PLAN_OPS_TD

include "dialects/Plan/PlanAttrs.td"
include "dialects/Plan/PlanInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, traits>;

class Plan_Container<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, !listconcat(traits, [NoTerminator, SingleBlock, NoRegionArguments])> {
  let regions = (region SizedRegion<1>:$body);
}

//===----------------------------------------------------------------------===//
// The program and its parts
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Container<"program", [Symbol, SymbolTable, IsolatedFromAbove]> {
  let summary = "Everything that the ranks of one stage do";
  let description = [{
    One text for all ranks whose `pp` coordinate is `stage`; `ranks` is the size
    of the mesh. Holds arenas, buffers, bodies and entries, in this order.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$stage, I64Attr:$ranks,
                       OptionalAttr<FlatSymbolRefAttr>:$mesh);
  let assemblyFormat = "$sym_name `stage` $stage `ranks` $ranks (`mesh` $mesh^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Plan_ArenaOp : Plan_Op<"arena", [HasParent<"ProgramOp">]> {
  let summary = "One allocation, made at load";
  let description = [{
    `bytes` is what is allocated, to the byte; `reserve` is what libraries and
    the process hold for themselves beside it, printed and checked at load.
    A `shared` arena is mapped by all ranks of a machine; offsets are the same
    in each rank's piece of it.
  }];
  let arguments = (ins Plan_SpaceAttr:$space, I64Attr:$bytes, I64Attr:$alignment, I64Attr:$reserve);
  let assemblyFormat = "`` $space `bytes` $bytes `alignment` $alignment `reserve` $reserve attr-dict";
}

def Plan_BufferOp : Plan_Op<"buffer", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "Bytes at a fixed offset of an arena";
  let description = [{
    `slots` copies, `slot_stride` bytes apart; `bytes` is the size of one. A run
    on micro-batch m uses copy m mod `slots`: as many micro-batches as that may
    be in flight, and no run has to say which copy is its own.
    `offset` is -1 until allocation. Two buffers may overlap only if every access
    of one happens before every access of the other, or if `alias_of` says so.
    `value` is what a constant holds after load; `source` names the state of a
    state buffer, `part` the piece of it.

    ```mlir
    plan.buffer @wte role state space device offset 0 bytes 12288 slots 1 stride 12288 {source = @"wte.weight", part = #plan.part<[96, 32] by [[], []]>}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_RoleAttr:$role, Plan_SpaceAttr:$space,
      I64Attr:$offset, I64Attr:$bytes, I64Attr:$slots, I64Attr:$slot_stride,
      OptionalAttr<FlatSymbolRefAttr>:$alias_of, OptionalAttr<ElementsAttr>:$value,
      OptionalAttr<FlatSymbolRefAttr>:$source, OptionalAttr<Plan_PartAttr>:$part);
  let assemblyFormat = "$sym_name `role` `` $role `space` `` $space `offset` $offset `bytes` $bytes `slots` $slots `stride` $slot_stride attr-dict";
  let hasVerifier = 1;
}

def Plan_BodyOp : Plan_Container<"body", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "The commands of one task, written once";
  let description = [{
    Commands of one stream run in the order written; different streams are
    ordered by `plan.record` and `plan.wait` only.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_EngineAttr:$engine);
  let assemblyFormat = "$sym_name `engine` `` $engine attr-dict-with-keyword $body";
}

def Plan_EntryOp : Plan_Container<"entry", [HasParent<"ProgramOp">]> {
  let summary = "A run list: what one call of the program does";
  let description = [{
    `load` runs once, after the arenas are made; the others, which are named for
    their kinds (`step`, `eval`, `forward`), once per call, in any order. They
    share states, constants and arenas: what one leaves in other bytes, no other
    may count on. Holds segments, and loops of segments.
  }];
  let arguments = (ins SymbolNameAttr:$kind);
  let assemblyFormat = "$kind attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Plan_LoopOp : Plan_Container<"loop", [HasParent<"EntryOp">]> {
  let summary = "Segments that repeat, turn after turn";
  let description = [{
    `trips` turns, at least two, from 0: in turn t a run works on micro-batch t +
    its offset. Each turn has runs of its own.

    ```mlir
    plan.loop 16 {
      plan.segment cpu {
        plan.run @read_inputs micro_batch turn + 0
      }
      plan.segment cpu capturable {
        plan.run @forward micro_batch turn + 0
        plan.run @backward micro_batch turn + 0
      }
    }
    ```
  }];
  let arguments = (ins I64Attr:$trips);
  let assemblyFormat = "$trips attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Plan_SegmentOp : Plan_Container<"segment", [ParentOneOf<["EntryOp", "LoopOp"]>]> {
  let summary = "A stretch of an entry that can be captured as one graph, or not";
  let arguments = (ins Plan_EngineAttr:$engine, UnitAttr:$capturable);
  let assemblyFormat = "`` $engine (`capturable` $capturable^)? attr-dict-with-keyword $body";
}

def Plan_RunOp : Plan_Op<"run", [HasParent<"SegmentOp">]> {
  let summary = "Runs a body on a micro-batch";
  let description = "On micro-batch `offset`, or in a loop on that of the turn + `offset`, which is written so.";
  let arguments = (ins FlatSymbolRefAttr:$task, I64Attr:$offset, UnitAttr:$turn);
  let assemblyFormat = "$task `micro_batch` (`turn` `+` $turn^)? $offset attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How often it runs in a call: once for each turn of the loop around it.
    int64_t getTrips();
  }];
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

class Plan_Command<string mnemonic, string reads, string writes, list<Trait> traits = []>
    : Plan_Op<mnemonic, !listconcat(traits,
        [DeclareOpInterfaceMethods<CommandOpInterface>])> {
  // Commands without a `stream` argument of their own get "compute".
  let extraClassDefinition =
    "::llvm::SmallVector<::accel::plan::ViewAttr> $cppClass::getReads() { ::llvm::SmallVector<::accel::plan::ViewAttr> views; " # reads # " return views; }\n" #
    "::llvm::SmallVector<::accel::plan::ViewAttr> $cppClass::getWrites() { ::llvm::SmallVector<::accel::plan::ViewAttr> views; " # writes # " return views; }\n" #
    "::llvm::StringRef $cppClass::getStreamName() { return getStream(); }\n";
}
def Plan_Stream : DefaultValuedAttr<StrAttr, "\"compute\"">;
def Plan_Views : TypedArrayAttrBase<Plan_ViewAttr, "views">;

def Plan_GemmOp : Plan_Command<"gemm",
    "views.append({getA(), getPacked() ? *getPacked() : getB()}); if (getBias()) views.push_back(*getBias()); if (getAccumulate()) views.push_back(getC()); if (getScratch()) views.push_back(*getScratch());",
    "views.push_back(getC()); if (getScratch()) views.push_back(*getScratch());"> {
  let summary = "C = A · B (+ bias) or C += A · B, batched";
  let description = [{
    a [b…, M, K], b [b…, K, N] or [K, N], c [b…, M, N]; transposes are strides.
    `bias` [N] is added to every row. `packed` is read instead of b where the form
    wants packed weights: the bytes that `plan.pack` made of b at load.
    `form` and `grid` are chosen at compile time by the target (chosen at load
    they would break laws 1 and 10): which library form, and into how many
    chunks of which dimensions the work is cut.
  }];
  let arguments = (ins Plan_ViewAttr:$a, Plan_ViewAttr:$b, Plan_ViewAttr:$c,
      OptionalAttr<Plan_ViewAttr>:$bias, OptionalAttr<Plan_ViewAttr>:$packed,
      OptionalAttr<Plan_ViewAttr>:$scratch, UnitAttr:$accumulate,
      OptionalAttr<DictionaryAttr>:$form, Plan_Stream:$stream);
  let assemblyFormat = "$a `,` $b `->` $c attr-dict";
  let hasVerifier = 1;
}

class Plan_AttentionLike<string mnemonic, string reads, string writes>
    : Plan_Command<mnemonic, reads, writes> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// With `causal`, row s sees keys up to s + this.
    int64_t getDiagonal() { return getRowOffset() - getColumnOffset(); }
  }];
}

def Plan_AttentionOp : Plan_AttentionLike<"attention",
    "views.append({getQuery(), getKey(), getValue()}); if (getMask()) views.push_back(*getMask()); if (getScratch()) views.push_back(*getScratch());",
    "views.push_back(getOutput()); if (getLogSumExp()) views.push_back(*getLogSumExp()); if (getScratch()) views.push_back(*getScratch());"> {
  let summary = "nn.attention on views";
  let description = [{
    Shapes and meaning as in `nn.attention`. The products are the target's GEMMs,
    the softmax between them is `kernel` (a row kernel over score rows);
    `scratch` holds the score rows of every thread. Blocks of scores that
    `causal` hides wholly are skipped. The log-sum-exp is written where it has a
    view: nobody reads it otherwise.
  }];
  let arguments = (ins Plan_ViewAttr:$query, Plan_ViewAttr:$key, Plan_ViewAttr:$value,
      OptionalAttr<Plan_ViewAttr>:$mask, Plan_ViewAttr:$output, OptionalAttr<Plan_ViewAttr>:$log_sum_exp,
      OptionalAttr<Plan_ViewAttr>:$scratch, F64Attr:$scale, UnitAttr:$causal, UnitAttr:$zero_masked_rows,
      DefaultValuedAttr<I64Attr, "0">:$row_offset, DefaultValuedAttr<I64Attr, "0">:$column_offset,
      OptionalAttr<FlatSymbolRefAttr>:$kernel, OptionalAttr<DictionaryAttr>:$form, Plan_Stream:$stream);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? `->` $output (`,` $log_sum_exp^)? `scale` $scale attr-dict";
}

def Plan_AttentionGradOp : Plan_AttentionLike<"attention_grad",
    "views.append({getQuery(), getKey(), getValue(), getOutput(), getLogSumExp(), getGradient()}); if (getLogSumExpGradient()) views.push_back(*getLogSumExpGradient()); if (getMask()) views.push_back(*getMask()); if (getScratch()) views.push_back(*getScratch());",
    "views.append({getQueryGradient(), getKeyGradient(), getValueGradient()}); if (getScratch()) views.push_back(*getScratch());"> {
  let summary = "nn.attention_grad on views";
  let description = [{
    Shapes and meaning as in `nn.attention_grad`. The products are the target's
    GEMMs; `kernel` makes from a row of scores and one of gradient · valueᵀ the
    row's softmax and its gradient, in one pass, as it has the log-sum-exp;
    `scratch` holds these rows, of every thread.
    One thread makes all of a key head's gradients, so that their sums over
    query heads and blocks of queries always have the same order. Blocks of
    scores that `causal` hides wholly are skipped.
  }];
  let arguments = (ins Plan_ViewAttr:$query, Plan_ViewAttr:$key, Plan_ViewAttr:$value,
      Plan_ViewAttr:$output, Plan_ViewAttr:$log_sum_exp, Plan_ViewAttr:$gradient,
      OptionalAttr<Plan_ViewAttr>:$log_sum_exp_gradient, OptionalAttr<Plan_ViewAttr>:$mask,
      Plan_ViewAttr:$query_gradient, Plan_ViewAttr:$key_gradient, Plan_ViewAttr:$value_gradient,
      OptionalAttr<Plan_ViewAttr>:$scratch, F64Attr:$scale, UnitAttr:$causal, UnitAttr:$zero_masked_rows,
      DefaultValuedAttr<I64Attr, "0">:$row_offset, DefaultValuedAttr<I64Attr, "0">:$column_offset,
      OptionalAttr<FlatSymbolRefAttr>:$kernel, OptionalAttr<DictionaryAttr>:$form, Plan_Stream:$stream);
  let assemblyFormat = "$query `,` $key `,` $value `output` $output `,` $log_sum_exp `gradient` $gradient (`,` $log_sum_exp_gradient^)? (`mask` $mask^)? `->` $query_gradient `,` $key_gradient `,` $value_gradient `scale` $scale attr-dict";
}

def Plan_KernelOp : Plan_Command<"kernel",
    "for (auto view : getInputs().getAsRange<ViewAttr>()) views.push_back(view);",
    "for (auto view : getOutputs().getAsRange<ViewAttr>()) views.push_back(view);"> {
  let summary = "A generated kernel: a fused group of nn ops";
  let description = [{
    `function` is a `func.func` of nn ops with attribute `plan.kernel`: its
    arguments are the inputs, its results the outputs. The target compiles it to
    one function (pointers…, row_begin, row_end); `rows` is the number of rows
    and `grid` how many of them make a chunk. An input and an output may be the
    same view (in place) where the target says that it is legal.
  }];
  let arguments = (ins FlatSymbolRefAttr:$function, Plan_Views:$inputs, Plan_Views:$outputs,
      I64Attr:$rows, I64Attr:$grid, Plan_Stream:$stream);
  let assemblyFormat = "$function $inputs `->` $outputs `rows` $rows `grid` $grid attr-dict";
}

def Plan_CollectiveOp : Plan_Command<"collective",
    "for (auto view : getInputs().getAsRange<ViewAttr>()) views.push_back(view);",
    "for (auto view : getOutputs().getAsRange<ViewAttr>()) views.push_back(view);"> {
  let summary = "A collective over the ranks that differ in `axes` only";
  let description = [{
    Kinds and meaning as the `dist` ops of the same names. reduce_scatter and
    all_gather split or join dimension `dim`; all_to_all splits `split_dim` and
    joins `dim`. Several views make a bucket. `wire` is the element type on the
    wire where it is not the views' own. It ends with a release from every
    reader (law 4).
  }];
  let arguments = (ins Plan_CollectiveAttr:$kind, StrArrayAttr:$axes, Plan_Views:$inputs, Plan_Views:$outputs,
      OptionalAttr<Plan_CombineAttr>:$combine, DefaultValuedAttr<I64Attr, "0">:$dim,
      DefaultValuedAttr<I64Attr, "0">:$split_dim, OptionalAttr<DenseI64ArrayAttr>:$permutation,
      OptionalAttr<TypeAttr>:$wire, Plan_Stream:$stream);
  let assemblyFormat = "`` $kind $axes $inputs `->` $outputs attr-dict";
  let hasVerifier = 1;
}

def Plan_GroupOp : Plan_Op<"group", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "Sends and receives posted together";
  let description = "None of them waits for another of the group: without it, textbook 1F1B deadlocks under zero-buffer semantics.";
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}
def Plan_SendOp : Plan_Command<"send", "views.push_back(getView());", ""> {
  let summary = "Sends a view to the rank whose coordinate on `axis` is `delta` away";
  let arguments = (ins Plan_ViewAttr:$view, StrAttr:$axis, I64Attr:$delta, I64Attr:$tag, Plan_Stream:$stream);
  let assemblyFormat = "$view `to` $axis $delta `tag` $tag attr-dict";
}
def Plan_RecvOp : Plan_Command<"recv", "", "views.push_back(getView());"> {
  let summary = "Receives a view from the rank whose coordinate on `axis` is `delta` away";
  let arguments = (ins Plan_ViewAttr:$view, StrAttr:$axis, I64Attr:$delta, I64Attr:$tag, Plan_Stream:$stream);
  let assemblyFormat = "$view `from` $axis $delta `tag` $tag attr-dict";
}

def Plan_CopyOp : Plan_Command<"copy", "views.push_back(getSource());", "views.push_back(getTarget());"> {
  let summary = "Copies elements between views of one shape and element type, perhaps in different spaces";
  let arguments = (ins Plan_ViewAttr:$source, Plan_ViewAttr:$target, Plan_Stream:$stream);
  let assemblyFormat = "$source `->` $target attr-dict";
}
def Plan_FillOp : Plan_Command<"fill", "", "views.push_back(getTarget());"> {
  let summary = "Sets every element to a value";
  let arguments = (ins TypedAttrInterface:$value, Plan_ViewAttr:$target, Plan_Stream:$stream);
  let assemblyFormat = "$value `->` $target attr-dict";
}
def Plan_PackOp : Plan_Command<"pack", "views.push_back(getSource());", "views.push_back(getTarget());"> {
  let summary = "Rewrites weights into the layout that a gemm's form wants";
  let description = "The target is an opaque range of bytes (a view of i8); `form` is that of the gemms that read it.";
  let arguments = (ins Plan_ViewAttr:$source, Plan_ViewAttr:$target, DictionaryAttr:$form, Plan_Stream:$stream);
  let assemblyFormat = "$source `->` $target attr-dict";
}
def Plan_CoordinateOp : Plan_Command<"coordinate", "", "views.push_back(getTarget());"> {
  let summary = "Writes this rank's index over axes (major to minor) as an i64 scalar";
  let arguments = (ins StrArrayAttr:$axes, Plan_ViewAttr:$target, Plan_Stream:$stream);
  let assemblyFormat = "$axes `->` $target attr-dict";
}
def Plan_ReadOp : Plan_Command<"read", "", "views.push_back(getTarget());"> {
  let summary = "Reads this rank's part of an input or of a state's first value";
  let arguments = (ins Plan_SourceAttr:$source, StrAttr:$name, Plan_PartAttr:$part, Plan_ViewAttr:$target, Plan_Stream:$stream);
  let assemblyFormat = "`` $source $name $part `->` $target attr-dict";
}
def Plan_WriteOp : Plan_Command<"write", "views.push_back(getView());", ""> {
  let summary = "Writes this rank's part of an output";
  let arguments = (ins Plan_SourceAttr:$target, StrAttr:$name, Plan_PartAttr:$part, Plan_ViewAttr:$view, Plan_Stream:$stream);
  let assemblyFormat = "$view `->` `` $target $name $part attr-dict";
}

def Plan_RecordOp : Plan_Command<"record", "", ""> {
  let summary = "Marks a point of a stream that others can wait for";
  let arguments = (ins StrAttr:$event, Plan_Stream:$stream);
  let assemblyFormat = "$event attr-dict";
}
def Plan_WaitOp : Plan_Command<"wait", "", ""> {
  let summary = "Holds a stream until an event is recorded";
  let description = [{
    An event of this run; with `of @body` of the run of that body on the same
    micro-batch (of its only run, where it runs once), which stands before this
    one in the entry. So what another stream has begun ahead (a message, a
    gather) is waited for where it is needed.

    ```mlir
    plan.wait "there" of @receive
    ```
  }];
  let arguments = (ins StrAttr:$event, OptionalAttr<FlatSymbolRefAttr>:$body, Plan_Stream:$stream);
  let assemblyFormat = "$event (`of` $body^)? attr-dict";
}

#endif
