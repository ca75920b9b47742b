// Writing checkpoints between steps (docs/Checkpoints.md). Each rank writes the
// pieces that it alone, or it first, holds, straight from its arenas into files
// of whole states, so that nothing is gathered; the folder gets its name when
// all of it has reached storage. Saving allocates nothing.

#ifndef ACCEL_RUNTIME_STATE_CHECKPOINT_H
#define ACCEL_RUNTIME_STATE_CHECKPOINT_H

#include "State/Manifest.h"
#include "State/Weights.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class ControlPlane;
class Executor;
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
  /// Removes what a rank that ended was writing.
  void discard() const { (void)folder.clean(); }

private:
  friend class CheckpointWriter;
  struct Saved {
    const StatePlan *state;
    int file;
    uint64_t offset, bytes; ///< Its range in the file.
    /// What the value is copied from, where no rank keeps it; else null.
    const OpenTensor *source;
    const Weights::Check *check;
  };
  CheckpointFolder folder;
  int64_t every = 0;
  int64_t keep = 0; ///< 0: all
  bool keepsBest = false, hasEvaluations = false;
  std::vector<int64_t> before; ///< Steps of the folder's whole checkpoints.
  bool isSpread = false;       ///< Ranks of several machines write.
  std::string resumedPath;
  std::vector<Saved> states;
  std::string headers[kNumCheckpointFiles];
  uint64_t fileBytes[kNumCheckpointFiles] = {};
  ManifestText manifest;
};

/// One rank's part of the saving.
class CheckpointWriter {
public:
  /// Prepares everything that saving needs. The arguments must outlive it.
  CheckpointWriter(const Checkpoints &checkpoints, const Program &program,
                   const Coordinates &coordinates, const Executor &executor,
                   ControlPlane &control);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  /// How many words of the board it takes, from the first on: the hash of each
  /// state that is saved.
  static size_t numWords(const Executable &executable) {
    return executable.states.size();
  }

  /// Saves the states as they are, after `step` finished steps, and what
  /// evaluations came to. Called by all ranks. Errors: the disk is full or
  /// fails, another rank ended; the folder's other checkpoints are untouched.
  Status save(int64_t step, const BestEvaluation &best);

private:
  Status writeAll(int64_t step, const BestEvaluation &best);
  Status writePieces(int64_t step);
  Status copyValue(const Checkpoints::Saved &saved);
  Status openFiles(int64_t step, bool create);
  Status hashShare();
  Status publish(int64_t step, const BestEvaluation &best);
  Status removeOldest(int64_t best);
  Status linkBest(int64_t step);
  Status syncFile(int file);

  struct Piece {
    int file;
    PieceMover mover;
    Address address;
  };
  const Checkpoints &plan; // of this process since the fork
  ControlPlane &control;
  std::atomic<uint64_t> &progress;
  std::vector<Piece> pieces;
  std::vector<char> staging; ///< Shared by all pieces, and for hashing.
  struct Hasher;
  std::unique_ptr<Hasher> hasher;
  ManifestText manifest;
  FileHandle temporary, files[kNumCheckpointFiles];
  std::string filePaths[kNumCheckpointFiles], manifestPath; ///< For messages.
  /// Steps of the checkpoints that there are, the oldest first: of rank 0, with
  /// room for one more than are kept.
  std::vector<int64_t> kept;
  int64_t linkedBest = 0; ///< That the link names, as far as this run knows.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_CHECKPOINT_H
