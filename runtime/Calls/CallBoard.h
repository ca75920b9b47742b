// Memory that a program and the ranks which it calls share: what is called,
// what came of it, and a table of the tensors, whose bytes follow it in the
// same file and in another one. Plain numbers at fixed places: the two sides
// are two programs, which may be of different builds.

#ifndef ACCEL_RUNTIME_CALLS_CALLBOARD_H
#define ACCEL_RUNTIME_CALLS_CALLBOARD_H

#include "Base/Futex.h"

namespace accel::rt {

/// Raised by every change of what is below, or of the messages (Channel.h).
inline constexpr uint32_t kCallVersion = 3;

enum class CallKind : uint32_t {
  Load,    ///< The first: the ranks post it themselves.
  Step,    ///< One training step on the batch.
  Eval,    ///< The loss of the batch …
  Forward, ///< The outputs of the batch.
  GetWeights,
  SetWeights,
  Save, ///< A checkpoint into the folder CallBoard::text.
  End
};

/// What a call is to do beside: bits of CallBoard::flags.
enum CallFlag : uint32_t {
  kWantsOutputs = 1, ///< Outputs go to their places.
  kGoesOn = 2        ///< An evaluation adds to the one before.
};

/// How a call went, unless it ended the run.
enum class CallOutcome : uint32_t {
  Done,
  Refused ///< CallBoard::message says why; the state is as it was before.
};

/// A tensor that either side reads or writes.
struct TensorRow {
  enum Kind : uint32_t { Input, Output, Weight };
  uint32_t kind, dtype; ///< dtype: accel::rt::DType.
  uint32_t calls;       ///< Bits 1 << CallKind of those that read or write it.
  uint32_t rank;
  int64_t shape[8];
  uint64_t name;   ///< Where its name is, from the board's first byte.
  uint64_t offset; ///< Of an input or output from the board's first byte; of a
                   ///< weight from the first one of the file of weights.
  uint64_t bytes;
  uint32_t isRowMask; ///< It says which rows of the batch count: all at first.
};

/// A number by which a step says how it went.
struct ReportRow {
  char name[64];
  uint32_t dtype; ///< accel::rt::DType.
  double value;   ///< Of the last step.
};

struct CallBoard {
  static constexpr uint64_t kMagic = 0x6472616f42636361; // "accBoard"
  uint64_t magic = kMagic;
  uint32_t version = kCallVersion;

  // What stays.
  uint32_t trains = 0;     ///< Whether there is the call Step …
  uint32_t calls = 0;      ///< … and all that there are, as bits.
  uint32_t numReports = 0; ///< Of `reports`, the verdict among them.
  int64_t ranks = 1, threads = 1;
  int64_t samples = 0, tokens = 0; ///< Of a step; see StepResult.
  uint64_t rowsAt = 0, numRows = 0;
  uint64_t bytes = 0, weightBytes = 0; ///< Of this file and the other one.

  /// How many calls were posted; ranks wait for the next. Written by the
  /// caller, after what it says of the call.
  alignas(64) Word posted{0};
  uint32_t kind = 0, flags = 0;
  char text[4096] = {};

  /// How many were answered; the caller waits for its own.
  alignas(64) Word answered{0};
  /// Ranks that have finished the call at hand.
  std::atomic<uint32_t> finished{0};
  std::atomic<uint32_t> outcome{0}; ///< A CallOutcome.
  /// Of the last step, as the ranks have seen it: accel::rt::Verdict.
  std::atomic<uint32_t> verdict{0};
  std::atomic<int64_t> nanoseconds{0}; ///< Of the slowest rank.
  /// Steps that were called, skipped ones among them.
  std::atomic<int64_t> steps{0};
  ReportRow reports[16] = {};
  double loss = 0; ///< Of the last step or evaluation.
  char message[4096] = {};

  /// Whether ranks owe the caller an answer.
  bool isCalled() const { return posted.load() != answered.load(); }
  const TensorRow *rows() const {
    return reinterpret_cast<const TensorRow *>(
        reinterpret_cast<const char *>(this) + rowsAt);
  }
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CALLS_CALLBOARD_H
