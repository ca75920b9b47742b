// What a run's checkpoints consist of, and where they go (docs/Checkpoints.md):
// opened by the parent, before there are ranks, which write them
// (State/CheckpointWriter.h).

#ifndef ACCEL_RUNTIME_STATE_CHECKPOINT_H
#define ACCEL_RUNTIME_STATE_CHECKPOINT_H

#include "State/Manifest.h"
#include "State/Weights.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class Resume;

/// What a run saves and where: opened by the parent, used by every rank.
class Checkpoints {
public:
  /// Who writes to the folder: the ranks of this machine; or those of several,
  /// and this is the process that has it, or one that joins.
  enum class Writers { Here, Led, Joined };
  /// `resumed` and `cursor` may be null; `weights` and its files must stay.
  /// Errors: those of CheckpointFolder, a folder that holds checkpoints of
  /// which this run is not the continuation, and a state that is kept nowhere.
  Status open(const ExecutableFile &file, const RunOptions &options,
              const Weights &weights, const Resume *resumed,
              const DataCursor *cursor, Writers writers = Writers::Here);

  /// Whether a checkpoint follows the step of that number.
  bool isDue(int64_t step, bool last) const {
    return last || (every > 0 && step % every == 0);
  }
  /// Where the newest checkpoint is, as a clause for the end of an error.
  std::string whereIsTheLast() const;
  /// Whether steps go on while a checkpoint is written, from a copy of the
  /// states.
  bool isInBackground() const { return background; }
  /// Bytes of the states that ranks hold and save, all of them together.
  uint64_t heldBytes() const;
  /// Removes what a rank that ended was writing.
  void discard() const { (void)folder.clean(); }

private:
  friend class CheckpointWriter;
  const Executable &executable() const { return *program; }
  struct Saved {
    const StatePlan *state;
    int file;
    uint64_t offset, bytes; ///< Its range in the file.
    /// What the value is copied from, where no rank keeps it; else null.
    const OpenTensor *source;
    const Weights::Check *check;
  };
  const Executable *program = nullptr; ///< Set by open().
  CheckpointFolder folder;
  int64_t every = 0;
  int64_t keep = 0; ///< 0: all
  bool keepsBest = false, hasEvaluations = false, background = false;
  std::vector<int64_t> before; ///< Steps of the folder's whole checkpoints.
  bool isSpread = false;       ///< Ranks of several machines write.
  std::string resumedPath;
  std::vector<Saved> states;
  std::string headers[kNumCheckpointFiles];
  uint64_t fileBytes[kNumCheckpointFiles] = {};
  ManifestText manifest;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_CHECKPOINT_H
