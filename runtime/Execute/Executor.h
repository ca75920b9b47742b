// Interprets a program's entries for one rank: binds each command to the places
// of its views, prepares it, and enqueues the runs of an entry on the streams
// of the devices that its bodies' engines name, where events order them. After
// prepare() nothing is allocated.

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
#include <set>

namespace accel::rt {

class Executor {
public:
  /// What executes the bodies of an engine.
  struct Engine {
    std::string name;
    Device *device;
  };
  struct Parts {
    /// The first has the arenas; the others reach those that are the host's.
    std::vector<Engine> engines;
    Comm *comm;
    /// Makes the tasks of read and write commands.
    std::function<Status(const Command &, Work &)> transfer;
    ControlPlane *control;
    Tape *tape = nullptr; ///< Null: nobody wants to know.
  };
  /// All arguments must outlive the executor.
  Executor(const Program &program, Coordinates coordinates, Parts parts,
           bool poison);
  ~Executor();

  /// Allocates the arenas, fills the constants, prepares every command. An
  /// error names the command's node.
  Status prepare(const ExecutableFile &file);

  /// Runs the entry of that name (an entry that is not there is empty), and
  /// waits for its end. An error names the node of the command that failed.
  Status run(const std::string &entry);

  /// Where a view is, for micro-batch 0, and the memory that it is in.
  Address address(const View &view) const {
    return bindView(view, /*engine=*/0).place.base;
  }
  Memory &memory() const { return *parts.engines.front().device; }

  /// What was executed since the last call of this, by whatever device.
  Counts takeCounts();

  /// Bytes of the arenas that were allocated, and are memory.
  uint64_t arenaBytes() const { return allocated; }
  /// Sum over the arenas of the highest byte that a command named.
  uint64_t touchedBytes() const;

private:
  /// The streams of one engine. They are numbered among themselves there, and
  /// among all here.
  struct EngineStreams : StreamWatcher {
    EngineStreams(Executor &owner, Device &device)
        : owner(owner), device(device) {}
    void begins(size_t stream, Work &work, int64_t microBatch) override {
      owner.begins(numbers[stream], work, microBatch);
    }
    void ends(size_t stream) override { owner.ends(numbers[stream]); }
    void advances(size_t, uint64_t steps) override {
      owner.parts.control->self().progress.fetch_add(steps,
                                                     std::memory_order_relaxed);
    }
    void rests(size_t stream) override { owner.rests(numbers[stream]); }
    void fails() override { owner.parts.control->abort(); }
    bool isOver() const override { return owner.parts.control->isAborted(); }

    Executor &owner;
    Device &device;
    StreamPlan plan;
    std::vector<size_t> numbers; ///< Among all, of each of its own.
    std::unique_ptr<Streams> streams;
  };
  struct BoundView {
    Place place;
    Address base; ///< Of the arena.
    size_t arena;
    int64_t bytes;
  };
  struct BoundCommand {
    const Command *command;
    Work work;
    std::vector<Work> poison; ///< Fills of what it releases.
    std::vector<BoundView> views;
    size_t engine, stream; ///< The latter among the engine's.
    size_t event = 0;      ///< Of a record or wait …
    int64_t recorder = -1; ///< … and the body that records it.
  };
  struct BoundSegment {
    std::vector<Step> steps;
    size_t engine = 0;
    size_t commands = 0;     ///< Of the plan: without poison.
    bool mayCapture = false; ///< As the plan says.
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
    /// How often a call runs each command, by Work::number, and the calls since
    /// it was last asked for.
    std::vector<uint64_t> runs;
    uint64_t calls = 0;
    /// Of each arena, the highest byte that its commands name.
    std::vector<uint64_t> touched;
  };
  struct Arena {
    /// As Parts::engines; of the others only where they reach it.
    std::vector<std::optional<Address>> bases;
    uint64_t touched = 0;
  };

  Status join();
  Status allocate();
  Status fillConstants(const ExecutableFile &file);
  Status poisonArena(Address base, int64_t bytes);
  Status bindBodies();
  std::pair<int64_t, int64_t>
  findIndex(const CoordinateCommand &coordinate) const;
  Status prepareIndex(int64_t index, const View &target, size_t engine,
                      Work &work);
  const CoordinateCommand *asIndex(const Step &step) const;
  bool isCapturable(const BoundSegment &segment, bool isUnrolled) const;
  Status unroll(const BoundSegment &segment, uint32_t turn, BoundSegment &into);
  Status joinCaptures(BoundEntry &entry);
  void countEnqueued(const BoundEntry &entry);
  Status findEngine(const std::string &name, size_t &engine) const;
  Status bind(const Command &command, size_t engine, BoundCommand &bound);
  Status prepareTask(const Command &command, size_t engine, Work &work);
  BoundView bindView(const View &view, size_t engine) const;
  std::optional<Command> moveToRank(const Command &command) const;
  Status prepareFill(std::vector<int64_t> value, View view, size_t engine,
                     Work &work);
  void bindEvent(size_t body, BoundCommand &bound) const;
  void findCrossings();
  Step addCrossing(const Step &step);
  BoundEntry bindEntry(const Entry &entry, size_t firstEvent);
  void addRun(const Loop &loop, const EventCounts::RunRef &run,
              const EventCounts &counts, size_t firstEvent, BoundEntry &bound,
              std::vector<Step> &steps);

  void begins(size_t stream, Work &work, int64_t microBatch);
  void ends(size_t stream);
  void rests(size_t stream);

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
  std::vector<std::string> streamNames; ///< Of all engines.
  size_t events = 0, capacity = 0;
  /// Events that streams of two engines meet at, by number within an entry's,
  /// the words where they do, and the works that do it.
  std::set<size_t> crossings;
  std::unique_ptr<Word[]> crossingWords;
  std::vector<std::unique_ptr<Work>> crossingWorks;
  /// Coordinates of a micro-batch that is known beforehand.
  std::vector<std::unique_ptr<Work>> fixedWorks;
  /// Commands of the executor's own, which tasks may point to.
  std::vector<std::unique_ptr<Command>> made;
  uint32_t call = 0;
  std::optional<TapeRecorder> recorder;
  /// As Parts::engines. They end before what they were told of.
  std::vector<std::unique_ptr<EngineStreams>> engines;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_EXECUTE_EXECUTOR_H
