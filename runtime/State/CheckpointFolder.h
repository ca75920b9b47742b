// A folder of checkpoints: `step-NNNNNNNN`, each whole, beside temporaries that
// no reader looks at. One run at a time writes to it.

#ifndef ACCEL_RUNTIME_STATE_CHECKPOINTFOLDER_H
#define ACCEL_RUNTIME_STATE_CHECKPOINTFOLDER_H

#include "Data/TensorFile.h"

namespace accel::rt {

/// The files of a checkpoint. The manifest says what the others hold; without
/// it there is no checkpoint.
inline constexpr const char *kManifestFile = "checkpoint.json";
enum CheckpointFile { kModel, kOptimizer, kNumCheckpointFiles };
inline constexpr const char *kCheckpointFiles[kNumCheckpointFiles] = {
    "model.safetensors", "optimizer.safetensors"};

/// The link to the best checkpoint of the folder, and what becomes it.
inline constexpr const char *kBestLink = "best", *kBestTemporary = ".tmp-best";

struct FoundCheckpoint {
  int64_t step = 0;
  std::string path;
  /// Whether it has a manifest. Each got its name with one, so that one without
  /// was damaged.
  bool isWhole = true;
};

/// The checkpoints in `folder` by their steps, damaged ones too; none where
/// there is no such folder. Errors: it cannot be read, so that the newest is
/// not known.
Status listCheckpoints(const std::string &folder,
                       std::vector<FoundCheckpoint> &found);

/// The name of a step's folder, and of the temporary that becomes it.
class CheckpointName {
public:
  CheckpointName(int64_t step, bool temporary);
  const char *text() const { return buffer; }

private:
  char buffer[48];
};

/// The folder that a run writes to, locked by a file in it while any process
/// that inherited it lives.
class CheckpointFolder {
public:
  CheckpointFolder() = default;
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;

  /// Makes the folder (its parent must be there) and removes the temporaries
  /// that a killed run left. Errors: no such folder, another run is writing, a
  /// temporary that stays.
  Status open(const std::string &path);
  /// Opens the folder beside another process of the run, which has it so, on
  /// another machine perhaps. Errors: no such folder.
  Status join(const std::string &path);
  /// Removes the temporaries. Errors: one that stays, and would be in the way.
  Status clean() const;
  const std::string &path() const { return folderPath; }
  /// Where it is by now: somebody may have moved it. Empty: it is gone.
  std::string whereNow() const;
  int descriptor() const { return handle.get(); }

private:
  void shareLock(int lock) const;

  std::string folderPath;
  FileHandle handle, lockFile;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_CHECKPOINTFOLDER_H
