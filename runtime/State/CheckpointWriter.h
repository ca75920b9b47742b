// Writing checkpoints between steps (docs/Checkpoints.md). Each rank writes the
// pieces that it alone, or it first, holds into files of whole states, so that
// nothing is gathered; the folder gets its name when all of it has reached
// storage. Where steps go on meanwhile, a rank's states are copied first, and a
// thread of its own writes the copy; else they are written from where they lie.
// Saving allocates nothing.

#ifndef ACCEL_RUNTIME_STATE_CHECKPOINTWRITER_H
#define ACCEL_RUNTIME_STATE_CHECKPOINTWRITER_H

#include "Base/Background.h"
#include "State/Checkpoint.h"
#include "State/StateCopy.h"

namespace accel::rt {

class ControlPlane;
class Executor;
class ThreadPool;

/// One rank's part of the saving. Used by one thread, which is the rank's own.
class CheckpointWriter {
public:
  /// The arguments must outlive it.
  CheckpointWriter(const Checkpoints &checkpoints, const Program &program,
                   const Coordinates &coordinates, const Executor &executor,
                   ThreadPool &pool, ControlPlane &control);
  /// Waits for what is being written, unless the run is aborted.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  /// How many words of the board it takes, from the first on: the hash of each
  /// state that is saved, and how many meetings each rank has come to.
  static size_t numWords(const Executable &executable) {
    return executable.states.size() +
           static_cast<size_t>(executable.numRanks());
  }

  /// Takes the memory and the thread that writing in the background needs.
  /// Errors: there is none.
  Status prepare();
  /// Bytes of that memory.
  uint64_t copyBytes() const { return copy.bytes(); }

  /// Saves the states as they are, after `step` finished steps, and what
  /// evaluations came to. Called by all ranks. In the background it returns
  /// once the states are copied, and waits for the checkpoint before first.
  /// Errors: the disk is full or fails, another rank ended, or what is told of
  /// the checkpoint before; the folder's other checkpoints are untouched.
  Status save(int64_t step, const BestEvaluation &best);
  /// Waits until what was begun is on storage. Errors: those of save.
  Status finish();
  /// Errors: what has been written in the background so far has failed.
  Status look() const;
  /// The step of the newest checkpoint of this run that is on storage, on rank
  /// 0; 0: none is.
  int64_t newest() const { return published; }

private:
  Status write();
  Status writeAll();
  Status writePieces();
  Status copyValue(const Checkpoints::Saved &saved);
  Status openFiles(bool create);
  Status hashShare();
  Status publish();
  Status removeOldest();
  Status linkBest(int64_t step);
  Status syncFile(int file);
  Status meet();

  struct Piece {
    int file;
    PieceMover mover;
    Address address;
  };
  const Checkpoints &plan; // of this process since the fork
  const Executor &executor;
  ThreadPool &pool;
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

  /// What is being written.
  int64_t step = 0;
  BestEvaluation best;
  uint64_t meetings = 0;

  StateCopy copy;
  Status outcome; ///< Of the thread, once it has failed and is done.
  std::atomic<bool> hasFailed{false}, awaitsOthers{false};
  std::atomic<int64_t> published{0};
  Background background; ///< Last, so that it ends first.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_CHECKPOINTWRITER_H
