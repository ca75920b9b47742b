// What a rank tells of itself: signs of life, where it is, what it measured,
// how a call went, and why it failed. Plain numbers, so that they can lie in
// memory that processes share, or travel as bytes.

#ifndef ACCEL_RUNTIME_CONTROL_CONTROL_H
#define ACCEL_RUNTIME_CONTROL_CONTROL_H

#include "Base/Futex.h"
#include "Control/Counts.h"
#include "accel-rt/PlanFormat.h"

#include <cstddef>
#include <string>

namespace accel::rt {

/// The state of one rank. Written by the rank, read by the parent.
struct alignas(64) RankControl {
  enum State : uint32_t { Loading, Running, Finished, Failed };
  std::atomic<uint32_t> state{Loading};
  /// Grows with every command and every chunk of work.
  std::atomic<uint64_t> progress{0};
  /// The command at hand on each stream, the first of them `compute` (those
  /// beyond share the last place): an index into the list of the program's
  /// commands (Program::bodies in order), or one of those below; the two last
  /// are said of the first stream, and kIdle of the others.
  static constexpr int kStreams = 16;
  static constexpr int64_t kIdle = -1, kLoading = -1, kBetweenRuns = -2,
                           kSaving = -3;
  std::atomic<int64_t> command[kStreams]; ///< All idle, as they begin.
  /// The micro-batch that each is of, where a loop turns; -1 outside loops.
  std::atomic<int64_t> microBatch[kStreams];
  /// Whether the rank waits for others: then a hang is not its doing.
  std::atomic<bool> waiting{false};
  /// How many barriers it came to: ranks of a program come to the same ones.
  std::atomic<uint64_t> barriers{0};
  std::atomic<uint64_t> runsDone{0}, bytesPopulated{0}, weightBytesRead{0};
  /// What copies have read from the file of space nvme, and written to it.
  std::atomic<uint64_t> storageRead{0}, storageWritten{0};
  /// Steps that were finished before this run: its first is one later. The step
  /// (from 1 in this run; 0: none) that failed, after which everybody stops,
  /// and that (from 0) before which everybody stopped because the parent was
  /// interrupted. Ranks agree on them.
  std::atomic<int64_t> firstStep{0}, stoppedAt{0}, interruptedAt{kNever};
  static constexpr int64_t kNever = INT64_MAX;
  /// The step (from 1 in this run; 0: none) after which evaluations that were
  /// not better ended it, the step of the best one, and its value.
  std::atomic<int64_t> stoppedEarlyAt{0}, bestStep{0};
  std::atomic<double> bestValue{0};
  uint64_t arenaBytes = 0, touchedBytes = 0, residentBytes = 0,
           residentPeakBytes = 0, reservedBytes = 0;
  double loadSeconds = 0;
  int32_t threads = 0;
  /// The rank's error, if state is Failed.
  char message[2048] = {};

  RankControl() {
    static_assert(kLoading == kIdle);
    for (int stream = 0; stream < kStreams; ++stream) {
      command[stream] = kIdle;
      microBatch[stream] = -1;
    }
  }
};

/// What a training step reports, in the order of Executable::reports; the first
/// rank's are told. Zeros, of a step that is done, where a rank's program
/// reports nothing.
struct StepRecord {
  double values[kMaxReports] = {};
  /// Of the evaluation after it, if there was one.
  bool isEvaluated = false;
  double evalLoss = 0, evalSeconds = 0;
  double time = 0; ///< When the step ended, in seconds since 1970.
  /// The newest checkpoint that is on storage; 0: told before, or there is
  /// none.
  int64_t savedStep = 0;
};

/// What a reported number says of a step; whatever it does not know is a
/// failure.
inline Verdict verdictOf(double value) {
  return value == 0   ? Verdict::Done
         : value == 1 ? Verdict::Skipped
                      : Verdict::Failed;
}

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_CONTROL_H
