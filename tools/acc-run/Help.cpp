// The text of --help.

#include "Help.h"

namespace accel::rt {

const char *const kHelp =
    R"(usage: acc-run MODEL.accx [options]

Runs an executable made by acc-opt. Its ranks are processes on this machine; how
many there are, the mesh in the file says. The file contains code that is run:
take it only from where you would take a program.

  -n N            number of ranks; an error if it is not the mesh's
  --comm C        host (default): this process starts all ranks, on this machine.
                  mpi: mpirun or srun starts a process for each rank, on as many
                  machines as it reaches (docs/Machines.md)
  --device NAME   cpu or null (default: what the file was compiled for). null
                  runs any file: every rank goes through all of its commands,
                  waits and meetings, and executes, reads and writes nothing. It
                  prints how many commands of each kind a call of an entry is,
                  the bytes of their views and their arithmetic, as acc-opt
                  --report=commands predicts them (docs/Reports.md). There are
                  no losses; weights need not be there; options that read, save
                  or compute something are errors
  --inputs DIR    folder of inputs: NAME.npy ('/' in a name written %2F) or
                  input_K.pb as in ONNX test sets (default: .)
  --outputs DIR   folder that gets NAME.npy for every output, whole or not at all
  --entry NAME    what is called: step (training; the default if the file has
                  it), eval (its loss on --inputs or over all rows of --data,
                  without dropout) or forward (the model's outputs)
  --weights PATH  begin with these parameters and buffers instead of those that
                  the model was exported with: F.safetensors (--save-weights'
                  or the model's own), a checkpoint, or a folder of checkpoints,
                  whose newest is taken
  --repeat K      call eval or forward K times (default: 1)
  --steps N       train for N steps (default: 1); inputs are the global batch,
                  the same in each step; outputs are those of the last one
  --epochs N      in the place of --steps: read the data N times
  --data INPUT=FILE,INPUT=FILE
                  samples to train on instead: .npy, of the input's shape with
                  any number of samples in the place of its batch, and of its
                  type, another width of whole numbers, or a narrower one of
                  floating point; or F.safetensors, of which it is the tensor of
                  the input's name, or F.safetensors:TENSOR. Inputs without a
                  file are read from --inputs, which must have no file of the
                  others. Files are read as steps need them, and may be larger
                  than memory; one that is cut short or written to meanwhile is
                  an error, before which a checkpoint is saved, if there are any
  --data F.safetensors
                  the tensors of that file that inputs are called as
  --data FILE     one file of tokens: .npy, [samples, length] or one stream, raw
                  integers, or a dataset of Megatron-LM (PREFIX, of PREFIX.bin
                  and PREFIX.idx). Inputs of integers [batch, length] get
                  tokens, those called *label* or *target* the same tokens,
                  those called *mask* ones
  --data 'WEIGHT FILE WEIGHT FILE'
                  a blend of such files, as Megatron-LM's --data-path: the next
                  sample is of the file that has given the fewest so far beside
                  its weight (weights are divided by their sum), and of each
                  file in an order of its own, epoch after epoch
  --data-split A,B,C
                  of a dataset of Megatron-LM the shares of its sequences, in
                  their order, that --data reads to train and, second,
                  --eval-data (or --data of the entry eval); the third is left
                  for a test
  --data-order O  shuffled (default): every epoch has an order of its own, which
                  ranks and micro-batches do not change; file: as samples lie in
                  the data
  --last-batch L  where an epoch ends in the middle of a batch: next (default),
                  the next one begins there; drop, the samples of that batch are
                  left out (PyTorch's drop_last=True); keep, they make a smaller
                  batch (drop_last=False): programs of acc-opt --row-mask, or
                  of --loss cross_entropy:…, whose labels of the other rows do
                  not count
  --data-type T   of a raw file: uint16 (default), int32, uint32 or int64
  --data-labels L same (default): the model shifts its labels itself; next: a
                  label is the token after its own; -100 where none is: at the
                  end of a stream, and of each row of a .npy [samples, length]
  --eval-every K  after every step whose number K divides, call eval on what the
                  two options below name, and print its eval_loss
  --eval-inputs DIR
                  folder of its inputs, as --inputs
  --eval-data DATA
                  its samples, as --data, in the order of the file: eval_loss is
                  that of all rows at once, also of those that make no whole
                  batch; labels that are ignored do not count. Where the loss
                  does not tell rows apart, a line on stderr says how many are
                  left out
  --eval-batches N
                  an evaluation on data ends after N batches
  --early-stopping-patience N
                  end training after N evaluations in a row whose eval_loss is
                  not better than the best one before, with what the last step
                  would have written; exit status 0, and a line on stderr says so
  --early-stopping-threshold X
                  better by more than X (default: 0)
  --seed S        of the order of the data (default: the one compiled in)
  --save-weights F.safetensors
                  after the last step, parameters and buffers under their own
                  names and all aliases, whole or not at all
  --save-dtype T  bf16, fp16 or fp32: with --save-weights, all that has floating
                  point in that type, rounded once (default: as it is trained).
                  --weights reads such a file again
  --averages      with --save-weights: of each trained parameter its average,
                  which --set ema.decay=D of acc-opt keeps
  --checkpoint DIR
                  save all that training needs to go on into DIR/step-NNNNNNNN
                  after the last step (docs/Checkpoints.md): each is there whole
                  or not at all, none is written over, and none is removed
                  without --keep
                  After Ctrl-C, SIGTERM or SIGHUP, or where steps cannot be
                  written to stdout any more, the step at hand is finished and
                  saved; a second signal, half a second later or after that,
                  ends the run at once. Signals that are ignored when acc-run
                  starts (nohup, &) stay ignored
  --save-every K  and after every step whose number K divides. Steps wait until
                  the states are copied; the copy, which takes as much memory
                  again, is written meanwhile
  --checkpoint-sync
                  write them from where they lie, without that memory, and let
                  steps wait
  --keep N        only the newest N checkpoints of DIR: the oldest is removed
                  once another is there whole
  --keep-best METRIC
                  beside them the checkpoint with the best value of METRIC, of
                  those that --eval-every computes (eval_loss: the least); each
                  new best value is followed by a checkpoint. DIR/best is a link
                  to it, and the value is in every checkpoint.json
  --resume DIR    go on from a checkpoint, or from the newest in DIR, whatever
                  layout saved it; --steps N counts the steps before it, too.
                  The data go on where they were
  --new-data      with --resume: --data begin at their first sample instead, and
                  may be others than the checkpoint's
  --original-weights F.safetensors
                  where --save-weights finds parameters that the exporter folded
                  away; nothing else is read from it
  --metrics FILE  write a line of JSON for each step, of each tensor that it
                  rounds to float16 or 8 bits: its largest magnitude, the
                  smallest and the largest of its scales, how many elements
                  overflow, and how many vanish. For files that were compiled
                  with acc-opt --metrics=precision. A run with --resume goes on
                  in the file
  --trace FILE    write what each stream of each rank did when, as JSON for
                  Perfetto (ui.perfetto.dev) and chrome://tracing, after the run
                  and however it ends: the first million commands and waits of
                  each rank, in whole calls (docs/Reports.md)
  --threads T     threads of each rank (default: cores / ranks, at least 1)
  --poison        overwrite bytes whose live range has ended (also ACCEL_POISON=1,
                  of which device null takes no notice: it has none)
  --serve FD      train for the program that has started acc-run and listens at
                  the other end of the socket FD: it says when a step is made, on
                  which batch, and what is saved (docs/Embedding.md). What would
                  be printed goes there. Libraries say this, people do not
  --hang-after S  give up after S seconds without progress (default: 60)
  --json          every line on stdout is one JSON object: one for each training
                  step, then one for the run. What is without it the text on
                  stdout comes on stderr, if that is a terminal
  --log FILE      add a line for each training step to FILE, as --json writes them
                  (JSON Lines), or of FILE.csv as values with commas. With
                  --resume the log is gone on with: what it has of steps that
                  come again is replaced. Without, it must not be there
  --tensorboard DIR
                  write the losses, norms and rates of steps to an event file
                  for TensorBoard in DIR; there, too, --resume replaces
  --log-every N   tell of the steps whose number N divides, of the last one, and
                  of those that an evaluation follows; times are means of the
                  steps since
  --version       acc's version and commit, and the formats of files
  -h, --help      this text

The text is for people: on a terminal its line rewrites itself; elsewhere, where
TERM is dumb, and under mpirun a line comes once a second, and for the first and
the last step. Its times are the mean since the line before. Exit status: 0, 1 after an
error (a reader of stdout that has gone is one), 129 after SIGHUP, 130 after
SIGINT and 143 after SIGTERM.
)";

} // namespace accel::rt
