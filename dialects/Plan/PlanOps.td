// The ops of plan: the program and its parts. Commands have a file of their own.

#ifndef ACCEL_PLAN_OPS_TD
#define ACCEL_PLAN_OPS_TD

include "dialects/Plan/PlanCommands.td"
include "mlir/IR/SymbolInterfaces.td"

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
  let arguments = (ins Plan_SpaceAttr:$space, I64Attr:$bytes,
      DefaultValuedAttr<I64Attr, "64">:$alignment, DefaultValuedAttr<I64Attr, "0">:$reserve);
  let assemblyFormat = "`` $space $bytes `bytes` (`alignment` $alignment^)? (`reserve` $reserve^)? attr-dict";
}

def Plan_BufferOp : Plan_Op<"buffer", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "Bytes at a fixed offset of an arena";
  let description = [{
    `slots` copies, `slot_stride` bytes apart; `bytes` is the size of one. A run
    on micro-batch m uses copy m mod `slots`: as many micro-batches as that may
    be in flight, and no run has to say which copy is its own.
    `offset` is -1, and not written, until allocation; nor are one slot, and a
    stride that leaves nothing between slots. Two buffers may overlap only if every access
    of one happens before every access of the other, or if `alias_of` says so.
    `value` is what a constant holds after load; `source` names the state of a
    state buffer, `part` the piece of it.

    ```mlir
    plan.buffer @wte : state device at 0, 12288 bytes source @wte.weight part [96, 32]
    plan.buffer @x : input device at 12288, 256 bytes slots 2 part [8/mb/dp, 32]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_RoleAttr:$role, Plan_SpaceAttr:$space,
      DefaultValuedAttr<I64Attr, "-1">:$offset, I64Attr:$bytes,
      DefaultValuedAttr<I64Attr, "1">:$slots, I64Attr:$slot_stride,
      OptionalAttr<FlatSymbolRefAttr>:$alias_of, OptionalAttr<ElementsAttr>:$value,
      OptionalAttr<FlatSymbolRefAttr>:$source, OptionalAttr<Plan_PartAttr>:$part);
  let assemblyFormat = [{
    $sym_name `:` `` $role `` $space (`at` $offset^ `,`)? $bytes `bytes` (`slots` $slots^)?
    `` custom<SlotStride>($slot_stride, ref($bytes)) (`alias` $alias_of^)?
    (`source` $source^)? (`part` custom<Part>($part)^)? (`value` $value^)? attr-dict
  }];
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
        plan.run @read_inputs micro_batch turn + 1
      }
      plan.segment cpu capturable {
        plan.run @forward micro_batch turn
        plan.run @backward micro_batch turn
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
  let assemblyFormat = "$task `` custom<MicroBatch>($offset, $turn) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How often it runs in a call: once for each turn of the loop around it.
    int64_t getTrips();
  }];
}

#endif
