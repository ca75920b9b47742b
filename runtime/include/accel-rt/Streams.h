// The order in which a device works: streams, events, and segments that are
// captured once and replayed. What is enqueued is run later; what fails is told
// where the streams are joined.

#ifndef ACCEL_RT_STREAMS_H
#define ACCEL_RT_STREAMS_H

#include "accel-rt/Memory.h"

namespace accel::rt {

/// Where a view is on each micro-batch m: copy m mod `slots`, and what a stride
/// over micro-batches adds.
struct Place {
  Address base;
  int64_t slots = 1, slotStride = 0, microBatchStride = 0;

  /// Whether it is the same on all of them.
  bool isFixed() const { return slots == 1 && microBatchStride == 0; }
  Address at(int64_t microBatch) const {
    return base +
           (microBatch % slots * slotStride + microBatch * microBatchStride);
  }
};

/// A prepared command. Only who has prepared it knows how it is run.
class Task {
public:
  virtual ~Task() = default;
};

/// A command that the host carries out: files, and the ranks of one machine.
/// The streams call it when all that was enqueued before it in its stream is
/// done, and go on when it returns; it may wait for other ranks and for files.
class HostTask : public Task {
public:
  /// Runs on the views at `views`, in the order in which Format/Views.h visits
  /// them.
  virtual Status run(const Address *views, int64_t microBatch) = 0;
};

/// A command as it is bound to a rank: prepared, with the places of its views.
struct Work {
  enum class Kind { Device, Host, Record, Wait };
  Kind kind = Kind::Device;
  std::unique_ptr<Task> task; ///< Of the device's streams, or a HostTask.
  /// Whether it may stand in a capture. One of the host's may where it calls
  /// nothing of a device and waits for no file, and the device's captures hold
  /// calls of the host (Device::capturesHostTasks).
  bool isCapturable = true;
  std::vector<Place> places;
  /// Among the program's commands, Program::bodies in order. An event that
  /// streams of two devices meet at is two works of its command.
  int64_t number = 0;
  /// Whether it is no command but what overwrites the views that one releases.
  bool isPoison = false;
};

/// The call of an entry, counted over all calls of all entries, and the turn of
/// the loop at hand.
struct Turn {
  uint32_t call = 0, turn = 0;
};

/// What an event counts up to: the runs that have recorded it, those of earlier
/// calls and those of this one, of which a later turn has had `step` more. The
/// number wraps; what is compared lies close together.
struct EventCount {
  struct Piece {
    uint32_t turn, first, step;
  };
  uint32_t perCall = 0;
  std::vector<Piece> pieces; ///< From ever later turns on, the first from 0.

  uint32_t at(Turn now) const {
    const Piece *piece = pieces.data();
    while (piece + 1 != pieces.data() + pieces.size() &&
           piece[1].turn <= now.turn)
      ++piece;
    return now.call * perCall + piece->first +
           (now.turn - piece->turn) * piece->step + 1;
  }
};

/// One place of a run list: the work of a stream in a run. All of it must
/// outlive the streams.
struct Step {
  Work *work = nullptr;
  size_t stream = 0;
  /// In turn 0 of the loop, in each later turn the next.
  int64_t microBatch = 0;
  /// Whether a loop turns: micro-batches are told of only then.
  bool isInLoop = false;
  size_t event = 0; ///< Of a record or wait, and how far it counts.
  EventCount count;
};

/// What was captured.
class Graph {
public:
  virtual ~Graph() = default;
};

/// Hears what streams do, and tells them of the end. Called from any thread.
class StreamWatcher {
public:
  virtual ~StreamWatcher() = default;
  /// A stream has come to a command. `microBatch` is -1 outside loops. Said
  /// when it has, never where a command is enqueued: this is a sign of life.
  virtual void begins(size_t stream, Work &work, int64_t microBatch) = 0;
  /// The command that the stream came to last is done. A device that cannot
  /// tell leaves it to the next that begins.
  virtual void ends(size_t) {}
  /// So many more steps of a stream are done of which begins() has not told: of
  /// a replay, whose device writes how far it is and names no command. The
  /// other sign of life.
  virtual void advances(size_t, uint64_t) {}
  /// A stream has nothing to do.
  virtual void rests(size_t stream) = 0;
  /// A command has failed: whoever waits for this rank should know.
  virtual void fails() = 0;
  /// Whether the run is over, so that streams should drop what they have. Asked
  /// before every command and, in waits, ten times a second at least.
  virtual bool isOver() const = 0;
};

/// How a call of an entry ended: the error, and the work that it is of; null
/// where another rank ended (kAbortedMessage), which is no command's failure.
struct Failure {
  Status status;
  const Work *work = nullptr;

  /// Whether it is told and not another: a command's own before the end that it
  /// was for others, and of two commands' that of the lower number.
  bool comesBefore(const Failure &other) const {
    if (status.ok() || other.status.ok())
      return !status.ok();
    if (!work || !other.work)
      return work && !other.work;
    return work->number < other.work->number;
  }
};

/// The streams of one rank. One thread enqueues and joins.
class Streams {
public:
  virtual ~Streams() = default;

  /// Enqueues a step behind what is in its stream, and returns without waiting
  /// for it. Streams are ordered by events alone, a wait ends when the event
  /// has counted as far as the step says. Errors are told by join(). Requires
  /// that no more is enqueued before the next join() than StreamPlan::capacity.
  virtual void enqueue(const Step &step, Turn turn) = 0;

  /// Captures the steps of a segment, so that replay() does all that enqueuing
  /// them would, on every turn, and looks nothing up. Requires that the work of
  /// every step is capturable. Done before anything is enqueued.
  virtual Status capture(const std::vector<Step> &steps,
                         std::unique_ptr<Graph> &graph) = 0;
  virtual void replay(Graph &graph, Turn turn) = 0;

  /// No more is enqueued before the next join(): a device that lets work lie
  /// begins with it, as streams of another device may wait for it.
  virtual void flush() {}
  /// Waits for all that was enqueued. Of the commands that failed the error of
  /// the one with the lowest Work::number, whichever failed first, or else that
  /// another rank ended (kAbortedMessage); after one the streams drop what they
  /// have, and are of no more use.
  virtual Failure join() = 0;
};

/// What streams are made for.
struct StreamPlan {
  std::vector<std::string> names;
  /// Whose commands Work::number counts; null where works are no program's.
  const Program *program = nullptr;
  size_t events = 0;
  /// Steps and replays between two joins, and views of a step, at most.
  size_t capacity = 0, mostViews = 0;
  /// Whether the first stream may be worked off by whoever joins. Not where
  /// those of another device are joined before, and may wait for it.
  bool mayWorkInJoin = true;
};

} // namespace accel::rt

#endif // ACCEL_RT_STREAMS_H
