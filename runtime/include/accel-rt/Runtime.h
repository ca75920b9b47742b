// Running an executable: the one call that acc-run makes.

#ifndef ACCEL_RT_RUNTIME_H
#define ACCEL_RT_RUNTIME_H

#include "accel-rt/PlanFormat.h"

#include <functional>
#include <map>

namespace accel::rt {

/// A number by which a step said how it went.
struct Report {
  std::string name;
  DType dtype = DType::F32;
  double value = 0;
};

/// How a training step went.
struct StepResult {
  /// Number of steps that were called so far, this one and skipped ones
  /// included.
  int64_t step = 1;
  Verdict verdict = Verdict::Done;
  /// The step is the last one of this run.
  bool last = false;
  /// What the program reports but for the verdict, in its order.
  std::vector<Report> reports;
  double seconds = 0; ///< On the slowest rank.
  /// The mean loss of the evaluation after the step; none: there was none.
  std::optional<double> evalLoss;
  DType evalLossType = DType::F32;
  double evalSeconds = 0;
  /// When rank 0 had finished it, in seconds since 1970.
  double time = 0;
  /// The step of the newest checkpoint that has reached storage by then, with
  /// those before it that were due; 0: no newer one than told before.
  int64_t savedStep = 0;
  /// How often the data were read by then, 1.5 in the middle of the second
  /// epoch; none: there are no data.
  std::optional<double> epoch;
  /// What it read: sequences and their tokens, where the program has inputs of
  /// integers [batch, length] (else 0 tokens, and the first input's rows).
  int64_t samples = 0, tokens = 0;

  /// The report of a name; null if there is none.
  const Report *find(std::string_view name) const {
    for (const Report &report : reports)
      if (report.name == name)
        return &report;
    return nullptr;
  }
};

/// What a training run is about to do.
struct RunStart {
  int64_t firstStep = 0; ///< Steps that were finished before it.
  int64_t lastStep = 0;  ///< Steps that will be finished after it.
  bool resumes = false;  ///< It goes on from a checkpoint.
  /// The names of what each step will report, as StepResult::reports.
  std::vector<std::string> reports;
};

struct RunOptions {
  std::string executable;
  /// The name of a device (runtime/Device/Devices.h); empty: the one that the
  /// file was compiled for.
  std::string device;
  /// A device of the caller's own, in the place of one of the table.
  const struct DeviceKind *ownDevice = nullptr;
  /// Makes a control plane of the caller's own, in the place of shared memory.
  std::function<Status(const struct ControlSize &,
                       std::unique_ptr<class ControlCenter> &)>
      ownControl;
  /// What ranks exchange data by: "host" (or empty): processes of one machine,
  /// forked from this one. "mpi": mpirun or srun has started this process for
  /// one rank, and others for the other ranks, on any machines.
  std::string comm;
  /// A network of the caller's own, in the place of MPI's, and what this
  /// machine is called there.
  std::function<Status(std::unique_ptr<class Network> &, std::string &)>
      ownNetwork;
  /// The socket of a program that has started this process and calls the ranks
  /// (docs/Embedding.md), which then have no data and no number of calls; -1:
  /// there is none.
  int caller = -1;
  /// Folders. No inputs: ".", or none if there are data. No outputs: not
  /// written.
  std::string inputs, outputs;
  int64_t ranks = 0; ///< 0: as the mesh says.
  /// What is called: "step", "eval" or "forward"; empty: a step if the file has
  /// one, else a forward.
  std::string entry;
  int64_t repeats = 0; ///< Calls of eval or forward; 0: 1.
  int64_t steps = 0;   ///< Calls of step; 0: 1. See `resume`.
  /// In the place of `steps`: how often the data are read; 0: as `steps` says.
  int64_t epochs = 0;
  /// What feeds a training program (Feed/DataFeed.h): a file for each of some
  /// inputs, INPUT=FILE,INPUT=FILE, or one file of tokens or a blend of
  /// several, WEIGHT FILE WEIGHT FILE, with their type if it is raw, and what
  /// labels are
  /// ("same" as the tokens, or the "next" one).
  std::string data, dataType, dataLabels;
  /// Of Megatron-LM datasets: the shares of training, validation and test, of
  /// which `data` has the first and `evalData` the second. Empty: all of it.
  std::string dataSplit;
  /// What becomes of the samples at the end of an epoch that make no whole
  /// batch: "next", "drop" or "keep" (Data/SampleOrder.h); empty: as in the
  /// checkpoint of `resume`, else "next".
  std::string lastBatch;
  /// The order of samples, "shuffled" or as they lie in the "file", and its
  /// seed; empty and absent: as in the checkpoint of `resume`, else shuffled by
  /// the seed of the executable.
  std::string dataOrder;
  std::optional<int64_t> seed;
  /// With `resume`: the data begin anew, whatever the checkpoint had of them.
  bool newData = false;
  /// Between steps, after each whose number `evalEvery` divides (0: never), the
  /// entry eval is called, on inputs from a folder, or on data as `data` says
  /// them, of the same type and labels, in the order of their files.
  int64_t evalEvery = 0;
  std::string evalInputs, evalData;
  /// An evaluation on data ends after so many batches; 0: after all.
  int64_t evalBatches = 0;
  /// Weights to begin with: a safetensors file, or a checkpoint. Empty: those
  /// that the model was exported with.
  std::string weights;
  /// Safetensors: where the weights go after the last step, and whence come
  /// those that the exporter folded away.
  std::string saveWeights, originalWeights;
  /// What goes there of a trained parameter is its average (`ema.decay`).
  bool averages = false;
  /// The type of what has floating point there: "bf16", "fp16" or "fp32";
  /// empty: its own.
  std::string saveType;
  /// A folder that gets checkpoints: after every step whose number `saveEvery`
  /// divides (0: none), and after the last one.
  std::string checkpoint;
  int64_t saveEvery = 0;
  /// Steps wait until checkpoints are written. Else those between steps are
  /// written from a copy of the states, which takes as much memory again.
  bool checkpointSync = false;
  /// How many checkpoints stay in the folder: when one is saved, the oldest
  /// ones beyond that are removed. 0: all.
  int64_t keep = 0;
  /// The metric, of those that an evaluation between steps tells (eval_loss),
  /// by whose best value a checkpoint stays, whatever `keep` removes; each new
  /// best value is followed by one. Empty: none.
  std::string keepBest;
  /// Training ends after so many evaluations in a row that are not better than
  /// the best before them by more than a threshold (not negative); 0: it does
  /// not.
  int64_t earlyStoppingPatience = 0;
  double earlyStoppingThreshold = 0;
  /// A checkpoint to go on from, or a folder whose newest it is. `steps` then
  /// counts the steps that it has seen, too.
  std::string resume;
  /// File that gets a trace of the run, however it ends: what each stream of
  /// each rank did when.
  std::string trace;
  /// File that gets what a step measures of itself (`acc-opt --metrics`), a
  /// line of JSON for each.
  std::string metrics;
  int64_t threads = 0; ///< Of one rank; 0: cores / ranks.
  bool poison = false;
  /// The same, where the device executes anything: what the environment asks of
  /// all runs.
  bool poisonIfExecuted = false;
  double hangSeconds = 60; ///< Without progress for so long is a hang.
  /// Called with a line every two seconds or so, if there is anything to say.
  std::function<void(const std::string &)> progress;
  /// Called with what a user should know, one sentence.
  std::function<void(const std::string &)> warn;
  /// Called before the first training step, by the process that tells of steps.
  /// Errors end the run, before anything else is written.
  std::function<Status(const RunStart &)> begin;
  /// The name of an option of the caller's that tells of training steps, for
  /// the error where there are none; empty: there is no such option.
  std::string tellsOfSteps;
  /// Called for every training step in order, at most 20 ms late. An error ends
  /// the run as a signal does, and is the run's; no other step is told.
  std::function<Status(const StepResult &)> step;
  /// Whether `step` would return without waiting for a reader; if not, the step
  /// is told later. Absent: always.
  std::function<bool()> canTellStep;
};

/// What commands of one kind come to; docs/Reports.md says what is counted.
struct KindCounts {
  uint64_t commands = 0, bytesRead = 0, bytesWritten = 0, flops = 0;
};
/// Of one call of an entry, by the kind's name.
using EntryCounts = std::map<std::string, KindCounts>;

/// What a run measured; bytes are those of the worst rank.
struct RunResult {
  std::string device; ///< That it ran on.
  int64_t ranks = 1, threads = 1;
  /// Sum of the arenas, by the plan; of memory, as are those that follow.
  uint64_t plannedPeakBytes = 0;
  uint64_t measuredPeakBytes = 0; ///< Sum of the arenas, as allocated.
  uint64_t touchedPeakBytes = 0;  ///< Up to the highest byte a command named.
  uint64_t residentBytes = 0; ///< After the last run, of this process alone.
  uint64_t reservedBytes = 0; ///< What the plan grants beside the arenas.
  /// The arena nvme, which is a file, and what copies have moved from there and
  /// to it.
  uint64_t storageBytes = 0, storageRead = 0, storageWritten = 0;
  double loadSeconds = 0;
  std::vector<double> seconds; ///< Of each call or step, on the slowest rank.
  int64_t skippedSteps = 0;    ///< Those whose verdict was that, among them.
  /// Of the entry eval, if that was called: the mean over its batches.
  std::optional<double> evalLoss;
  DType evalLossType = DType::F32;
  /// Bytes that each rank has for messages to other machines, among
  /// reservedBytes, but not in the plan; and where its ranks are.
  uint64_t networkBytes = 0;
  std::string machines;
  /// Set where another process oversees the run and tells of it: the exit code
  /// of this one, which says nothing but an error of its own.
  std::optional<int> silentExit;
  /// Where there are other processes: tells them that this one, which oversees
  /// the run, ends with an exit code. Called last, whatever became of the run.
  std::function<void(int)> leave;
  /// The step with the best evaluation, of this run or of what it goes on with,
  /// and its value; 0: none, or nobody asked.
  int64_t bestStep = 0;
  double bestValue = 0;
  /// Why training ended before its last step, as a sentence; empty: it did not.
  std::string stoppedEarly;
  int interruptedBy = 0; ///< The signal that ended the run; 0: none.
  /// Where it is, as a clause for the end of an error; empty: none is saved.
  std::string lastCheckpoint;
  /// Where the device only counts: what each rank did in `load` and in the
  /// entry that was called, in every call of which it was the same.
  std::vector<std::map<std::string, EntryCounts>> counts;
};

/// Runs the executable's `load` and then `entry` as often as is asked for, on
/// all ranks, which are processes forked from this one (call
/// it before starting threads), or one of them, of which the others are started
/// by other processes that call this, too (RunOptions::comm). On an error no
/// rank is left running and no file is changed, except that complete
/// checkpoints stay, and that a step whose verdict is that it failed ends the
/// run with an error after the weights of the step before were saved. SIGINT,
/// SIGTERM and SIGHUP are errors, too, unless the caller ignores them; training
/// that saves checkpoints ends after the step at hand, with one more of them,
/// unless a second signal comes half a second later or after that. The caller
/// ignores SIGPIPE, if its callbacks write to pipes.
Status runExecutable(const RunOptions &options, RunResult &result);

/// Runs the executable for RunOptions::caller, which hears of progress,
/// warnings and errors; `code` is the exit code. Errors: it is no caller's
/// socket.
Status serveCaller(RunOptions options, int &code);
/// Tells a caller why there is no run, or none any more; returns whether it
/// could be told.
bool refuseCaller(int caller, const std::string &why);

} // namespace accel::rt

#endif // ACCEL_RT_RUNTIME_H
