// The passes from `local` to `plan`, in the order in which the phase runs them.

#ifndef ACCEL_PLAN_PASSES_TD
#define ACCEL_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def NarrowWiresPass : Pass<"local-narrow-wires", "::mlir::ModuleOp"> {
  let summary = "Casts what ranks exchange to its type on the wire";
  let description = [{
    What a collective's `wire` says, as ops: its operand is cast to that type, the collective
    works on it, and its result is cast back. The casts become part of the kernels
    around them, and the buffers that ranks exchange hold the narrow type: no
    collective of a plan has a wire type of its own.

    ```mlir
    %s = dist.all_reduce sum %dw over @mesh {dp_replicate} wire bf16 : tensor<4x4xf32>
    // becomes
    %0 = nn.cast %dw : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %1 = dist.all_reduce sum %0 over @mesh {dp_replicate} : tensor<4x4xbf16>
    %s = nn.cast %1 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
    ```
  }];
  let dependentDialects = ["::accel::dist::DistDialect", "::accel::nn::NNDialect"];
}

def FormKernelsPass : Pass<"local-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Outlines fused groups of ops as kernels";
  let description = [{
    Everything in a task (`dist.task`) or entry that implements KernelSource is grouped
    into kernels, private functions of nn ops with the attributes `plan.kernel`
    and `plan.rows`: each result is cut, in row-major order, into that many rows,
    and the product of its first dimensions is that number. A kernel's arguments
    are whole tensors without gaps; ops that only move elements are part of the
    kernels that read them. Ops without the interface stay; so do ops that make
    views of what they read (reshape, transpose, slice), and what the product before
    them does along with it (an epilogue that the target has: adding a bias, say). How
    large a kernel may grow, the target says. Each op keeps its location.

    A group grows from its consumers to its producers while every reduction
    stays within a row, no expensive element is computed twice, and no cycle
    between commands appears. What is cheap and made of one tensor in memory (a
    gradient's square) each group computes for itself. A call stands where the last op
    of the group stood, and what reads it before that comes right behind it.

    ```mlir
    %h = nn.add %x, %r : …
    %y = nn.layer_norm %h, %s, %b dim 2 epsilon 1.0e-5 : …
    // becomes
    %k:2 = call @kernel_0(%x, %r, %s, %b) : (…) -> (…)
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::accel::plan::PlanDialect"];
  let options = [Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">];
}

def LowerToPlanPass : Pass<"local-lower-to-plan", "::mlir::ModuleOp"> {
  let summary = "Turns the tasks of entries into programs of commands over buffers";
  let description = [{
    Matrix products become `plan.gemm` (with the bias that is added to them),
    attention `plan.attention`, calls of kernels `plan.kernel`. Reshapes,
    transposes, slices and broadcasts are strided views of what they read; where
    no strides can describe them or a command cannot read them so, `plan.copy`
    makes them whole. A command writes its result in the order in which its only
    reader wants it. Buffers have no offset yet, products no form.

    Each stage becomes a program, and each of its tasks a body. States are read by the entry `load`; the entry
    `main` (`step`, if states are written) runs the bodies as the schedule says,
    with `read_inputs` before those that need inputs of another micro-batch and
    `write_outputs` after those that give outputs; a loop of the schedule is a
    loop of the entry, whose turns read their inputs anew. A task that another one
    gives values to finds the inputs that this one has read. New values of states are
    copied to the states' buffers at the end of a body (`plan-reuse-buffers`
    takes the copies out where it can). What other ranks access lies where the
    target wants it. What the target needs beside (scratch, packed weights)
    `plan-choose-forms` adds.

    Refuses ops that no command executes, two entries of one kind, and tasks that
    pass something on and do not run on their micro-batches in order.

    ```mlir
    %y = nn.matmul %x, %w {transpose_rhs} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    // becomes, in the body @forward
    plan.gemm @x[4x8xf32], @w[8x16xf32 strides [1, 8]] -> @y[4x16xf32]
    ```
    and with an edge that takes %y to stage 1
    ```mlir
    plan.gemm @x[4x8xf32], @w[8x16xf32 strides [1, 8]] -> @y[4x16xf32]
    plan.record "forward_0_to_forward_1"
    // and the body @send_forward_0_to_forward_1
    plan.wait "forward_0_to_forward_1" of @forward on forward_0_to_forward_1
    plan.send @y[4x16xf32] to pp + 1 tag 0 on forward_0_to_forward_1
    plan.record "sent" on forward_0_to_forward_1
    plan.wait "sent"
    // and, in the program of stage 1, the body @receive_forward_0_to_forward_1
    plan.record "free"
    plan.wait "free" on forward_0_to_forward_1
    plan.recv @received[4x16xf32] from pp - 1 tag 0 on forward_0_to_forward_1
    plan.record "received" on forward_0_to_forward_1
    // whose body @forward begins with
    plan.wait "received" of @receive_forward_0_to_forward_1
    ```
  }];
  let dependentDialects = ["::accel::plan::PlanDialect"];
  let options = [Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">,
                 ListOption<"stages", "stages", "int64_t", "The stages that get a program; without it all">];
}

def MarkOffloadedPass : Pass<"plan-mark-offloaded", "::mlir::ModuleOp"> {
  let summary = "Says which states the host or a disk keeps";
  let description = [{
    `optimizer` and `parameters` say where states lie: `none` (where they are), or the space,
    `host` or `nvme` (a file). With `optimizer` the states that the optimizer has of each parameter (moments,
    averages), with `parameters` the parameters, frozen ones too. Of a `ratio` below 1 the
    optimizer's states in the order of the plan, until they have that part of their bytes: no
    fewer, and no more than one state more. Of parameters in a file, in that order, those
    stay on the host that fit into `most-on-host` numbers. `plan-offload-states` obeys, when commands are settled. Runs before forms are chosen: products do not pack what is
    marked, since packed weights stay on the device.

    ```mlir
    plan.buffer @m : state device 64 bytes source @m
    // becomes
    plan.buffer @m : state device 64 bytes source @m {plan.offloaded = #plan<space host>}
    ```
  }];
  let dependentDialects = ["::accel::plan::PlanDialect"];
  let options = [Option<"optimizer", "optimizer", "std::string", "\"none\"", "Where the optimizer's states lie: none, host, nvme, or auto, as it was decided">,
                 Option<"parameters", "parameters", "std::string", "\"none\"", "Where the parameters lie: none, host, nvme, or auto, as it was decided">,
                 Option<"mostOnHost", "most-on-host", "int64_t", "0", "Numbers of parameters that lie on the host before any lies in a file">,
                 Option<"ratio", "ratio", "double", "1.0", "The part of the optimizer's states that does, in bytes, at most 1">];
}

def ChooseFormsPass : Pass<"plan-choose-forms", "::mlir::ModuleOp"> {
  let summary = "Has the target write down how each command is computed";
  let description = [{
    Runs on a plan without offsets. Each command of which the target has several
    forms gets one, with the buffers that it takes: scratch, weights that are
    packed once, by `plan.pack` in the entry `load`. What a target chooses by, its
    own folder says (`lib/Target/CPU/PlanParts.h`).

    ```mlir
    plan.gemm @x, @w -> @y
    // becomes, for a CPU
    plan.pack @w -> @w.packed form {…}            // in the body of `load`
    plan.gemm @x, @w packed @w.packed -> @y scratch @scratch form {chunk_rows = 256, layout = […], packed}
    ```
    A kernel over rows that the stack of a thread has no room for gets scratch to
    keep them in, rather than computing them again wherever they are read.

    ```mlir
    plan.kernel @softmax(@x[512x50257xf32]) -> @y[512x50257xf32] rows 512 by 5
    // becomes, for a CPU with two threads
    plan.kernel @softmax(@x[512x50257xf32]) -> @y[512x50257xf32] rows 512 by 5 scratch @scratch[402176xi8] form {thread_scratch = 201088}
    ```
  }];
  let options = [Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">,
                 Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">];
}

def ReserveForLibrariesPass : Pass<"plan-reserve-for-libraries", "::mlir::ModuleOp"> {
  let summary = "Says what a rank holds beside its arenas";
  let description = [{
    Runs on an allocated plan. The device arena's `reserve` becomes what the target
    says that process and libraries will hold for what the plan makes them prepare.
    `acc-run` compares its resident set with it and warns.

    ```mlir
    plan.arena device 512 bytes
    // becomes
    plan.arena device 512 bytes reserve 9576448
    ```
  }];
  let options = [Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">,
                 Option<"threads", "threads", "int64_t", "0", "Threads per rank; 0: the machine's, shared by the ranks">];
}

def OffloadActivationsPass : Pass<"plan-offload-activations", "::mlir::ModuleOp"> {
  let summary = "Keeps activations in the host's memory or in a file from the forward to the backward";
  let description = [{
    A value that a body of the forward makes of a batch, and bodies of the backward read, is
    copied to the arena `host`, or `nvme`, behind the command that makes it, and each of these bodies
    fetches it to bytes of its own ahead of the first command that reads it. The stream
    `activations` copies beside the computation. By the table of the target it is found when
    a copy away has ended: in front of the next command the computation makes sure of it, so
    that others have the bytes from there; and when a copy back has to begin to be there in
    time. Copies are allowed twice the time of the table. Where they take longer than the
    computation, it waits for them, so that those of eight commands are under way at most, and
    the body says for what part of its time (`plan.copies_wait`).

    A value stays on the device if it would not be away for as long as it is under way (what
    the backward needs at once), if it is smaller than a hundredth of the largest, if it
    is made of weights alone, which every micro-batch has in common, if messages keep as many
    copies of it as the backward does, or if anything but messages, a body of the forward and
    bodies of the backward touches it.

    Runs while buffers hold one value each, and before `plan-keep-in-flight`: of micro-batches
    in flight each has its own place on the host, while the device has one for all.

    ```mlir
    plan.body @forward engine cpu {
      plan.kernel @k(@x) -> @a
      …
    plan.body @backward engine cpu {
      plan.kernel @g(@d) -> @e
      plan.kernel @h(@e, @a) -> @f
    // becomes
    plan.body @forward engine cpu {
      plan.record "activations_begin"
      plan.wait "activations_begin" on activations
      plan.kernel @k(@x) -> @a
      plan.record "activations_done_0"
      plan.wait "activations_done_0" on activations
      plan.copy @a -> @a.host on activations
      …
      plan.record "activations_end" on activations
      plan.wait "activations_end"
    plan.body @backward engine cpu {
      plan.record "activations_begin"
      plan.wait "activations_begin" on activations
      plan.copy @a.host -> @a.fetched on activations
      plan.record "activations_there_0" on activations
      plan.kernel @g(@d) -> @e
      plan.wait "activations_there_0"
      plan.kernel @h(@e, @a.fetched) -> @f
    ```
  }];
  let options = [Option<"space", "space", "std::string", "\"none\"", "Where activations lie: none (the device), host, nvme, or auto, as it was decided">];
}

def KeepInFlightPass : Pass<"plan-keep-in-flight", "::mlir::ModuleOp"> {
  let summary = "Gives buffers as many copies as micro-batches use them at once";
  let description = [{
    What one body leaves to another of the same micro-batch (activations for the
    backward, inputs that both read) must outlive the other micro-batches that
    the entry begins in between: as many copies as there are from the oldest one
    that still reads its own to the newest that has written one. A run on
    micro-batch m uses copy m mod `slots`. What a single body uses, and what a body
    writes that runs once, has one copy. Who runs once and reads what is made for each
    micro-batch, of weights alone, reads the first copy.

    Runs before anything asks when bytes are used. Does nothing where a
    micro-batch ends before the next begins.

    ```mlir
    plan.buffer @act : activation device 96 bytes
    plan.loop 7 {   // forward t + 1, then backward t
      plan.segment cpu capturable {
        plan.run @forward micro_batch turn + 1
        plan.run @backward micro_batch turn
    // becomes
    plan.buffer @act : activation device 96 bytes slots 2
    ```
  }];
}

def BucketCollectivesPass : Pass<"plan-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "Joins collectives that can wait for each other into one";
  let description = [{
    all_reduces, reduce_scatters and all_gathers of one body that are alike become
    one command of several views, at the place of the last of them: each waits until
    a bucket of `bytes` is full, or until a command reads the result (or writes the
    terms). A command that does nothing but add a scattered sum to a state waits with
    it. A backward that ends with 148 gradients meets the other ranks a few times
    instead. The gathers of one unit's weights become one however large. Gradients that
    are scattered by unit wait for none of another unit: when the last is there, they go.

    ```mlir
    plan.collective all_reduce over dp (@a) -> @a
    plan.kernel @k(@x) -> @b
    plan.collective all_reduce over dp (@b) -> @b
    // becomes
    plan.kernel @k(@x) -> @b
    plan.collective all_reduce over dp (@a, @b) -> @a, @b
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "25 << 20", "Size of a bucket (PyTorch's DDP: 25 MiB)">];
}

def OverlapCollectivesPass : Pass<"plan-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Runs collectives beside the computation, gathers one unit ahead";
  let description = [{
    The collectives of a body, if there is anything that one of them could go on
    beside, move to the stream `comm`, all of them: ranks meet in one order. The
    stream waits for what a collective sends, and the computation for what it
    brings, in front of the first command that needs it. A unit's weights are
    gathered while the unit before is computed, and not earlier, with what rounds them
    in front: two units are in memory at most. Of gradients too: before the first of the
    unit after the next is made, the computation waits until a unit's are scattered.

    ```mlir
    plan.collective all_gather over dp (@w0) -> @u0 {plan.unit = "h.0"}
    plan.kernel @k(@u0) -> @x
    plan.collective all_gather over dp (@w1) -> @u1 {plan.unit = "h.1"}
    plan.kernel @k(@u1) -> @y
    // becomes
    plan.record "collective_0"
    plan.wait "collective_0" on comm
    plan.collective all_gather over dp (@w0) -> @u0 on comm {plan.unit = "h.0"}
    plan.record "collective_0_done" on comm
    plan.record "collective_1"
    plan.wait "collective_1" on comm
    plan.collective all_gather over dp (@w1) -> @u1 on comm {plan.unit = "h.1"}
    plan.record "collective_1_done" on comm
    plan.wait "collective_0_done"
    plan.kernel @k(@u0) -> @x
    plan.wait "collective_1_done"
    plan.kernel @k(@u1) -> @y
    ```
  }];
}

def ReuseBuffersPass : Pass<"plan-reuse-buffers", "::mlir::ModuleOp"> {
  let summary = "Lets kernels write where they read, and states be written in place";
  let description = [{
    A result of a kernel takes the buffer of an activation that the kernel reads,
    as a whole and element by element, if no other command reads it afterwards.
    Rows may be reduced before (softmax, layer norm), since that reads a row
    before any of it is written; kernels that look at other places of the row, or
    whose results have loops of their own, are left alone. In a loop over
    micro-batches each looks at its own, if it begins by writing the buffer.

    Of a buffer with copies for the micro-batches in flight a run has its own, and
    writes to that. What takes the place of another lives as long as both: not
    until another micro-batch begins to use the copy.

    Where the result of a kernel or a collective is copied into a state at the end
    of a body, it is written to the state's buffer itself, unless the old value is
    still read. A buffer that takes the place of one in space `shared` moves there.

    ```mlir
    plan.kernel @gelu(#plan.view<@a …>) -> #plan.view<@b …> rows 8
    // becomes, everywhere, and @b is gone
    plan.kernel @gelu(#plan.view<@a …>) -> #plan.view<@a …> rows 8
    ```
  }];
}

def TileUpdatesPass : Pass<"plan-tile-updates", "::mlir::ModuleOp"> {
  let summary = "Cuts kernels that update large offloaded states into tiles of rows";
  let description = [{
    A kernel that touches more than `tile` elements of a state that is marked
    (`plan-mark-offloaded`) becomes kernels on parts of its views, one after another, each of at most so many
    elements: as even as can be, in whole rows, and of what lies in a file (`nvme`) in whole sectors,
    where a tile has any. `plan-offload-states` stages what such a kernel touches of the states that it names (`plan.tile`)
    alone. All compute the same elements from the same elements, so the bits are the same. Kernels behind each other
    that touch the same tiles take turns, so that each tile is staged once for all of them.

    A kernel is cut if it is element by element: the results have as many elements as the
    state, and so have all tensors that it reads, but for single numbers (the step's, the
    gradients' norm), which it may repeat. Where anything is summed over the state, or over its rows or columns (Adafactor's statistics,
    norms), where elements of a view lie apart, and where it writes elsewhere in what it
    reads, it stays one, and says why and of which states: `plan.staged_whole`, which `--report=commands` prints. What
    such a kernel, or any other command of the body, needs all of is no other's tile, and it says so as well.

    Runs when kernels write where they read, so that a tile is staged once.

    ```mlir
    func.func private @update(%g: tensor<4x8xf32>, %m: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel, plan.rows = 4 : i64}
    plan.kernel @update(@g[4x8xf32], @m[4x8xf32]) -> @m[4x8xf32] rows 4
    // becomes, with tiles of 16
    func.func private @update_tile(%g: tensor<2x8xf32>, %m: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {plan.kernel, plan.rows = 2 : i64}
    plan.kernel @update_tile(@g[2x8xf32], @m[2x8xf32]) -> @m[2x8xf32] rows 2 {plan.tile = [@m]}
    plan.kernel @update_tile(@g[2x8xf32 at 64], @m[2x8xf32 at 64]) -> @m[2x8xf32 at 64] rows 2 {plan.tile = [@m]}
    ```
  }];
  let options = [Option<"tile", "tile", "int64_t", "4194304", "Elements of an offloaded state that are updated at once; 0: all">,
                 Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">];
}

def OffloadStatesPass : Pass<"plan-offload-states", "::mlir::ModuleOp"> {
  let summary = "Keeps states in the host's memory or in a file, and fetches each where a command needs it";
  let description = [{
    The states that are marked (`plan-mark-offloaded`) lie in the arena of that space, `host` or
    `nvme`: of each rank what it has of them. A copy to or from `nvme` is what reads or writes the file. A command that touches one finds it in staged bytes, in the space where the
    state was (with ZeRO-3 that from which ranks gather). The stream `offload` copies it
    there, and back if it was written, beside the computation: all of it, or for a kernel that is cut to a tile (`plan-tile-updates`) the tile. It works ahead as far as there
    is room: for the states (the tiles) of two commands, this one's and the next one's, or for
    `buffer-count` states, or as many as one command needs. The one that is needed again last
    makes room, when what touches it is done and it has been put back. A copy that replaces
    all of a state goes straight to the host, on that stream.

    All that touches the host's bytes in a body is on that one stream (of a message on the
    message's own, since it goes whatever the computation has come to), and the body ends when
    it has ended, so that nothing finds an old value.

    Runs when kernels write where they read, since a state that is updated in place is staged
    once, and before allocation, which lets staged states have the bytes of what was there
    before the body.

    ```mlir
    plan.buffer @m : state device 64 bytes source @m {plan.offloaded = #plan<space host>}
    plan.kernel @update(@g, @m) -> @m
    // becomes
    plan.buffer @m : state host 64 bytes source @m
    plan.buffer @m.staged : activation device 64 bytes
    plan.record "offload_begin"
    plan.wait "offload_begin" on offload
    plan.copy @m -> @m.staged on offload
    plan.record "offload_there_0" on offload
    plan.wait "offload_there_0"
    plan.kernel @update(@g, @m.staged) -> @m.staged
    plan.record "offload_done_0"
    plan.wait "offload_done_0" on offload
    plan.copy @m.staged -> @m on offload
    plan.record "offload_end" on offload
    plan.wait "offload_end"
    ```
  }];
  let options = [Option<"bufferCount", "buffer-count", "int64_t", "0", "Staged states that the device holds at once, but for what one command needs; 0: those of two commands">];
}

def AllocateBuffersPass : Pass<"plan-allocate-buffers", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer an offset and every arena its bytes";
  let description = [{
    States, packed weights, constants and what outlives an entry lie side by side;
    the others share bytes where all accesses of one happen before all accesses of
    the other, under every order that streams and events allow (the end of a
    segment orders nothing), in every turn of a loop. Copies of a buffer are aligned as
    buffers are. Arenas get as many bytes as that needs. The command after which a shared buffer is
    dead says so (`plan.releases`), for poison mode.

    Runs when all buffers and the order of commands are final. Refuses a wait that
    can never end.

    ```mlir
    plan.buffer @a : activation device 256 bytes
    // becomes
    plan.arena device 512 bytes
    plan.buffer @a : activation device at 256, 256 bytes
    ```
    The arena `nvme` is a file. Its buffers begin with sectors of 4096 bytes, and it says where the
    file will lie and how it is moved:
    ```mlir
    plan.arena nvme 64 bytes alignment 4096 {plan.storage = {block_size = 1048576 : i64, path = "/local_nvme", queue_depth = 8 : i64}}
    ```
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "0", "Every offset is a multiple of this many bytes; 0: of what the target wants">,
                 Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it">,
                 Option<"storagePath", "storage-path", "std::string", "\"\"", "The folder of the file that the arena nvme is, where it is run">,
                 Option<"blockSize", "block-size", "int64_t", "1048576", "Bytes that are read from that file or written to it at once">,
                 Option<"queueDepth", "queue-depth", "int64_t", "8", "How many such blocks are under way at once">];
}

def VerifyPlanPass : Pass<"plan-verify", "::mlir::ModuleOp"> {
  let summary = "Checks a finished plan from its text alone";
  let description = [{
    Ends phase `plan`, and shares no code with the passes before it. Refuses:

    - a segment with a body of another engine than its own, or, if it is to be
      captured, with a command that the engine's target cannot capture; a stream in
      bodies of two engines;
    - a buffer outside its arena or not aligned, an arena larger or smaller than
      its buffers need, a view outside its buffer for some coordinate;
    - a wait that can never end, or that stands before the record that it is for:
      devices are told of both in the order of the run list, and one that has not
      been told of the record would not wait; two commands that touch the same bytes
      unordered (one of them writing), collectives that ranks might meet in
      different orders, bytes that other ranks
      access outside the space where the target of the body's engine lets them;
    - bytes of space `nvme`, which is a file, in anything but what reads a state's first value or
      copies all of them between there and memory; a file without a folder;
    - messages that do not come to an end: all stages are replayed together, every
      turn of every loop, with a message passing on when both its ends have come to
      it and nothing buffered. Where the target has queues for what ranks exchange,
      collectives and messages stand in them as well, in the order of the run list.
      No stream and no queue has a choice, so whether a step ends depends on no
      duration (`lib/Plan/Check/Rendezvous.h`);
    - a body that runs more than once, or that reads or writes a part of what is
      split over micro-batches, and does not run once for each;
    - a read of bytes that nothing has written, that another buffer has
      overwritten or that were released. Entries are replayed in the order that
      streams and events give: `load` once, the others twice, so that what they
      leave behind still serves them, and of each loop the first turns and the
      last, by the most copies of a buffer, with what orders them
      (`ProofTurns` in `dialects/Plan/RunList.h` says why they tell of all).

    A view counts as all bytes between its first and last element.

    ```mlir
    plan.copy <@a …> -> <@b …>     // @a lies where @b does, and is read again:
    plan.copy <@a …> -> <@c …>     // error: reads byte 0 of @a, which @b has overwritten
    ```
  }];
  let dependentDialects = ["::accel::plan::PlanDialect"];
  let options = [Option<"target", "target", "std::string", "\"\"", "What the plan is for, as --target has it; empty: as its bodies' engines are called">];
}

def PrintSummaryPass : Pass<"plan-print-summary", "::mlir::ModuleOp"> {
  let summary = "Prints bytes, commands and arithmetic of a plan to stderr";
  let description = [{
    Per rank: the bytes of each arena and of its buffers by role, the largest
    buffers, and the commands of each entry by kind with their floating-point
    operations. Leaves the module as it is; runs on an allocated plan.

    ```mlir
    plan.arena device 512 bytes
    // prints: device: 512 bytes, 0 reserved
    ```
  }];
  let options = [
    Option<"json", "json", "bool", "false", "One JSON object per program and line instead of text">,
  ];
}

#endif
