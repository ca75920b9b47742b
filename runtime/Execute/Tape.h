// What one rank's streams did and when: a tape in memory that the parent shares
// with the rank, so that nothing is written while the rank runs, and what a
// rank has done is there even if it is killed. Run/Trace.h makes a file of it.

#ifndef ACCEL_RUNTIME_EXECUTE_TAPE_H
#define ACCEL_RUNTIME_EXECUTE_TAPE_H

#include "Base/WaitSpan.h"
#include "accel-rt/Streams.h"

#include <atomic>

namespace accel::rt {

/// One command, or a wait for other ranks within one. Times are nanoseconds of
/// the steady clock; `end` 0: it never ended.
struct TapeSpan {
  enum Kind : uint16_t { Command, Poison, Wait };
  int64_t begin, end;
  int32_t command;    ///< Work::number; of a wait, that of its command.
  int32_t microBatch; ///< -1 outside of loops.
  uint32_t call;      ///< Of the rank's calls of entries, from 0.
  Kind kind;
  uint16_t stream;
};

/// Made of zeros. A call is on it as a whole or not at all: once one has no
/// room, no later one is.
struct Tape {
  /// 32 MiB, of which only those are touched that are used.
  static constexpr uint32_t kSpans = 1 << 20, kCalls = 1 << 16;
  /// Waits of one command that are kept as such; more are one with the last.
  static constexpr uint32_t kWaits = 4;

  std::atomic<uint32_t> used;
  uint32_t callsMade, callsKept;
  uint8_t entries[kCalls]; ///< Of each call that is kept: Program::entries.
  TapeSpan spans[kSpans];
};

/// Writes a rank's tape. Every stream is recorded by its own thread.
class TapeRecorder {
public:
  /// `tape` must outlive it.
  TapeRecorder(Tape &tape, size_t streams);
  /// Of the streams' threads only the caller's is left.
  ~TapeRecorder() { waitListener = nullptr; }
  TapeRecorder(const TapeRecorder &) = delete;
  TapeRecorder &operator=(const TapeRecorder &) = delete;

  /// A call of an entry that takes no more than so many spans. Streams rest.
  void call(size_t entry, uint64_t spans);
  void begins(size_t stream, const Work &work, int64_t microBatch);
  void ends(size_t stream);

private:
  struct Stream : WaitListener {
    void waited(int64_t begin, int64_t end) override;
    TapeRecorder *owner = nullptr;
    TapeSpan *open = nullptr, *wait = nullptr;
    uint32_t waits = 0;
  };
  TapeSpan &take(const TapeSpan &span);

  Tape &tape;
  std::vector<Stream> streams;
  bool keeps = false;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_EXECUTE_TAPE_H
