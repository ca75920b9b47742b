// What read and write commands move: inputs, outputs and the states' first
// values as ranges of open files. Opened and checked by the parent before any
// rank exists, so that every error is found once and early.

#ifndef ACCEL_RUNTIME_CORE_INPUTOUTPUT_H
#define ACCEL_RUNTIME_CORE_INPUTOUTPUT_H

#include "Core/Control.h"
#include "Data/TensorFile.h"
#include "accel-rt/Device.h"

namespace accel::rt {

/// Files open for reading, by the tensor's name.
struct OpenTensor {
  std::string name;
  TensorRange range;
};

/// Opens `folder`/NAME.npy ('/' written %2F) or input_K.pb for every input.
/// Errors: an input without a file, another shape or element type.
class Inputs {
public:
  Status open(const Executable &executable, const std::string &folder);
  const TensorRange *find(const std::string &name) const;

private:
  std::vector<OpenTensor> tensors;
  std::vector<FileHandle> files;
};

/// The states' files: opened, and their sizes checked.
class Weights {
public:
  Status open(const ExecutableFile &file);
  const TensorRange *find(const std::string &name) const;
  /// Sum of the bytes of all first values.
  uint64_t totalBytes() const { return total; }
  /// Checks the hashes of the states whose number modulo `ranks` is `rank`: the
  /// ranks share the work, each range is read whole by one of them.
  Status verify(const Executable &executable, int64_t rank, int64_t ranks,
                std::atomic<uint64_t> &progress) const;

private:
  std::vector<OpenTensor> tensors;
  std::vector<FileHandle> files;
  uint64_t total = 0;
};

/// Output files: made at full size without a name where the file system can (so
/// that nothing is left whatever happens), filled by the ranks, and named when
/// all is well.
class Outputs {
public:
  ~Outputs();
  /// Errors: the folder is missing or not writable, or the disk is full.
  Status create(const Executable &executable, const std::string &folder);
  const TensorRange *find(const std::string &name) const;
  /// Synchronises and renames.
  Status finish();

private:
  struct Output {
    std::string temporary, path;
    bool hasName = false; ///< The temporary one.
  };
  std::vector<OpenTensor> tensors;
  std::vector<Output> outputs;
  std::vector<FileHandle> files;
};

/// Makes the tasks of read and write commands.
struct InputOutput {
  const Inputs *inputs = nullptr;
  const Weights *weights = nullptr;
  const Outputs *outputs = nullptr; ///< Null: outputs are computed, not kept.
  /// Set while a write command shall reach its file.
  bool writing = false;
  /// Seconds that writes to files took since the last reset.
  double writeSeconds = 0;

  Status prepare(const Command &command, const Coordinates &coordinates,
                 RankControl &control, std::unique_ptr<Task> &task);
};

/// A name as a file's name: '/' becomes %2F.
std::string fileNameOf(const std::string &name);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CORE_INPUTOUTPUT_H
