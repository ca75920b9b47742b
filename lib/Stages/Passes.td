// The passes that cut a model into the chunks of a pipeline.

#ifndef ACCEL_STAGES_PASSES_TD
#define ACCEL_STAGES_PASSES_TD

include "mlir/Pass/PassBase.td"

def CutForwardPass : Pass<"nn-cut-forward", "::mlir::ModuleOp"> {
  let summary = "Cuts a model into chunks of equal work at its narrowest places";
  let description = [{
    Runs on the forward entry, before differentiation, so that the backward is
    cut where the forward is. What depends on inputs and on states is the model's
    spine, in the order of the text; it is divided into `chunks` stretches. The
    longest of them is as short as can be: its arithmetic, or the bytes that it
    moves where that takes longer, and those that it sends and receives; of the
    forward and, with `trained`, of the backward, each op's of which is built to be
    measured and thrown away; what `recompute` says of layers, of modules by pattern and
    of what the model's code checkpoints counts twice, and is not kept. Of divisions whose longest stretch differs by less
    than 1 %, that is taken whose largest stretch has the fewest bytes, of states
    (`state-copies`) and of what the backward reads (`copies`). The updates of
    parameters are no part of the balance: they come after the norm of all
    gradients, for which every stage waits. Where a spine of more than 1,024 ops
    may be cut is where no fewer bytes cross right before or behind.

    With `cut`, the chunks but the first begin where it says, before the first op
    of the spine that belongs to the ONNX node of that name; or, if no node is called
    so, to the module of that path. An op that several nodes have become belongs to
    all of them.

    A state belongs to the first chunk that reads it, and what is made of states
    alone, to the first that reads that. Each value that a later chunk reads gets
    one `nn.cut`, from the chunk that makes it straight to the one that reads it;
    what is a wider form of something (a broadcast, a cast) is made again behind
    the cut of that. What depends on inputs alone is not cut.

    An error if the model has fewer places to cut it than are asked for; or if the
    names are not one less than the chunks, name nothing that is on the spine, are
    not in its order, or leave a chunk empty.

    ```mlir
    %1 = nn.matmul %x, %w1 : …
    %2 = nn.relu %1 : …
    %3 = nn.matmul %2, %w2 : …
    // becomes, with chunks=2
    %1 = nn.matmul %x, %w1 : …
    %2 = nn.relu %1 : …
    %c = nn.cut %2 from 0 to 1 : …
    %3 = nn.matmul %c, %w2 : …
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "How many chunks the pipeline has">,
    ListOption<"cuts", "cut", "std::string", "Nodes or modules before which chunks begin; none: by work">,
    Option<"recompute", "recompute", "std::string", "\"none\"", "What the backward computes again (--recompute)">,
    Option<"trained", "trained", "bool", "false", "Whether a step is made of it: of parameters that are not frozen">,
    ListOption<"copies", "copies", "double", "Of each chunk, how much a rank has at once of what the whole batch makes it keep; none: all of it">,
    Option<"stateCopies", "state-copies", "double", "4", "Bytes of a rank for each byte of a parameter that is trained">,
  ];
}

def CutStepPass : Pass<"nn-cut-step", "::mlir::ModuleOp"> {
  let summary = "Cuts what the step itself takes from chunk to chunk";
  let description = [{
    Runs at the end of `train`, on entries of a model that is cut. The norm of all
    gradients, the learning rate, the number of the step and whether the step is
    skipped are read by chunks that do not make them. An op that reads values of
    several chunks belongs to the one of its largest operand, of scalars to the
    lowest; the others are cut. What is made of scalars alone (a broadcast, a
    mask of dropout) is made again behind the cut of those, and what is made of the
    number of the step alone goes to where a scalar of the data is. Nothing is cut
    there and back again: a chunk that has made it has it.

    A cut of what is made of inputs and constants alone (the gradient of a sum, or
    what dropout leaves of it) goes: each chunk makes it for itself.

    The numbers by which a step reports (`accel.reports`) are taken to chunk 0.

    ```mlir
    %n = nn.sqrt %0 : tensor<f32>
    %2 = nn.broadcast %n : (tensor<f32>) -> tensor<8x4xf32>
    %3 = nn.mul %g, %2 : tensor<8x4xf32>
    // becomes, where %g is of chunk 1
    %n = nn.sqrt %0 : tensor<f32>
    %c = nn.cut %n from 0 to 1 : tensor<f32>
    %2 = nn.broadcast %c : (tensor<f32>) -> tensor<8x4xf32>
    %3 = nn.mul %g, %2 : tensor<8x4xf32>
    ```
  }];
}

#endif
