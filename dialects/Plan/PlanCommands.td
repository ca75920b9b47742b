// The commands of plan. Each is described here and, for the runtime, in
// runtime/include/accel-rt/CommandFormat.h, field for field (docs/AddACommand.md).

#ifndef ACCEL_PLAN_COMMANDS_TD
#define ACCEL_PLAN_COMMANDS_TD

include "dialects/Plan/PlanAttrs.td"
include "dialects/Plan/PlanInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, traits>;

// What a command does with the bytes of the views that an argument names:
// every such argument is marked with one of these.
class Plan_Operand<Attr attr, string how> : Attr<attr.predicate, attr.summary> {
  let storageType = attr.storageType;
  let returnType = attr.returnType;
  let convertFromStorage = attr.convertFromStorage;
  let constBuilderCall = attr.constBuilderCall;
  let valueType = attr.valueType;
  let isOptional = attr.isOptional;
  let baseAttr = attr;
  string access = how;
}
class Plan_Read<Attr attr> : Plan_Operand<attr, "Access::Read">;
class Plan_Write<Attr attr> : Plan_Operand<attr, "Access::Write">;
class Plan_ReadWrite<Attr attr> : Plan_Operand<attr, "Access::Both">;
/// Not touched where the other argument is there.
class Plan_ReadUnless<Attr attr, string other>
    : Plan_Operand<attr, "properties." # other # " ? Access::None : Access::Read">;
/// Written; where the other argument is there, read before.
class Plan_Update<Attr attr, string other>
    : Plan_Operand<attr, "properties." # other # " ? Access::Both : Access::Write">;

def Plan_Stream : DefaultValuedAttr<StrAttr, "\"compute\"">;
def Plan_Views : TypedArrayAttrBase<Plan_ViewAttr, "views">;
def Plan_OptionalView : OptionalAttr<Plan_ViewAttr>;

class Plan_VisitOperand<dag operands, int index> {
  Attr operand = !getdagarg<Attr>(operands, index);
  string name = !getdagname(operands, index);
  bit isViews = !or(!eq(operand.storageType, Plan_ViewAttr.storageType),
                    !eq(!cast<string>(operand), "Plan_Views"));
  bit isMarked = !isa<Plan_Operand>(operand);
  assert !or(!not(isViews), isMarked),
      "views that a command names are marked Plan_Read or Plan_Write: " # name;
  string visit = !if(isMarked,
      "  detail::visitViews(properties." # name # ", "
        # !cast<Plan_Operand>(operand).access # ", visit);\n", "");
}

/// A command; each gets a `stream` beside its operands, and ends with it and
/// with what is no operand. Which bytes it touches follows from what the
/// operands are marked with. How they are written: PlanSyntax.h.
class Plan_Command<string mnemonic, dag operands, string format>
    : Plan_Op<mnemonic, [DeclareOpInterfaceMethods<CommandOpInterface>]> {
  let assemblyFormat = format
    # " (`on` custom<Name>($stream)^)? `` custom<Attributes>(attr-dict)";
  let arguments = !con(operands, (ins Plan_Stream:$stream));
  let extraClassDefinition =
    "void $cppClass::forEachView(::llvm::function_ref<void(::accel::plan::ViewAttr, ::accel::plan::Access)> visit) {\n"
    # "  [[maybe_unused]] auto &properties = getProperties();\n"
    # !interleave(!foreach(i, !range(!size(operands)), Plan_VisitOperand<operands, i>.visit), "")
    # "}\n"
    # "::llvm::StringRef $cppClass::getStreamName() { return getStream(); }\n";
}

def Plan_GemmOp : Plan_Command<"gemm", (ins
      Plan_Read<Plan_ViewAttr>:$a,
      Plan_ReadUnless<Plan_ViewAttr, "packed">:$b,
      Plan_Update<Plan_ViewAttr, "accumulate">:$c,
      Plan_Read<Plan_OptionalView>:$bias, Plan_Read<Plan_OptionalView>:$packed,
      Plan_ReadWrite<Plan_OptionalView>:$scratch, UnitAttr:$accumulate,
      OptionalAttr<DictionaryAttr>:$form),
      "custom<View>($a) `,` custom<View>($b) (`packed` custom<View>($packed)^)? "
      # "(`+` custom<View>($bias)^)? `->` (`accumulate` $accumulate^)? custom<View>($c) "
      # "(`scratch` custom<View>($scratch)^)? (`form` custom<Form>($form)^)?"> {
  let summary = "C = A · B (+ bias) or C += A · B, batched";
  let description = [{
    a [b…, M, K], b [b…, K, N] or [K, N], c [b…, M, N]; transposes are strides.
    `bias` [N] is added to every row. `packed` is read instead of b where the form
    wants packed weights: the bytes that `plan.pack` made of b at load.
    `form` and `grid` are chosen at compile time by the target (chosen at load
    they would break laws 1 and 10): which library form, and into how many
    chunks of which dimensions the work is cut.
  }];
  let hasVerifier = 1;
}

def Plan_GroupedGemmOp : Plan_Command<"grouped_gemm", (ins
      Plan_Read<Plan_ViewAttr>:$a, Plan_Read<Plan_ViewAttr>:$b,
      Plan_Read<Plan_ViewAttr>:$groups, Plan_Write<Plan_ViewAttr>:$c,
      Plan_ReadWrite<Plan_OptionalView>:$order, Plan_ReadWrite<Plan_OptionalView>:$scratch,
      OptionalAttr<DictionaryAttr>:$form),
      "custom<View>($a) `,` custom<View>($b) `of` custom<View>($groups) "
      # "`->` custom<View>($c) (`order` custom<View>($order)^)? "
      # "(`scratch` custom<View>($scratch)^)? (`form` custom<Form>($form)^)?"> {
  let summary = "nn.grouped_matmul on views: all groups' products as one command";
  let description = [{
    a [R, K], b [G, K, N], groups [R], c [R, N]; transposes are strides. The rows
    of a group are brought together, some hundred at a time, multiplied, and put
    back; `order` holds which rows those are, `scratch` the rows, of each
    thread.
  }];
  let hasVerifier = 1;
}

def Plan_GroupedGemmGradOp : Plan_Command<"grouped_gemm_grad", (ins
      Plan_Read<Plan_ViewAttr>:$a, Plan_Read<Plan_ViewAttr>:$b,
      Plan_Read<Plan_ViewAttr>:$groups, Plan_Update<Plan_ViewAttr, "accumulate">:$c,
      Plan_ReadWrite<Plan_OptionalView>:$order, Plan_ReadWrite<Plan_OptionalView>:$scratch,
      UnitAttr:$accumulate, OptionalAttr<DictionaryAttr>:$form),
      "custom<View>($a) `,` custom<View>($b) `of` custom<View>($groups) "
      # "`->` (`accumulate` $accumulate^)? custom<View>($c) (`order` custom<View>($order)^)? "
      # "(`scratch` custom<View>($scratch)^)? (`form` custom<Form>($form)^)?"> {
  let summary = "nn.grouped_matmul_grad on views";
  let description = [{
    a [R, K], b [R, N], groups [R], c [G, K, N]: what `accumulate` finds there is
    added to. One thread makes all of a piece of a group's matrix, so that its
    sum over rows always has the same order.
  }];
  let hasVerifier = 1;
}

def Plan_ConvOp : Plan_Command<"conv", (ins
      Plan_ConvolutionAttr:$convolution,
      Plan_Read<Plan_ViewAttr>:$a, Plan_Read<Plan_ViewAttr>:$b,
      Plan_Write<Plan_ViewAttr>:$c, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low,
      Plan_ReadWrite<Plan_OptionalView>:$scratch, OptionalAttr<DictionaryAttr>:$form),
      "$convolution custom<View>($a) `,` custom<View>($b) `->` custom<View>($c) "
      # "`strides` $strides `dilations` $dilations `low` $low "
      # "(`scratch` custom<View>($scratch)^)? (`form` custom<Form>($form)^)?"> {
  let summary = "nn.conv or one of its gradients on views";
  let description = [{
    Three tensors, of groups always, and of one to three dimensions of space: the
    input [N, G, C, S…], the weight [G, O, C, K…] and the output [N, G, O, P…].
    `forward` reads the first two and writes the third; `input_grad` reads the
    output's gradient and the weight, `weight_grad` the input and the output's
    gradient. Positions, and places of the weight, lie evenly apart: channels come
    first, as in the shapes, or last. Windows are gathered block by block into the
    scratch of each thread, where they are operands of a matrix product.
  }];
  let hasVerifier = 1;
}

def Plan_DealRowsOp : Plan_Command<"deal_rows", (ins
      Plan_Read<Plan_ViewAttr>:$groups, Plan_Read<Plan_ViewAttr>:$rank,
      Plan_Write<Plan_ViewAttr>:$rows, Plan_Write<Plan_ViewAttr>:$own,
      Plan_Write<Plan_ViewAttr>:$places, I64Attr:$num_groups, I64Attr:$ranks),
      "custom<View>($groups) `,` custom<View>($rank) `->` custom<View>($rows) `,` "
      # "custom<View>($own) `,` custom<View>($places) `num_groups` $num_groups `ranks` $ranks"> {
  let summary = "nn.deal_rows on views, without gaps; the room is that of `rows`";
  let hasVerifier = 1;
}

defvar Plan_AttentionEnd = "`scale` $scale (`causal` $causal^)? (`zero_masked_rows` $zero_masked_rows^)? "
    # "(`row_offset` $row_offset^)? (`column_offset` $column_offset^)? (`row_steps` $row_steps^)? "
    # "(`column_steps` $column_steps^)? (`turn` $turn^)? (`stride` $stride^)? "
    # "(`scratch` custom<View>($scratch)^)? (`form` custom<Form>($form)^)?";

class Plan_AttentionLike<string mnemonic, dag operands, string format>
    : Plan_Command<mnemonic, operands, !strconcat(format, Plan_AttentionEnd)> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// With `causal`, row s sees keys up to s + this, but for what `row_steps`
    /// and `column_steps` add.
    int64_t getDiagonal() {
      return ::llvm::divideFloorSigned<int64_t>(
          int64_t(getRowOffset()) - int64_t(getColumnOffset()),
          int64_t(getStride()));
    }
  }];
}

def Plan_AttentionOp : Plan_AttentionLike<"attention", (ins
      Plan_Read<Plan_ViewAttr>:$query, Plan_Read<Plan_ViewAttr>:$key,
      Plan_Read<Plan_ViewAttr>:$value, Plan_Read<Plan_OptionalView>:$mask,
      Plan_Write<Plan_ViewAttr>:$output, Plan_Write<Plan_OptionalView>:$log_sum_exp,
      Plan_ReadWrite<Plan_OptionalView>:$scratch, F64Attr:$scale, UnitAttr:$causal,
      UnitAttr:$zero_masked_rows, DefaultValuedAttr<I64Attr, "0">:$row_offset,
      DefaultValuedAttr<I64Attr, "0">:$column_offset,
      OptionalAttr<DictionaryAttr>:$row_steps, OptionalAttr<DictionaryAttr>:$column_steps,
      DefaultValuedAttr<I64Attr, "0">:$turn,
      DefaultValuedAttr<I64Attr, "1">:$stride, OptionalAttr<DictionaryAttr>:$form),
      "custom<View>($query) `,` custom<View>($key) `,` custom<View>($value) "
      # "(`mask` custom<View>($mask)^)? `->` custom<View>($output) (`,` custom<View>($log_sum_exp)^)? "> {
  let summary = "nn.attention on views";
  let description = [{
    Shapes and meaning as in `nn.attention`. The products are the target's GEMMs,
    the softmax between them is `kernel` (a row kernel over score rows);
    `scratch` holds the score rows of every thread. Blocks of scores that
    `causal` hides wholly are skipped. The log-sum-exp is written where it has a
    view: nobody reads it otherwise.
  }];
}

def Plan_AttentionGradOp : Plan_AttentionLike<"attention_grad", (ins
      Plan_Read<Plan_ViewAttr>:$query, Plan_Read<Plan_ViewAttr>:$key,
      Plan_Read<Plan_ViewAttr>:$value, Plan_Read<Plan_ViewAttr>:$output,
      Plan_Read<Plan_ViewAttr>:$log_sum_exp, Plan_Read<Plan_ViewAttr>:$gradient,
      Plan_Read<Plan_OptionalView>:$log_sum_exp_gradient, Plan_Read<Plan_OptionalView>:$mask,
      Plan_Write<Plan_ViewAttr>:$query_gradient, Plan_Write<Plan_ViewAttr>:$key_gradient,
      Plan_Write<Plan_ViewAttr>:$value_gradient, Plan_ReadWrite<Plan_OptionalView>:$scratch,
      F64Attr:$scale, UnitAttr:$causal, UnitAttr:$zero_masked_rows,
      DefaultValuedAttr<I64Attr, "0">:$row_offset, DefaultValuedAttr<I64Attr, "0">:$column_offset,
      OptionalAttr<DictionaryAttr>:$row_steps, OptionalAttr<DictionaryAttr>:$column_steps,
      DefaultValuedAttr<I64Attr, "0">:$turn,
      DefaultValuedAttr<I64Attr, "1">:$stride, OptionalAttr<DictionaryAttr>:$form),
      "custom<View>($query) `,` custom<View>($key) `,` custom<View>($value) "
      # "`output` custom<View>($output) `,` custom<View>($log_sum_exp) "
      # "`gradient` custom<View>($gradient) (`,` custom<View>($log_sum_exp_gradient)^)? "
      # "(`mask` custom<View>($mask)^)? `->` custom<View>($query_gradient) `,` "
      # "custom<View>($key_gradient) `,` custom<View>($value_gradient) "> {
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
}

def Plan_KernelOp : Plan_Command<"kernel", (ins
      FlatSymbolRefAttr:$function, Plan_Read<Plan_Views>:$inputs,
      Plan_Write<Plan_Views>:$outputs, Plan_ReadWrite<Plan_OptionalView>:$scratch,
      I64Attr:$rows, I64Attr:$grid, OptionalAttr<DictionaryAttr>:$form),
      "$function `(` custom<Views>($inputs) `)` `->` custom<Views>($outputs) "
      # "`rows` custom<Rows>($rows, $grid) (`scratch` custom<View>($scratch)^)? "
      # "(`form` custom<Form>($form)^)?"> {
  let summary = "A generated kernel: a fused group of nn ops";
  let description = [{
    `function` is a `func.func` of nn ops with attribute `plan.kernel`: its
    arguments are the inputs, its results the outputs. The target compiles it to
    one function (pointers…, row_begin, row_end); `rows` is the number of rows
    and `grid` how many of them make a chunk. An input and an output may be the
    same view (in place) where the target says that it is legal.
    `form` is what else the target has decided (into how many blocks the work is
    cut, how much memory they share, whether columns are summed in two stages),
    `scratch` bytes that no input and no output shares, for what threads or
    blocks keep while it runs. The code is compiled for the form.
  }];
}

def Plan_CollectiveOp : Plan_Command<"collective", (ins
      Plan_CollectiveAttr:$collective, StrArrayAttr:$axes,
      Plan_Read<Plan_Views>:$inputs, Plan_Write<Plan_Views>:$outputs,
      Plan_Read<Plan_OptionalView>:$index,
      OptionalAttr<Plan_CombineAttr>:$combine, DefaultValuedAttr<I64Attr, "0">:$dim,
      DefaultValuedAttr<I64Attr, "0">:$split_dim, OptionalAttr<DenseI64ArrayAttr>:$permutation,
      OptionalAttr<TypeAttr>:$wire),
      "`` $collective `` custom<Combine>($combine) `over` custom<Names>($axes) (`dim` $dim^)? "
      # "(`split_dim` $split_dim^)? (`permutation` $permutation^)? (`wire` $wire^)? "
      # "` ` `(` custom<Views>($inputs) `)` (`at` custom<View>($index)^)? `->` custom<Views>($outputs)"> {
  let summary = "A collective over the ranks that differ in `axes` only";
  let description = [{
    Kinds and meaning as the `dist` ops of the same names. reduce_scatter and
    all_gather split or join dimension `dim`; all_to_all splits `split_dim` and
    joins `dim`; fetch_rows reads which rows from `index`. Several views make a bucket. `wire` is the element type on the
    wire where it is not the views' own. It ends with a release from every
    reader (law 4).
  }];
  let hasVerifier = 1;
}

def Plan_GroupOp : Plan_Op<"group", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "Sends and receives posted together";
  let description = [{
    None of them waits for another of the group: without it, textbook 1F1B
    deadlocks under zero-buffer semantics. All are of one stream. Receives are
    written first: who follows the order of the text finds that what comes in
    lies elsewhere than what is sent meanwhile.

    ```mlir
    plan.group {
      plan.recv @y[4xf32] from pp + 1 tag 1
      plan.send @x[4xf32] to pp + 1 tag 0
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}
def Plan_SendOp : Plan_Command<"send", (ins
      Plan_Read<Plan_ViewAttr>:$view, StrAttr:$axis, I64Attr:$delta, I64Attr:$tag),
      "custom<View>($view) `to` custom<Neighbour>($axis, $delta) `tag` $tag"> {
  let summary = "Sends a view to the rank whose coordinate on `axis` is `delta` away";
}
def Plan_RecvOp : Plan_Command<"recv", (ins
      Plan_Write<Plan_ViewAttr>:$view, StrAttr:$axis, I64Attr:$delta, I64Attr:$tag),
      "custom<View>($view) `from` custom<Neighbour>($axis, $delta) `tag` $tag"> {
  let summary = "Receives a view from the rank whose coordinate on `axis` is `delta` away";
}

def Plan_CopyOp : Plan_Command<"copy", (ins
      Plan_Read<Plan_ViewAttr>:$source, Plan_Write<Plan_ViewAttr>:$target),
      "custom<View>($source) `->` custom<View>($target)"> {
  let summary = "Copies elements between views of one shape and element type, perhaps in different spaces";
}
def Plan_FillOp : Plan_Command<"fill", (ins
      TypedAttrInterface:$value, Plan_Write<Plan_ViewAttr>:$target),
      "custom<View>($target) `with` custom<Value>($value, ref($target))"> {
  let summary = "Sets every element to a value";
  let hasVerifier = 1;
}
def Plan_PackOp : Plan_Command<"pack", (ins
      Plan_Read<Plan_ViewAttr>:$source, Plan_Write<Plan_ViewAttr>:$target, DictionaryAttr:$form),
      "custom<View>($source) `->` custom<View>($target) `form` custom<Form>($form)"> {
  let summary = "Rewrites weights into the layout that a gemm's form wants";
  let description = "The target is an opaque range of bytes (a view of i8); `form` is that of the gemms that read it.";
}
def Plan_CoordinateOp : Plan_Command<"coordinate", (ins
      StrArrayAttr:$axes, Plan_Write<Plan_ViewAttr>:$target),
      "custom<Names>($axes) `->` custom<View>($target)"> {
  let summary = "Writes this rank's index over axes (major to minor) as an i64 scalar";
}
def Plan_ReadOp : Plan_Command<"read", (ins
      Plan_SourceAttr:$source, StrAttr:$name, Plan_PartAttr:$part,
      Plan_Write<Plan_ViewAttr>:$target, UnitAttr:$each_micro_batch),
      "`` $source $name (`each_micro_batch` $each_micro_batch^)? `->` "
      # "custom<ViewOf>($target, $part)"> {
  let summary = "Reads this rank's part of an input or of a state's first value";
  let description = [{
    The part of the run's micro-batch; with `each_micro_batch` the parts of all
    of the step, one after another: the view's first dimension counts them, its
    others are the part's. So one command reads what lies interleaved with other
    ranks' parts where these split the inside of a micro-batch.

    ```mlir
    plan.read input x -> @x[4x64xf32] of [32/mb/dp, 64]
    plan.read input x each_micro_batch -> @x.read[4x4x64xf32] of [32/mb/dp, 64]
    ```
  }];
  let hasVerifier = 1;
}
def Plan_WriteOp : Plan_Command<"write", (ins
      Plan_SourceAttr:$destination, StrAttr:$name, Plan_PartAttr:$part,
      Plan_Read<Plan_ViewAttr>:$view, UnitAttr:$each_micro_batch),
      "custom<ViewOf>($view, $part) `->` `` $destination $name "
      # "(`each_micro_batch` $each_micro_batch^)?"> {
  let summary = "Writes this rank's part of an output";
  let description = "`each_micro_batch` says of the view what it says in `plan.read`.";
  let hasVerifier = 1;
}

def Plan_RecordOp : Plan_Command<"record", (ins
      StrAttr:$event),
      "$event"> {
  let summary = "Marks a point of a stream that others can wait for";
}
def Plan_WaitOp : Plan_Command<"wait", (ins
      StrAttr:$event, OptionalAttr<FlatSymbolRefAttr>:$body),
      "$event (`of` $body^)?"> {
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
}

#endif
