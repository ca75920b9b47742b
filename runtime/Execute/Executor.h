// Interprets a program's entries for one rank: binds each command to the places
// of its views, prepares it, and enqueues the runs of an entry on the device's
// streams, where events order them. After prepare() nothing is allocated.

#ifndef ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
#define ACCEL_RUNTIME_EXECUTE_EXECUTOR_H

#include "Control/ControlPlane.h"
#include "Control/Counts.h"
#include "Execute/EventCounts.h"
#include "Execute/Tape.h"
#include "Format/Layout.h"
#include "accel-rt/Comm.h"
#include "accel-rt/Device.h"

#include <functional>

namespace accel::rt {

class Executor : private StreamWatcher {
public:
  struct Parts {
    Device *device;
    Comm *comm;
    /// Makes the tasks of read and write commands.
    std::function<Status(const Command &, Work &)> transfer;
    ControlPlane *control;
    Tape *tape = nullptr; ///< Null: nobody wants to know.
  };
  /// All arguments must outlive the executor.
  Executor(const Program &program, Coordinates coordinates, Parts parts,
           bool poison);
  ~Executor() override;

  /// Allocates the arenas, fills the constants, prepares every command. An
  /// error names the command's node.
  Status prepare(const ExecutableFile &file);

  /// Runs the entry of that name (an entry that is not there is empty), and
  /// waits for its end. An error names the node of the command that failed.
  Status run(const std::string &entry);

  /// Where a view is, for micro-batch 0, and the memory that it is in.
  Address address(const View &view) const { return bindView(view).place.base; }
  Memory &memory() const { return *parts.device; }

  /// What was executed since the last call of this, by whatever device.
  Counts takeCounts();

  /// Bytes of the arenas that were allocated.
  uint64_t arenaBytes() const { return allocated; }
  /// Sum over the arenas of the highest byte that a command named.
  uint64_t touchedBytes() const;

private:
  struct BoundView {
    Place place;
    size_t arena;
    int64_t bytes;
  };
  struct BoundCommand {
    const Command *command;
    Work work, poison; ///< The latter where it has a task.
    std::vector<BoundView> views;
    size_t stream, event = 0; ///< The latter of a record or wait …
    int64_t recorder = -1;    ///< … and the body that records it.
    uint64_t runs = 0; ///< Since they were last taken; its stream counts.
  };
  struct BoundSegment {
    std::vector<Step> steps;
    bool isCaptured = false;
    std::unique_ptr<Graph> graph; ///< Null: it is not captured.
  };
  struct BoundLoop {
    uint32_t trips;
    std::vector<BoundSegment> segments;
  };
  struct BoundEntry {
    std::vector<BoundLoop> loops;
    uint64_t spans = 0; ///< Of a call, on the tape, at most.
    /// Of each arena, the highest byte that its commands name.
    std::vector<uint64_t> touched;
  };
  struct Arena {
    Address base;
    uint64_t touched = 0;
  };

  Status join();
  Status allocate();
  Status fillConstants(const ExecutableFile &file);
  Status poisonArena(Address base, int64_t bytes);
  Status bindBodies();
  bool isCapturable(const std::vector<Step> &steps) const;
  Status bind(const Command &command, BoundCommand &bound);
  Status prepareTask(const Command &command, Work &work);
  BoundView bindView(const View &view) const;
  std::optional<Command> moveToRank(const Command &command) const;
  void bindEvent(size_t body, BoundCommand &bound) const;
  BoundEntry bindEntry(const Entry &entry, size_t firstEvent);
  void addRun(const Loop &loop, const EventCounts::RunRef &run,
              const EventCounts &counts, size_t firstEvent, BoundEntry &bound,
              std::vector<Step> &steps);

  void begins(size_t stream, Work &work, int64_t microBatch) override;
  void ends(size_t stream) override;
  void rests(size_t stream) override;
  void fails() override { parts.control->abort(); }
  bool isOver() const override { return parts.control->isAborted(); }

  const Program &program;
  Coordinates coordinates;
  Parts parts;
  bool poison;
  int64_t microBatches = 1;
  uint64_t allocated = 0;
  std::vector<Arena> arenas; ///< As program.arenas.
  std::vector<std::vector<BoundCommand>> bodies;
  std::vector<BoundCommand *> numbered; ///< By Work::number.
  std::vector<BoundEntry> entries;      ///< As program.entries.
  StreamPlan plan;
  uint32_t call = 0;
  std::optional<TapeRecorder> recorder;
  std::unique_ptr<Streams> streams; ///< Ends before what it was told of.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
