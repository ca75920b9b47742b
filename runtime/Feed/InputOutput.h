// What read and write commands move: inputs, outputs and the states' values as
// ranges of open files. Opened and checked by the parent before any rank
// exists, so that every error is found once and early.

#ifndef ACCEL_RUNTIME_FEED_INPUTOUTPUT_H
#define ACCEL_RUNTIME_FEED_INPUTOUTPUT_H

#include "Control/Control.h"
#include "Data/AtomicFile.h"
#include "Feed/LossSums.h"
#include "Feed/MetricsLog.h"
#include "State/Weights.h"
#include "accel-rt/Device.h"

namespace accel::rt {

class DataFeed;

/// Opens `folder`/NAME.npy ('/' written %2F) or input_K.pb for every input.
/// Errors: an input without a file, another shape or element type.
class Inputs {
public:
  /// `wanted` are those of the inputs that a call reads: K counts all of them,
  /// so that one folder is for every entry. Without a file is what `data`
  /// feeds, and may be the mask of rows, all of which count then; an empty
  /// `folder` holds no files.
  Status open(const Executable &executable,
              const std::vector<TensorPlan> &wanted, const std::string &folder,
              const DataFeed *data);
  /// The same of tensors that lie elsewhere, as in memory that a calling
  /// program fills; their files must stay open.
  void place(std::vector<OpenTensor> opened) { tensors = std::move(opened); }
  const TensorRange *find(const std::string &name) const;
  /// A hash of all of them, by which to tell those of another machine.
  Status hash(uint64_t &hash) const;

private:
  std::vector<OpenTensor> tensors;
  std::vector<FileHandle> files;
};

/// Output files: made at full size, filled by the ranks, and named when all is
/// well. The reports of training steps and evaluations are no files.
class Outputs {
public:
  /// Errors: the folder is missing or not writable, or the disk is full.
  Status create(const Executable &executable,
                const std::vector<TensorPlan> &wanted,
                const std::string &folder, const SharedName &shared = {});
  /// The same of tensors that are no files of their own; nothing is finished.
  void place(std::vector<OpenTensor> opened) { tensors = std::move(opened); }
  const TensorRange *find(const std::string &name) const;
  /// What they will be called, other names included.
  std::vector<std::string> paths() const;
  /// Brings what this process has written to storage, for another to finish.
  Status synchronise();
  /// Synchronises and renames.
  Status finish();

private:
  std::vector<OpenTensor> tensors;
  std::vector<AtomicFile> files;
  /// What a file is called too: its number, and the other path.
  std::vector<std::pair<size_t, std::string>> links;
};

/// Makes the tasks of read and write commands.
struct InputOutput {
  const Executable &executable;
  const Inputs *inputs = nullptr;
  const Weights *weights = nullptr;
  /// What this rank's pieces of split states must hash to
  /// (Weights::checkSplit).
  const uint64_t *pieceHashes = nullptr;
  const Outputs *outputs = nullptr; ///< Null: outputs are computed, not kept.
  const DataFeed *data = nullptr;   ///< Of inputs without a file.
  Memory *memory = nullptr;         ///< What the commands' views are in.
  MetricsLog *metrics = nullptr;    ///< Null: no metric is kept.
  /// Set while a write command shall reach its file.
  bool writing = false;
  /// Seconds that writes to files took since the last reset.
  double writeSeconds = 0;
  /// The reports of the last training step, and the steps finished before it.
  StepRecord record = {};
  /// Of the batches of an evaluation.
  LossSums losses = LossSums(executable);
  int64_t finishedSteps = 0;
  /// What weights that are scattered in memory move through, one after another;
  /// whoever has loaded them gives it back.
  std::vector<char> staging = {};
  /// False: no bytes are read or written.
  bool moves = true;

  /// Makes the task of a read or write whose view is at `work.places`.
  Status prepare(const Command &command, const Coordinates &coordinates,
                 RankControl &control, Work &work);
  /// Of the last call, and what became of the last step. Require a program that
  /// trains.
  double loss() const {
    return record.values[executable.placeOfReport(kLossReport)];
  }
  Verdict verdict() const {
    return verdictOf(record.values[executable.placeOfReport(kVerdictReport)]);
  }

private:
  Status prepareLoad(const ReadCommand &read, const Coordinates &coordinates,
                     RankControl &control, Memory *remote,
                     std::unique_ptr<Task> &task);
};

/// Whether the output is one by which a step measures itself.
bool isMetric(const std::string &output);

/// Whether the output is a number by which a training step reports, of which
/// the loss of an evaluation is made, or a metric: no file of outputs has it.
bool isReport(const Executable &executable, const std::string &output);

/// What else an output is called: a gradient has its parameter's other names.
std::vector<std::string> otherNames(const Executable &executable,
                                    const std::string &output);
/// The shape in which an output is given away: a gradient that is as padded as
/// its parameter comes without the padding.
const std::vector<int64_t> &outerShape(const Executable &executable,
                                       const TensorPlan &output);

/// A name as a file's name: '/' becomes %2F.
std::string fileNameOf(const std::string &name);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_INPUTOUTPUT_H
