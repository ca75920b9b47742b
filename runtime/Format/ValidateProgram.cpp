// One program's places: arenas hold their buffers, buffers their views for
// every coordinate and slot, and entries name bodies that there are.

#include "Format/Layout.h"
#include "Format/Replay.h"
#include "Format/Runs.h"
#include "Format/Tables.h"
#include "Format/Views.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace accel::rt {
namespace {

/// As enum Role of the plan dialect.
constexpr const char *kBufferRoles[] = {"state",   "packed",       "constant",
                                        "input",   "output",       "activation",
                                        "scratch", "communication"};
/// The widest elements: what starts on their multiples serves all others.
constexpr int64_t kMinAlignment = 8;
/// Copies of a buffer: as many micro-batches may be in flight.
constexpr int64_t kMaxSlots = int64_t(1) << 16;
/// Commands in the runs of all entries, of loops those of the turns that are
/// looked at.
constexpr size_t kMaxCommands = size_t(1) << 24;
constexpr int64_t kMaxAlignment = 1 << 22;
/// Of a file's blocks, and of those under way at once.
constexpr int64_t kMaxStorageBlock = int64_t(1) << 30, kMaxStorageDepth = 4096;

class ProgramValidator {
public:
  ProgramValidator(const Tables &tables, const Program &program)
      : tables(tables), program(program) {}

  Status run() {
    for (const ArenaPlan &arena : program.arenas) {
      if (!arenas.try_emplace(arena.space, Extent{&arena, 0}).second)
        return Status::error("found two arenas of space " +
                             inQuotes(arena.space));
      if (!inRange(arena.bytes, 0, kLimit) ||
          !inRange(arena.alignment, kMinAlignment, kMaxAlignment + 1) ||
          (arena.alignment & (arena.alignment - 1)) ||
          !inRange(arena.reserve, 0, kLimit))
        return Status::error("found an arena of impossible size");
      ACCEL_RT_RETURN_IF_ERROR(checkStorage(arena));
    }
    for (const BufferPlan &buffer : program.buffers)
      ACCEL_RT_RETURN_IF_ERROR(checkBuffer(buffer));
    ACCEL_RT_RETURN_IF_ERROR(checkAliases());
    // A larger one would be filled with memory that nothing needs.
    for (auto &[space, extent] : arenas)
      if (extent.arena->bytes - extent.end >= extent.arena->alignment)
        return Status::error("expected the " + std::to_string(extent.end) +
                             " bytes that buffers need of the arena of space " +
                             inQuotes(space) + ", found " +
                             std::to_string(extent.arena->bytes));
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands)
        if (Status status = checkViews(command); !status.ok())
          return Status::error(status.message() + " in a " +
                               commandKind(command) + " for node " +
                               inQuotes(command.node));
    ACCEL_RT_RETURN_IF_ERROR(checkEngines());
    return checkEntries();
  }

private:
  struct Extent {
    const ArenaPlan *arena;
    int64_t end; ///< Of the last buffer.
  };

  static Status checkStorage(const ArenaPlan &arena) {
    if (arena.isStored() != arena.storage.has_value())
      return Status::error(
          "expected an arena of space " + inQuotes(kStorageSpace) +
          ", and no other, to say which file it is, found space " +
          inQuotes(arena.space));
    if (!arena.storage)
      return Status();
    const StoragePlan &storage = *arena.storage;
    if (storage.path.empty() || arena.alignment % kStorageSector ||
        storage.blockBytes % kStorageSector ||
        !inRange(storage.blockBytes, kStorageSector, kMaxStorageBlock + 1) ||
        !inRange(storage.queueDepth, 1, kMaxStorageDepth + 1))
      return Status::error(
          "found an arena of space " + inQuotes(kStorageSpace) +
          " whose file has no folder or is moved in impossible blocks");
    return Status();
  }

  Status checkBuffer(const BufferPlan &buffer) {
    std::string what = "buffer " + inQuotes(buffer.name);
    if (!buffers.try_emplace(buffer.name, &buffer).second)
      return Status::error("found two buffers called " + inQuotes(buffer.name));
    if (std::find(std::begin(kBufferRoles), std::end(kBufferRoles),
                  buffer.role) == std::end(kBufferRoles))
      return Status::error("expected the role of a buffer, found " +
                           inQuotes(buffer.role) + " for " + what);
    auto found = arenas.find(buffer.space);
    if (found == arenas.end())
      return Status::error("found no arena of space " + inQuotes(buffer.space) +
                           " for " + what);
    auto &[arena, highest] = found->second;
    __int128 end =
        (static_cast<__int128>(buffer.slots) - 1) * buffer.slotStride +
        buffer.offset + buffer.bytes;
    if (!inRange(buffer.offset, 0, kLimit) ||
        !inRange(buffer.bytes, 0, kLimit) ||
        !inRange(buffer.slots, 1, kMaxSlots) ||
        !inRange(buffer.slotStride, buffer.bytes, kLimit) || end > arena->bytes)
      return Status::error("expected " + what + " within the " +
                           std::to_string(arena->bytes) +
                           " bytes of its arena");
    if (buffer.offset % arena->alignment ||
        (buffer.slots > 1 && buffer.slotStride % kMinAlignment))
      return Status::error("expected " + what + " at a multiple of " +
                           std::to_string(arena->alignment) +
                           " bytes, found it at " +
                           std::to_string(buffer.offset));
    bool outlives = buffer.role == "state" || buffer.role == "packed" ||
                    buffer.role == "constant";
    if (buffer.slots > 1 && outlives)
      return Status::error("expected one copy of " + what +
                           ", which all micro-batches share, found " +
                           std::to_string(buffer.slots));
    highest = std::max(highest, static_cast<int64_t>(end));
    const Section *section = tables.section(buffer.section);
    if (!buffer.section.empty() &&
        (!section || section->bytes > static_cast<uint64_t>(buffer.bytes)))
      return Status::error("expected a section that fits for " + what);
    if (!buffer.source.empty() && !tables.state(buffer.source))
      return Status::error("found no state " + inQuotes(buffer.source) +
                           " for " + what);
    return Status();
  }

  Status checkAliases() {
    for (const BufferPlan &buffer : program.buffers) {
      if (buffer.aliasOf.empty())
        continue;
      auto found = buffers.find(buffer.aliasOf);
      if (found == buffers.end() || !found->second->aliasOf.empty() ||
          found->second->space != buffer.space)
        return Status::error("expected a buffer of the same space that " +
                             inQuotes(buffer.name) + " shares bytes with");
    }
    return Status();
  }

  Status checkView(const View &view) {
    if (!inRange(view.buffer, 0, program.buffers.size()))
      return Status::error("found a view of no buffer");
    const BufferPlan &buffer = program.buffers[view.buffer];
    int64_t bytes = dtypeBytes(view.dtype);
    if (view.shape.size() > kMaxRank)
      return Status::error(
          "expected tensors of at most " + std::to_string(kMaxRank) +
          " dimensions, found one of " + std::to_string(view.shape.size()));
    if (view.shape.size() != view.strides.size() ||
        boundedProduct(view.shape, bytes) < 0)
      return Status::error("found a view of impossible shape");
    __int128 last = 0;
    bool empty = false;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      if (!inRange(view.strides[i], 0, kLimit))
        return Status::error("found a view of impossible strides");
      empty |= view.shape[i] == 0;
      last += static_cast<__int128>(view.shape[i] - 1) * view.strides[i];
    }
    __int128 end = view.offset + (empty ? 0 : (last + 1) * bytes);
    bool aligned = view.offset % bytes == 0;
    for (const AxisStride &stride : view.axes) {
      int64_t size = tables.axisSize(stride.axis);
      if (size == 0 || !inRange(stride.bytes, 0, kLimit))
        return Status::error("found a view along no axis");
      end += static_cast<__int128>(size - 1) * stride.bytes;
      aligned &= stride.bytes % bytes == 0;
    }
    if (!inRange(view.offset, 0, kLimit) || end > buffer.bytes)
      return Status::error("found a view that leaves buffer " +
                           inQuotes(buffer.name));
    if (!aligned)
      return Status::error(std::string("expected elements of ") +
                           dtypeName(view.dtype) + " at multiples of " +
                           std::to_string(bytes) + " bytes of buffer " +
                           inQuotes(buffer.name));
    return Status();
  }

  /// Elements that share bytes would get the value of whoever wrote last; those
  /// that are read may be one, along a stride of 0, and do not overlap either.
  Status checkDistinct(const View &view, bool written) {
    std::vector<std::pair<int64_t, int64_t>> dims; // by stride: stride, size
    for (size_t i = 0; i < view.shape.size(); ++i)
      if (view.shape[i] > 1 && (written || view.strides[i] != 0))
        dims.push_back({view.strides[i], view.shape[i]});
    std::sort(dims.begin(), dims.end());
    int64_t span = 1;
    for (auto [stride, size] : dims) {
      if (stride < span)
        return Status::error(
            std::string("expected a view whose elements lie apart, to be ") +
            (written ? "written" : "read") + ", of buffer " +
            inQuotes(program.buffers[view.buffer].name));
      span = (size - 1) * stride + span;
    }
    return Status();
  }

  Status checkViews(const Command &command) {
    Status status;
    auto check = [&](const View &view) {
      if (status.ok())
        status = checkView(view);
    };
    format::forEachView(command, check);
    for (const View &view : command.releases)
      check(view);
    format::forEachAccess(command, [&](const View &view, format::Access how) {
      if (status.ok())
        status = checkDistinct(view, how != format::Access::Read);
    });
    ACCEL_RT_RETURN_IF_ERROR(status);
    return checkCommand(tables, program, command);
  }

  Status checkEntries() {
    ACCEL_RT_RETURN_IF_ERROR(checkLength());
    std::set<std::string> names;
    for (const Entry &entry : program.entries) {
      bool known = entry.name == "load" || entry.name == "step" ||
                   entry.name == "eval" || entry.name == "forward";
      if (!known || !names.insert(entry.name).second)
        return Status::error("expected the entries 'load', 'step', 'eval' and "
                             "'forward', each once at most, found " +
                             inQuotes(entry.name) + " in program " +
                             inQuotes(program.name));
      for (const Loop &loop : entry.loops)
        for (const Segment &segment : loop.segments) {
          ACCEL_RT_RETURN_IF_ERROR(checkSegment(segment));
          for (const Run &run : segment.runs)
            ACCEL_RT_RETURN_IF_ERROR(
                checkRun(run, loop.trips, entry.name == "load"));
        }
      ACCEL_RT_RETURN_IF_ERROR(checkRepeats(entry));
      ACCEL_RT_RETURN_IF_ERROR(checkWaits(entry));
    }
    for (const char *name : {"step", "eval", "forward"})
      if (tables.executable.hasEntry(name) != (names.count(name) > 0))
        return Status::error("expected an entry " + inQuotes(name) +
                             " in program " + inQuotes(program.name) +
                             ", as in others, found none");
    if (names.size() == names.count("load"))
      return Status::error("expected an entry beside 'load' in program " +
                           inQuotes(program.name) + ", found none");
    return checkTransfers();
  }

  /// A stream is of one engine: only then can a device order what is in it.
  Status checkEngines() const {
    std::unordered_map<std::string_view, const Body *> streams;
    for (const Body &body : program.bodies) {
      if (body.engine.empty())
        return Status::error("expected the engine of body " +
                             inQuotes(body.name));
      for (const Command &command : body.commands) {
        const Body &first =
            *streams.try_emplace(command.stream, &body).first->second;
        if (first.engine != body.engine)
          return Status::error("expected a stream of one engine, found " +
                               inQuotes(command.stream) + " in bodies of " +
                               inQuotes(first.engine) + " and " +
                               inQuotes(body.engine) + " of program " +
                               inQuotes(program.name));
      }
    }
    return Status();
  }

  /// A segment runs bodies of its engine, and no file is read or written in one
  /// that may be captured.
  Status checkSegment(const Segment &segment) const {
    for (const Run &run : segment.runs) {
      const Body &body = program.bodies[run.body];
      if (body.engine != segment.engine)
        return Status::error("expected a segment with bodies of its engine " +
                             inQuotes(segment.engine) + ", found body " +
                             inQuotes(body.name) + " of " +
                             inQuotes(body.engine));
      for (const Command &command : body.commands)
        if (segment.capturable &&
            (std::holds_alternative<ReadCommand>(command.what) ||
             std::holds_alternative<WriteCommand>(command.what)))
          return Status::error(
              "expected no file in a segment that may be captured, found a " +
              std::string(commandKind(command)) + " of node " +
              inQuotes(command.node) + " in body " + inQuotes(body.name));
    }
    return Status();
  }

  /// What moves files is an entry's own: its call says which files.
  Status checkTransfers() {
    std::map<int64_t, const Entry *> owners; // of bodies that move any
    Status status;
    for (const Entry &entry : program.entries)
      format::forEachRun(entry, [&](const Run &run, const Loop &) {
        const Body &body = program.bodies[run.body];
        bool moves = std::any_of(
            body.commands.begin(), body.commands.end(), [](const auto &each) {
              return std::holds_alternative<ReadCommand>(each.what) ||
                     std::holds_alternative<WriteCommand>(each.what);
            });
        if (!moves || !status.ok())
          return;
        const Entry *owner = owners.try_emplace(run.body, &entry).first->second;
        if (owner != &entry)
          status = Status::error(
              "expected body " + inQuotes(body.name) +
              ", which reads inputs or writes outputs, to be run by one entry, "
              "found it in " +
              inQuotes(owner->name) + " and " + inQuotes(entry.name) +
              " of program " + inQuotes(program.name));
      });
    return status;
  }

  /// Runs name bodies, and what they come to can be checked in seconds.
  Status checkLength() {
    size_t commands = 0;
    const format::ProofTurns turns(program);
    bool exist = true;
    for (const Entry &entry : program.entries) {
      for (const Loop &loop : entry.loops)
        if (!inRange(loop.trips, 1, tables.executable.microBatches + 1))
          return Status::error("expected a loop of 1 to " +
                               std::to_string(tables.executable.microBatches) +
                               " turns in entry " + inQuotes(entry.name) +
                               ", found " + std::to_string(loop.trips));
      format::forEachRun(entry, [&](const Run &run, const Loop &loop) {
        exist &= inRange(run.body, 0, program.bodies.size());
        if (exist)
          commands += static_cast<size_t>(turns.count(loop.trips)) *
                      program.bodies[run.body].commands.size();
      });
    }
    if (!exist)
      return Status::error("found a run of no body");
    return commands <= kMaxCommands
               ? Status()
               : Status::error("expected at most " +
                               std::to_string(kMaxCommands) +
                               " commands in the runs of program " +
                               inQuotes(program.name) + ", found " +
                               std::to_string(commands));
  }

  Status checkRun(const Run &run, int64_t trips, bool isLoad) {
    const Body &body = program.bodies[run.body];
    if (!inRange(run.microBatch, 0, tables.executable.microBatches - trips + 1))
      return Status::error("expected a micro-batch of " +
                           std::to_string(tables.executable.microBatches) +
                           " for body " + inQuotes(body.name));
    for (const Command &command : body.commands) {
      // First values are there while `load` runs, inputs and outputs after it.
      auto *read = std::get_if<ReadCommand>(&command.what);
      bool misplaced = std::holds_alternative<WriteCommand>(command.what)
                           ? isLoad
                           : read && (read->source == "state") != isLoad;
      if (misplaced)
        return Status::error(
            "expected reads of states in the entry 'load', and those of inputs "
            "and writes in the other, found a " +
            std::string(commandKind(command)) + " of node " +
            inQuotes(command.node) + " in body " + inQuotes(body.name));
    }
    return Status();
  }

  /// A body that runs more than once runs once for each micro-batch. So does
  /// one that reads or writes a micro-batch's own part of anything.
  Status checkRepeats(const Entry &entry) {
    // Of each body the micro-batches [first, end) of its runs.
    std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> spans;
    format::forEachRun(entry, [&](const Run &run, const Loop &loop) {
      spans[run.body].push_back({run.microBatch, run.microBatch + loop.trips});
    });
    for (auto &[index, list] : spans) {
      const Body &body = program.bodies[index];
      std::sort(list.begin(), list.end());
      int64_t count = 0, end = 0;
      bool distinct = true;
      for (auto [first, next] : list) {
        distinct &= first >= end;
        end = next;
        count += next - first;
      }
      bool all = count == tables.executable.microBatches;
      if (!distinct || (count > 1 && !all))
        return Status::error("expected body " + inQuotes(body.name) +
                             " to run once, or once for each micro-batch");
      if (!all && movesMicroBatch(body))
        return Status::error("expected body " + inQuotes(body.name) +
                             ", which reads or writes a micro-batch's part, "
                             "to run once for each micro-batch");
    }
    return Status();
  }

  /// The runs of a body that one run of the file stands for.
  struct Span {
    int64_t first, end;   ///< Micro-batches.
    size_t place, inLoop; ///< Of the loop in the entry, of the run in the loop.

    bool comesBefore(int64_t microBatch, const Span &other,
                     int64_t otherMicroBatch) const {
      return std::tuple(place, microBatch - first, inLoop) <
             std::tuple(other.place, otherMicroBatch - other.first,
                        other.inLoop);
    }
  };

  /// What a wait in one body waits for in another, that one has recorded: its
  /// run on the same micro-batch, or its only one, stands before. In one loop
  /// both reach the next micro-batch a turn later.
  Status checkWaits(const Entry &entry) {
    std::map<int64_t, std::vector<Span>> spans;
    for (size_t place = 0; place < entry.loops.size(); ++place) {
      const Loop &loop = entry.loops[place];
      size_t inLoop = 0;
      for (const Segment &segment : loop.segments)
        for (const Run &run : segment.runs)
          spans[run.body].push_back(
              {run.microBatch, run.microBatch + loop.trips, place, inLoop++});
    }
    auto repeats = [](const std::vector<Span> &runs) {
      return runs.size() > 1 || runs[0].end > runs[0].first + 1;
    };
    for (auto &[index, waiting] : spans) {
      std::set<int64_t> recorders;
      for (const Command &command : program.bodies[index].commands)
        if (auto *wait = std::get_if<WaitCommand>(&command.what);
            wait && wait->body >= 0)
          recorders.insert(wait->body);
      for (int64_t recorder : recorders) {
        auto recording = spans.find(recorder);
        bool comes = recording != spans.end() && recorder != index;
        for (const Span &wait : waiting)
          for (size_t i = 0; comes && i < recording->second.size(); ++i) {
            const Span &record = recording->second[i];
            bool same = repeats(recording->second);
            int64_t made =
                same ? std::max(record.first, wait.first) : record.first;
            if (same && made >= std::min(record.end, wait.end))
              continue; // no micro-batch in common
            comes = record.comesBefore(made, wait, same ? made : wait.first);
          }
        // One that repeats records for each; one that does not waits for one.
        if (!comes || (repeats(recording->second) && !repeats(waiting)))
          return Status::error(
              "expected body " + inQuotes(program.bodies[index].name) +
              " to wait for events of bodies that run before it on the same "
              "micro-batch");
      }
    }
    return Status();
  }

  /// Whether a command reads or writes of what is split over micro-batches what
  /// the run's has.
  static bool movesMicroBatch(const Body &body) {
    auto isSplit = [](const Part &part) {
      return std::any_of(part.axes.begin(), part.axes.end(), [](auto &axes) {
        return std::find(axes.begin(), axes.end(), "mb") != axes.end();
      });
    };
    return std::any_of(
        body.commands.begin(), body.commands.end(), [&](const Command &each) {
          auto *read = std::get_if<ReadCommand>(&each.what);
          auto *write = std::get_if<WriteCommand>(&each.what);
          return (read && !read->eachMicroBatch && isSplit(read->part)) ||
                 (write && !write->eachMicroBatch && isSplit(write->part));
        });
  }

  const Tables &tables;
  const Program &program;
  std::unordered_map<std::string, Extent> arenas;
  std::unordered_map<std::string, const BufferPlan *> buffers;
};

} // namespace

Status checkProgram(const Tables &tables, const Program &program) {
  ACCEL_RT_RETURN_IF_ERROR(ProgramValidator(tables, program).run());
  return replay(tables, program);
}

} // namespace accel::rt
