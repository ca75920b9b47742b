/* Calling an executable of acc-opt from a program: its ranks are started and
   loaded once, and then called for a step, an evaluation or a forward at a
   time, on batches that lie in memory which they share with the caller. The
   ranks are processes of acc-run, which this library starts; nothing of them
   runs in the caller. Plain C; the library is libaccel-run.so.
   docs/Embedding.md has the whole story.

   Errors. Most functions return an AccelStatus; the sentence is
   accelRunMessage(). ACCEL_REFUSED leaves the run as it was: it can be called
   again. ACCEL_ENDED means that there are no ranks any more: only what takes no
   call is left, accelRunMessage() and accelRunClose().

   Threads. A run is used by one thread at a time, any; different runs have
   nothing to do with each other. A process that the caller forks may not use a
   run, only close it, which leaves the ranks alone. The library starts no
   threads, handles no signals and prints nothing.

   The end. accelRunClose() ends the ranks. If the caller ends in whatever way
   without it, they end by themselves within a second; nothing is left behind in
   any file system. */

#ifndef ACCEL_C_RUN_H
#define ACCEL_C_RUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the library gives away. */
#define ACCEL_API __attribute__((visibility("default")))

/* Raised by every change of what is below that a program would notice. */
#define ACCEL_RUN_VERSION 2

typedef struct AccelRun AccelRun;

typedef enum AccelStatus {
  ACCEL_DONE = 0,
  ACCEL_REFUSED = 1, /* nothing has changed */
  ACCEL_ENDED = 2,   /* there are no ranks any more */
  ACCEL_PENDING = 3  /* of accelRunWait(): not finished yet */
} AccelStatus;

/* How acc-run is started. All of it may be zero. */
typedef struct AccelOptions {
  /* The path of acc-run; NULL: $ACC_RUN, else bin/acc-run beside the folder of
     this library, else acc-run in the PATH. */
  const char *program;
  /* Options of acc-run as its command line takes them, NULL behind the last:
     -n, --device, --weights, --resume, --threads, --poison, --hang-after,
     --trace. NULL: none. */
  const char *const *words;
  /* Called with a sentence that a user should know, and with lines of how far
     loading is; from within the other functions. NULL: not told. */
  void (*warn)(void *context, const char *text);
  void (*progress)(void *context, const char *text);
  void *context;
} AccelOptions;

/* Starts the ranks of `executable` and waits until they have loaded. `*run` is
   set whatever is returned (NULL: no memory), and is to be closed. */
ACCEL_API AccelStatus accelRunLoad(const char *executable,
                                   const AccelOptions *options, AccelRun **run);
/* The same without waiting: the call that accelRunWait() waits for is the
   loading. */
ACCEL_API AccelStatus accelRunOpen(const char *executable,
                                   const AccelOptions *options, AccelRun **run);
/* Ends the ranks and frees all, pointers to tensors included. What is at hand
   is given up. NULL is nothing. */
ACCEL_API void accelRunClose(AccelRun *run);
/* The sentence of the last error; empty: there was none. Valid until the next
   call. */
ACCEL_API const char *accelRunMessage(const AccelRun *run);

/*===-- Tensors
 * ------------------------------------------------------------===*/

typedef enum AccelType { /* as numbered in accel-rt/TensorFormat.h */
                         ACCEL_I1,
                         ACCEL_I8,
                         ACCEL_I16,
                         ACCEL_I32,
                         ACCEL_I64,
                         ACCEL_UI8,
                         ACCEL_UI16,
                         ACCEL_UI32,
                         ACCEL_UI64,
                         ACCEL_F16,
                         ACCEL_BF16,
                         ACCEL_F32,
                         ACCEL_F64,
                         ACCEL_F8E4M3FN,
                         ACCEL_F8E5M2,
                         ACCEL_F8E8M0FNU,
                         ACCEL_F4E2M1FN,
                         ACCEL_F8E4M3FNUZ,
                         ACCEL_F8E5M2FNUZ,
                         ACCEL_F6E2M3FN,
                         ACCEL_F6E3M2FN,
                         ACCEL_I4,
                         ACCEL_I2,
                         ACCEL_UI4,
                         ACCEL_UI2
} AccelType;

typedef enum AccelTensorKind {
  ACCEL_INPUT = 0,  /* of the global batch, which the caller writes */
  ACCEL_OUTPUT = 1, /* which calls write */
  ACCEL_WEIGHT = 2  /* parameters and buffers, under each of their names */
} AccelTensorKind;

typedef enum AccelCall {
  ACCEL_STEP = 1,
  ACCEL_EVALUATE = 2,
  ACCEL_FORWARD = 3,
  ACCEL_GET_WEIGHTS = 4,
  ACCEL_SET_WEIGHTS = 5,
  ACCEL_SAVE = 6
} AccelCall;

typedef struct AccelTensor {
  const char *name;
  AccelType type;
  size_t rank;
  const int64_t *shape;
  void *data; /* row-major, in memory that the ranks share */
  uint64_t bytes;
  unsigned calls; /* bits 1 << AccelCall of those that read or write it */
  int isRowMask;  /* of bool [batch]: which rows count; all do at first */
} AccelTensor;

/* Requires that loading has finished. Inputs keep what is written to them, for
   every call that reads them; they are the caller's between calls. Weights are
   there after accelRunGetWeights(). */
ACCEL_API size_t accelRunNumTensors(const AccelRun *run, AccelTensorKind kind);
ACCEL_API const AccelTensor *accelRunTensor(const AccelRun *run,
                                            AccelTensorKind kind, size_t index);
/* NULL: there is none of that name. */
ACCEL_API const AccelTensor *
accelRunFind(const AccelRun *run, AccelTensorKind kind, const char *name);
/* The files in memory in which inputs and outputs (0), and weights (1) lie, for
   a caller that maps them itself, and then keeps them as long as it likes:
   their size, and where a tensor begins. The descriptor stays the run's. */
ACCEL_API int accelRunMemory(const AccelRun *run, int which, uint64_t *bytes);
ACCEL_API uint64_t accelRunOffset(const AccelRun *run,
                                  const AccelTensor *tensor);

/*===-- What there is
 * ------------------------------------------------------===*/

typedef struct AccelInfo {
  int64_t ranks, threads;  /* threads of each rank */
  int64_t steps;           /* that were called, skipped ones among them */
  int64_t samples, tokens; /* of a step; 0 tokens: it has none */
  unsigned calls;          /* bits 1 << AccelCall of those that can be made */
} AccelInfo;

ACCEL_API AccelInfo accelRunInfo(const AccelRun *run);

/*===-- Calls
 * --------------------------------------------------------------===*/

/* What became of a step, by the program's own rule. */
typedef enum AccelVerdict {
  ACCEL_STEP_DONE = 0,
  ACCEL_STEP_SKIPPED = 1, /* it counts as a call, and changed nothing else */
  ACCEL_STEP_FAILED = 2   /* the call was refused: it changed nothing */
} AccelVerdict;

/* What acc-run tells of a step. */
typedef struct AccelStep {
  int64_t step; /* steps that were called so far, this and skipped ones
                   included */
  AccelVerdict verdict;
  double loss;
  double seconds; /* on the slowest rank */
} AccelStep;

/* A number by which the last step said how it went; the loss, the norm of the
   gradients and the learning rate are called "loss", "grad_norm" and "lr", and
   the verdict is one, too. */
typedef struct AccelReport {
  const char *name;
  AccelType type; /* that the program has it in */
  double value;
} AccelReport;

/* One training step on the inputs as they are. `outputs`: not 0, to have the
   outputs of the step (gradients, say) in their places. ACCEL_REFUSED where
   the step failed, as where its loss or the norm of its gradients is not
   finite: the state is that of the step before. `result` may be NULL. */
ACCEL_API AccelStatus accelRunStep(AccelRun *run, int outputs,
                                   AccelStep *result);
/* The loss of the inputs, without dropout. `goesOn`: not 0, to have the loss of
   this batch and of those before it, back to the last one without it, as of one
   batch, where the loss can tell (docs/CommandLine.md, --eval-data), or else
   their mean. */
ACCEL_API AccelStatus accelRunEvaluate(AccelRun *run, int goesOn, int outputs,
                                       double *loss);
/* The outputs of the inputs. */
ACCEL_API AccelStatus accelRunForward(AccelRun *run);
/* Writes parameters and buffers to their places, or takes them from there, all
   of them. Moments and the number of steps stay. ACCEL_REFUSED where a frozen
   weight, which no rank keeps as it was, is given another value. */
ACCEL_API AccelStatus accelRunGetWeights(AccelRun *run);
ACCEL_API AccelStatus accelRunSetWeights(AccelRun *run);
/* Gives the memory of the weights' places back. */
ACCEL_API void accelRunDropWeights(AccelRun *run);
/* Saves all that training needs to go on into `folder`/step-NNNNNNNN, as
   acc-run --checkpoint does. Nothing is done where this run has saved this step
   there. ACCEL_REFUSED where the folder cannot be used. */
ACCEL_API AccelStatus accelRunSave(AccelRun *run, const char *folder);

/* The same in two parts, for a caller that does something else meanwhile, or
   looks whether it is to be interrupted. Between the two the inputs and outputs
   are the ranks'. `outputs`, `goesOn` and `folder` are for the calls above that
   take them. */
ACCEL_API AccelStatus accelRunStart(AccelRun *run, AccelCall call, int outputs,
                                    int goesOn, const char *folder);
/* Waits at most so long (less than 0: until the end). ACCEL_PENDING: not
   finished. */
ACCEL_API AccelStatus accelRunWait(AccelRun *run, double seconds);
/* Of the last step; of the last evaluation its loss. */
ACCEL_API AccelStep accelRunResult(const AccelRun *run);
/* The reports of the last step, in the program's order. Require that loading
   has finished, and index < accelRunNumReports(). */
ACCEL_API size_t accelRunNumReports(const AccelRun *run);
ACCEL_API AccelReport accelRunReport(const AccelRun *run, size_t index);

#ifdef __cplusplus
}
#endif

#endif /* ACCEL_C_RUN_H */
