// A rank's life in a training program after loading: steps, what they report,
// and the end when one of them has failed.

#ifndef ACCEL_RUNTIME_RUN_TRAIN_H
#define ACCEL_RUNTIME_RUN_TRAIN_H

#include "Run/Rank.h"

namespace accel::rt {

class CheckpointWriter;
class Executor;

/// What one rank runs with.
struct RankParts {
  const Job &job;
  int64_t rank;
  const Program &program;
  Coordinates coordinates;
  Executor &executor;
  Device &device;
  ControlPlane &control;
  InputOutput &io;
  InputOutput &evalIo;           ///< Of the evaluations between steps.
  CheckpointWriter *checkpoints; ///< Null: none are saved.

  /// Where the device only counts: notes what a call of an entry came to.
  /// Errors: not what its `first` call did.
  Status noteCall(const std::string &entry, bool first) const;
};

/// Number of finished steps, skipped ones among them: the value of the state
/// kCallCounter as it is now; without one that of the checkpoint, or 0.
int64_t finishedSteps(const RankParts &parts);

/// Runs `step` as often as the job says, and evaluates and saves the
/// checkpoints that are due between steps. Every rank stops after the first
/// step whose verdict is that it failed: `RankControl::stoppedAt` is its
/// number, from 1 in this run. After an interrupt they stop before
/// `RankControl::interruptedAt`, with a checkpoint of what was reached; that
/// needs `checkpoints`.
Status trainSteps(const RankParts &parts);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_TRAIN_H
