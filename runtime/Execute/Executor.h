// Interprets a program's entries for one rank: computes the addresses of views
// from base, coordinates and micro-batch, and runs the prepared tasks in
// the order of their streams. Streams other than the first have a thread of
// their own each; events order them. After prepare() nothing is allocated.

#ifndef ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
#define ACCEL_RUNTIME_EXECUTE_EXECUTOR_H

#include "Control/Control.h"
#include "Control/Counts.h"
#include "Format/Layout.h"
#include "accel-rt/Comm.h"
#include "accel-rt/Device.h"

#include <functional>
#include <thread>

namespace accel::rt {

class Executor {
public:
  struct Parts {
    Device *device;
    Comm *comm;
    /// Makes the tasks of read and write commands.
    std::function<Status(const Command &, std::unique_ptr<Task> &)> transfer;
    Control *control;
    RankControl *rankControl;
  };
  /// All arguments must outlive the executor.
  Executor(const Program &program, Coordinates coordinates, Parts parts,
           bool poison);
  ~Executor();

  /// Allocates the arenas, fills the constants, prepares every command. An
  /// error names the command's node.
  Status prepare(const ExecutableFile &file);

  /// Runs the entry of that name (an entry that is not there is empty).
  Status run(const std::string &entry);

  /// Where a view is, for micro-batch 0.
  char *address(const View &view) const { return bindView(view).base; }

  /// What was executed since the last call of this, by whatever device.
  Counts takeCounts();

  /// Bytes of the arenas that were allocated.
  uint64_t arenaBytes() const { return allocated; }
  /// Sum over the arenas of the highest byte that a command named.
  uint64_t touchedBytes() const;

private:
  struct BoundView {
    char *base;
    int64_t slots, slotStride, microBatchStride, bytes;
    size_t arena;
  };
  struct BoundCommand {
    const Command *command;
    std::unique_ptr<Task> task; ///< Null for record and wait.
    std::vector<BoundView> views, releases;
    std::vector<PairLayout> releaseLayouts;
    uint64_t runs = 0; ///< Since they were last taken; its stream adds to them.
    int64_t index;     ///< Among all commands, for the watchdog.
    size_t stream;
    int64_t event = -1;    ///< Of a record or wait, within `recorder`.
    int64_t recorder = -1; ///< The body that records it.
  };
  struct ArenaMemory {
    char *base = nullptr;
    int64_t bytes = 0;
    std::atomic<uint64_t> touched{0};
  };
  /// A run in turn t of its loop is number `first` + t · `step` of its body's
  /// runs in a call.
  struct RunRef {
    const Run *run;
    uint32_t first, step;
  };
  struct BoundLoop {
    uint32_t trips;
    std::vector<RunRef> runs;
  };
  /// The runs of a body in an entry, and the first of its events.
  struct BodyRuns {
    struct Span {
      int64_t microBatch;
      uint32_t trips, first, step;
    };
    std::vector<Span> spans;
    uint32_t count = 0;
    size_t firstEvent = 0;

    /// The number of the run on a micro-batch; 0 where there is one run.
    uint32_t numberOf(int64_t microBatch) const;
  };
  /// An event counts the runs of its body that have recorded it, those of all
  /// calls: a body's runs follow each other on a stream.
  struct BoundEntry {
    std::vector<BoundLoop> loops;
    std::vector<BodyRuns> bodies; ///< As program.bodies.
    std::unique_ptr<Word[]> events;
  };

  BoundEntry bindEntry(const Entry &entry) const;
  void findEvents();
  void bindEvent(size_t body, BoundCommand &bound) const;
  Status bind(const Command &command, BoundCommand &bound);
  BoundView bindView(const View &view) const;
  void poisonArena(char *base, int64_t bytes);
  Status fillConstants(const ExecutableFile &file);
  Status runStream(const BoundEntry &entry, size_t stream);
  Status runTurn(const BoundEntry &entry, const BoundLoop &loop, uint32_t turn,
                 size_t stream);
  Status runCommand(BoundCommand &command, int64_t microBatch,
                    void **addresses);
  Status waitForEvent(Word &event, uint32_t count);
  void poisonReleased(const BoundCommand &command, int64_t microBatch);
  void streamThread(size_t stream);

  const Program &program;
  Coordinates coordinates;
  Parts parts;
  bool poison;
  int64_t microBatches = 1;
  uint64_t allocated = 0;
  std::vector<std::unique_ptr<ArenaMemory>> arenas; ///< As program.arenas.
  std::vector<std::vector<BoundCommand>> bodies;
  std::vector<std::vector<std::string>> eventsOf; ///< Of each body, by name.
  std::vector<BoundEntry> entries;                ///< As program.entries.
  std::vector<std::string> streams;
  std::vector<std::vector<void *>> addresses; ///< Scratch, one for a stream.

  // The other streams' threads: they run entry `job` when `call` changes.
  std::vector<std::thread> threads;
  std::vector<Status> results;
  const BoundEntry *job = nullptr;
  Word call{0}, finished{0};
  std::atomic<bool> stopping{false};
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
