// Interprets a program's entries for one rank: computes the addresses of views
// from base, coordinates and micro-batch, and runs the prepared tasks in
// the order of their streams. Streams other than the first have a thread of
// their own each; events order them. After prepare() nothing is allocated.

#ifndef ACCEL_RUNTIME_CORE_EXECUTOR_H
#define ACCEL_RUNTIME_CORE_EXECUTOR_H

#include "Core/Control.h"
#include "Core/Counts.h"
#include "Core/InputOutput.h"
#include "Core/Layout.h"
#include "accel-rt/Comm.h"
#include "accel-rt/Device.h"

#include <thread>

namespace accel::rt {

class Executor {
public:
  struct Parts {
    Device *device;
    Comm *comm;
    InputOutput *io;
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
    int64_t event = -1; ///< Of a record or wait, within its body.
  };
  struct ArenaMemory {
    char *base = nullptr;
    int64_t bytes = 0;
    std::atomic<uint64_t> touched{0};
  };
  struct RunRef {
    const Run *run;
    size_t firstEvent;
  };
  struct BoundLoop {
    uint32_t trips;
    std::vector<RunRef> runs;
  };
  /// An event holds the number of the turn in which it was recorded last, all
  /// turns of all calls counted.
  struct BoundEntry {
    std::vector<BoundLoop> loops;
    std::unique_ptr<Word[]> events;
  };

  Status bind(const Command &command, BoundCommand &bound);
  BoundView bindView(const View &view) const;
  void poisonArena(char *base, int64_t bytes);
  Status fillConstants(const ExecutableFile &file);
  Status runStream(const BoundEntry &entry, size_t stream);
  Status runTurn(const BoundEntry &entry, const BoundLoop &loop, uint32_t turn,
                 size_t stream);
  Status runCommand(BoundCommand &command, int64_t microBatch,
                    void **addresses);
  Status waitForEvent(Word &event, uint32_t turn);
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
  std::vector<size_t> eventsInBody;
  std::vector<BoundEntry> entries; ///< As program.entries.
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

#endif // ACCEL_RUNTIME_CORE_EXECUTOR_H
