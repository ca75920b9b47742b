// What read and write commands move: inputs, outputs and the states' first
// values as ranges of open files. Opened and checked by the parent before any
// rank exists, so that every error is found once and early.

#ifndef ACCEL_RUNTIME_CORE_INPUTOUTPUT_H
#define ACCEL_RUNTIME_CORE_INPUTOUTPUT_H

#include "Core/Control.h"
#include "Data/AtomicFile.h"
#include "Data/RangeDigest.h"
#include "accel-rt/Device.h"

#include <functional>

namespace accel::rt {

/// Files open for reading, by the tensor's name.
struct OpenTensor {
  std::string name;
  TensorRange range;
};

class DataFeed;

/// Opens `folder`/NAME.npy ('/' written %2F) or input_K.pb for every input.
/// Errors: an input without a file, another shape or element type.
class Inputs {
public:
  /// Without a file is what `data` feeds; an empty `folder` holds no files.
  Status open(const Executable &executable, const std::string &folder,
              const DataFeed *data);
  const TensorRange *find(const std::string &name) const;

private:
  std::vector<OpenTensor> tensors;
  std::vector<FileHandle> files;
};

class Resume;

/// The states' values, by Executable::states' order: files opened, and their
/// sizes checked.
class Weights {
public:
  /// What `resumed` (may be null) has of the states is their value, in the
  /// place of their first one. It must outlive this.
  Status open(const ExecutableFile &file, const Resume *resumed);
  /// Reads the values that ranks have different pieces of, checks their hashes
  /// and sets what the pieces must hash to: pieceHash(rank, state), by
  /// Executable::states' order. The ranks share the work, each range is read
  /// whole by one of them. What nobody splits is checked as it is loaded.
  Status checkSplit(const Executable &executable, int64_t rank,
                    const std::function<uint64_t &(int64_t, size_t)> &pieceHash,
                    std::atomic<uint64_t> &progress) const;

  /// What is known of the bytes that a rank loads of one state.
  struct Check {
    uint64_t bytes = 0;           ///< Of the whole value.
    std::optional<uint64_t> hash; ///< Of it; none: any bytes will do.
    const char *origin = "";      ///< For messages.
    Status changed(const OpenTensor &tensor) const;
  };
  const std::vector<OpenTensor> &values() const { return tensors; }
  const Check &checkOf(size_t state) const { return checks[state]; }
  /// The number of the state of that name; nothing if there is none.
  std::optional<size_t> find(const std::string &state) const;

private:
  std::vector<Check> checks; ///< As tensors.
  std::vector<OpenTensor> tensors;
  std::unordered_map<std::string, size_t> numbers;
  std::vector<FileHandle> files;
};

/// Output files: made at full size, filled by the ranks, and named when all is
/// well. The reports of training steps are no files.
class Outputs {
public:
  /// Errors: the folder is missing or not writable, or the disk is full.
  Status create(const Executable &executable, const std::string &folder);
  const TensorRange *find(const std::string &name) const;
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
  /// Set while a write command shall reach its file.
  bool writing = false;
  /// Seconds that writes to files took since the last reset.
  double writeSeconds = 0;
  /// The reports of the last training step, and the steps finished before it.
  StepRecord record = {};
  int64_t finishedSteps = 0;
  /// What weights that are scattered in memory move through, one after another;
  /// whoever has loaded them gives it back.
  std::vector<char> staging = {};
  /// False: no bytes are read or written.
  bool moves = true;

  Status prepare(const Command &command, const Coordinates &coordinates,
                 RankControl &control, std::unique_ptr<Task> &task);

private:
  Status prepareLoad(const ReadCommand &read, const Coordinates &coordinates,
                     RankControl &control, std::unique_ptr<Task> &task);
};

/// Whether the output is a number by which a training step reports.
bool isStepReport(const Executable &executable, const std::string &output);

/// Whether this rank is the one that writes its piece: the first of those that
/// hold the same.
bool isWriter(const Part &part, const Coordinates &coordinates);

/// A name as a file's name: '/' becomes %2F.
std::string fileNameOf(const std::string &name);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CORE_INPUTOUTPUT_H
