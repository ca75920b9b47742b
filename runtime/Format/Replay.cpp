// The order first: a clock for each stream tells what has happened before a
// command. Then bytes: each arena is a map of ranges that have one history.

#include "Format/Replay.h"

#include "Format/Overlap.h"
#include "Format/Runs.h"
#include "Format/Views.h"

#include <array>
#include <set>

namespace accel::rt {
namespace {

/// Each is a thread. A rank of four chunks of a pipeline has eighteen.
constexpr size_t kMaxStreams = 40;
/// Ranges that one access may meet, on average, before the plan is refused:
/// what keeps the time of the check in proportion to the file.
constexpr int64_t kWorkPerAccess = 256, kWorkToStart = 1 << 20;
/// How many commands of each stream have happened.
using Clock = std::array<int64_t, kMaxStreams>;

/// Bytes that a command touches on micro-batch 0.
struct Touch {
  size_t arena;
  int64_t begin, end;
  int64_t slots, slotStride;
  int64_t root; ///< The buffer, or the one whose bytes it shares.
  bool isScratch;
  format::Access how;
  const View *view;
};

struct Step {
  const Command *command;
  size_t stream;
  std::string event;     ///< Of a record or wait.
  int64_t waitsFor = -1; ///< The body that records, where it is another.
  bool records = false, waits = false, isCollective = false;
  std::vector<Touch> touches, releases;
  /// Pairs of touches whose places differ from each other's by the micro-batch,
  /// and may meet on one: numbers of `touches`, the second of which writes.
  std::vector<std::pair<size_t, size_t>> moving;
};

/// A range of an arena with one history.
struct Range {
  int64_t end;
  int64_t root = -1; ///< What it was last written through; -1: nothing.
  bool released = false;
  size_t writer = 0;      ///< The stream that wrote it,
  int64_t writtenAt = -1; ///< as its command of this number.
  size_t write = 0;       ///< Its number among the checked writes; 0: none.
  Clock readAt;           ///< Each stream's last read; -1: none.
  /// What it holds was there before any call. Of `loaded`: some call reads it.
  bool isLoaded = false, isNeeded = false;
};
using Ranges = std::map<int64_t, Range>; // by begin

class Replay {
public:
  Replay(const Tables &tables, const Program &program)
      : tables(tables), program(program) {}

  Status run() {
    ACCEL_RT_RETURN_IF_ERROR(prepare());
    writeConstants();
    for (const Entry &entry : program.entries)
      if (entry.name == "load")
        ACCEL_RT_RETURN_IF_ERROR(runEntry(entry));
    for (Ranges &ranges : arenas)
      for (auto &[begin, range] : ranges)
        range.isLoaded = range.root >= 0 && !range.released;
    // Calls come in any order: each finds what `load` has left, and nothing of
    // another's. What it leaves behind must still serve it when it comes again.
    loaded = arenas;
    std::vector<std::pair<const Entry *, std::vector<Ranges>>> calls;
    for (const Entry &entry : program.entries) {
      if (entry.name == "load")
        continue;
      arenas = loaded;
      for (int round = 0; round < 2; ++round) {
        isFirstRound = round == 0;
        ACCEL_RT_RETURN_IF_ERROR(runEntry(entry));
      }
      calls.push_back({&entry, std::move(arenas)});
    }
    for (const auto &[entry, left] : calls)
      ACCEL_RT_RETURN_IF_ERROR(checkLeft(*entry, left));
    // The compiler drops commands that nothing needs: the reader of such a one
    // reads something else. Of several results some may be of no use (a
    // gradient of keys that are not trained).
    std::set<const Command *> useful;
    for (const Write &write : writes)
      if (write.isRead)
        useful.insert(write.command);
    for (const Write &write : writes)
      if (!useful.count(write.command))
        return Status::error(
            "found a value that nothing reads, in buffer " +
            inQuotes(program.buffers[write.view->buffer].name) + ", in a " +
            commandKind(*write.command) + " for node " +
            inQuotes(write.command->node));
    return Status();
  }

private:
  Status prepare() {
    for (const ArenaPlan &arena : program.arenas) {
      arenaOf.emplace(arena.space, arenas.size());
      Range all{arena.bytes, -1, false, 0, -1, 0, {}};
      all.readAt.fill(-1);
      arenas.emplace_back().emplace(0, all);
    }
    std::unordered_map<std::string, int64_t> indices;
    for (const BufferPlan &buffer : program.buffers)
      indices.emplace(buffer.name, indices.size());
    for (const BufferPlan &buffer : program.buffers)
      roots.push_back(
          indices.at(buffer.aliasOf.empty() ? buffer.name : buffer.aliasOf));
    for (const Body &body : program.bodies) {
      std::vector<Step> &steps = bodies.emplace_back();
      for (const Command &command : body.commands)
        ACCEL_RT_RETURN_IF_ERROR(addStep(command, steps));
    }
    return Status();
  }

  /// What any call reads as `load` has left it stays so in every call `entry`,
  /// but that a state gets a new value: of an evaluation those alone in which
  /// micro-batches are summed.
  Status checkLeft(const Entry &entry, const std::vector<Ranges> &left) const {
    for (size_t arena = 0; arena < loaded.size(); ++arena) {
      auto now = left[arena].begin();
      for (const auto &[begin, range] : loaded[arena]) {
        while (now != left[arena].end() && now->second.end <= begin)
          ++now;
        if (!range.isNeeded)
          continue;
        const BufferPlan &buffer = program.buffers[range.root];
        const StatePlan *state = tables.state(buffer.source);
        bool mayChange =
            buffer.role == "state" &&
            (entry.name != "eval" || (state && state->role == "accumulator"));
        for (auto at = now; at != left[arena].end() && at->first < range.end;
             ++at) {
          const Range &found = at->second;
          if (found.isLoaded ||
              (mayChange && found.root == range.root && !found.released))
            continue;
          return Status::error(
              "expected what calls find of buffer " + inQuotes(buffer.name) +
              " to stay as 'load' has left it, found that the entry " +
              inQuotes(entry.name) + " overwrites byte " +
              std::to_string(std::max(begin, at->first)) + " of space " +
              inQuotes(program.arenas[arena].space) + " through buffer " +
              inQuotes(program.buffers[found.root].name));
        }
      }
    }
    return Status();
  }

  Status addStep(const Command &command, std::vector<Step> &steps) {
    Step &step = steps.emplace_back();
    step.command = &command;
    auto [stream, isNew] = streams.try_emplace(command.stream, streams.size());
    if (streams.size() > kMaxStreams)
      return Status::error("expected at most " + std::to_string(kMaxStreams) +
                           " streams in program " + inQuotes(program.name));
    step.stream = stream->second;
    if (auto *record = std::get_if<RecordCommand>(&command.what)) {
      step.records = true;
      step.event = record->event;
    } else if (auto *wait = std::get_if<WaitCommand>(&command.what)) {
      step.waits = true;
      step.event = wait->event;
      step.waitsFor = wait->body;
    }
    step.isCollective = std::holds_alternative<CollectiveCommand>(command.what);
    format::forEachAccess(command, [&](const View &view, format::Access how) {
      step.touches.push_back(touch(view, how));
    });
    for (const View &view : command.releases)
      step.releases.push_back(touch(view, format::Access::Write));
    return compareTouches(step);
  }

  /// What a command writes overlaps nothing else of it: what it reads would be
  /// read when it is no longer there, and of two values one would be lost. By
  /// their order in memory, so that what lies apart is not compared.
  Status compareTouches(Step &step) {
    std::vector<size_t> order;
    for (size_t i = 0; i < step.touches.size(); ++i)
      if (step.touches[i].begin < step.touches[i].end)
        order.push_back(i);
    auto reach = [&](size_t i) { // on any micro-batch
      const Touch &touch = step.touches[i];
      return touch.end + (touch.slots - 1) * touch.slotStride;
    };
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
      return std::pair(step.touches[i].arena, step.touches[i].begin) <
             std::pair(step.touches[j].arena, step.touches[j].begin);
    });
    int64_t left = static_cast<int64_t>(order.size()) * kWorkPerAccess +
                   kWorkToStart; // comparisons
    for (size_t at = 0; at < order.size(); ++at)
      for (size_t next = at + 1; next < order.size(); ++next) {
        const Touch &a = step.touches[order[at]],
                    &b = step.touches[order[next]];
        if (a.arena != b.arena || b.begin >= reach(order[at]))
          break;
        if (--left < 0)
          return tooManyPieces();
        if (a.how == format::Access::Read && b.how == format::Access::Read)
          continue;
        bool secondWrites = b.how != format::Access::Read;
        auto [first, second] = secondWrites ? std::pair(order[at], order[next])
                                            : std::pair(order[next], order[at]);
        if (a.slots == b.slots && a.slotStride == b.slotStride)
          ACCEL_RT_RETURN_IF_ERROR(checkApart(step, first, second, 0));
        else
          step.moving.push_back({first, second});
      }
    return Status();
  }

  Status checkApart(const Step &step, size_t first, size_t second,
                    int64_t microBatch) const {
    const Touch &other = step.touches[first], &written = step.touches[second];
    auto shift = [&](const Touch &touch) {
      return microBatch % touch.slots * touch.slotStride;
    };
    int64_t at = other.begin + shift(other),
            to = written.begin + shift(written);
    if (at + (other.end - other.begin) <= to ||
        to + (written.end - written.begin) <= at)
      return Status();
    // Where a rank's own piece is depends on which rank it is.
    const View &a = *other.view, &b = *written.view;
    bool isAlike = std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(),
                              b.axes.end(), [](auto &x, auto &y) {
                                return x.axis == y.axis && x.bytes == y.bytes;
                              });
    if (isAlike && !a.axes.empty())
      at += a.offset, to += b.offset;
    if (isAlike && !format::shareBytes(at, a, to, b))
      return Status();
    if (other.how == format::Access::Read &&
        format::mayShareBytes(*step.command, a, b, isAlike && at == to))
      return Status();
    return Status::error(
        "expected what it writes of buffer " +
        inQuotes(program.buffers[b.buffer].name) +
        " to overlap nothing else of it, found bytes that are also in its " +
        (other.how == format::Access::Read ? "operand" : "result or scratch") +
        " of buffer " + inQuotes(program.buffers[a.buffer].name) + ", in a " +
        commandKind(*step.command) + " for node " +
        inQuotes(step.command->node));
  }

  Touch touch(const View &view, format::Access how) const {
    const BufferPlan &buffer = program.buffers[view.buffer];
    int64_t last = 0;
    bool empty = false;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      empty |= view.shape[i] == 0;
      last += (view.shape[i] - 1) * view.strides[i];
    }
    int64_t begin = buffer.offset + view.offset;
    int64_t end = begin + (empty ? 0 : (last + 1) * dtypeBytes(view.dtype));
    // Any coordinate: a rank's own piece is somewhere in here.
    if (!view.axes.empty() && !empty) {
      begin = buffer.offset;
      end = begin + buffer.bytes;
    }
    return {arenaOf.at(buffer.space),
            begin,
            end,
            buffer.slots,
            buffer.slotStride,
            roots[view.buffer],
            buffer.role == "scratch",
            how,
            &view};
  }

  void writeConstants() {
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const BufferPlan &buffer = program.buffers[i];
      if (buffer.section.empty())
        continue;
      int64_t bytes =
          static_cast<int64_t>(tables.section(buffer.section)->bytes);
      put(arenas[arenaOf.at(buffer.space)], buffer.offset,
          buffer.offset + bytes, roots[i], 0, -1, 0);
    }
  }

  /// A whole call is one queue a stream: segments do not hold streams up, and
  /// all begin when all have ended.
  Status runEntry(const Entry &entry) {
    struct Queued {
      const Step *step;
      int64_t microBatch;
      size_t number; ///< Of the run in its turn: its events are its own.
      size_t place;  ///< In the order in which devices are told of all.
    };
    struct Recorded {
      Clock clock;
      size_t place;
    };
    /// Of each body, its runs' numbers, by micro-batch.
    std::vector<std::map<int64_t, size_t>> runsOf(bodies.size());
    std::vector<std::vector<Queued>> queues(streams.size());
    size_t number = 0, place = 0;
    const format::ProofTurns turns(program);
    for (const Loop &loop : entry.loops)
      for (int64_t turn = 0; turn < loop.trips; ++turn) {
        if (!turns.isListed(turn, loop.trips))
          continue;
        bool isWhole = turns.isWhole(turn, loop.trips);
        for (const Segment &segment : loop.segments)
          for (const Run &run : segment.runs) {
            for (const Step &step : bodies[run.body])
              if (isWhole || step.records || step.waits)
                queues[step.stream].push_back(
                    {&step, run.microBatch + turn, number, place++});
            runsOf[run.body].try_emplace(run.microBatch + turn, number);
            ++number;
          }
      }
    clocks.assign(streams.size(), lengths);
    lastCollective.reset();
    std::map<std::pair<size_t, std::string>, Recorded> events;
    std::vector<size_t> next(streams.size());
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t stream = 0; stream < queues.size(); ++stream)
        for (; next[stream] < queues[stream].size(); progress = true) {
          const Queued &queued = queues[stream][next[stream]];
          const Step &step = *queued.step;
          Clock &clock = clocks[stream];
          if (step.waits) {
            size_t recorder = queued.number;
            if (step.waitsFor >= 0)
              recorder = findRecorder(runsOf[step.waitsFor], queued.microBatch,
                                      queued.number);
            auto recorded = events.find({recorder, step.event});
            if (recorded == events.end())
              break;
            // A device that is told of a wait before it has heard of the record
            // has nothing to wait for.
            if (recorded->second.place > queued.place)
              return Status::error(
                  "expected a record of event " + inQuotes(step.event) +
                  " to stand before the waits for it, found it behind one, "
                  "for node " +
                  inQuotes(step.command->node));
            for (size_t i = 0; i < kMaxStreams; ++i)
              clock[i] = std::max(clock[i], recorded->second.clock[i]);
          }
          if (Status status = execute(step, queued.microBatch); !status.ok())
            return Status::error(status.message() + " in a " +
                                 commandKind(*step.command) + " for node " +
                                 inQuotes(step.command->node));
          ++next[stream];
          clock[stream] = ++lengths[stream];
          if (step.records && !events
                                   .try_emplace({queued.number, step.event},
                                                Recorded{clock, queued.place})
                                   .second)
            return Status::error("expected event " + inQuotes(step.event) +
                                 " to be recorded once in a run");
        }
    }
    for (size_t stream = 0; stream < queues.size(); ++stream)
      if (next[stream] < queues[stream].size())
        return Status::error(
            "found a wait for event " +
            inQuotes(queues[stream][next[stream]].step->event) +
            ", which no command can record before it, for node " +
            inQuotes(queues[stream][next[stream]].step->command->node));
    return Status();
  }

  /// The run that records for a wait in run `number`; of a micro-batch whose
  /// turn is left out the last one before it, which comes before the one that
  /// is meant. That this one stands before the wait, ValidateProgram has seen.
  static size_t findRecorder(const std::map<int64_t, size_t> &runs,
                             int64_t microBatch, size_t number) {
    auto same = runs.size() == 1 ? runs.begin() : runs.find(microBatch);
    if (same != runs.end())
      return same->second;
    size_t last = SIZE_MAX;
    for (auto at = runs.lower_bound(microBatch); at != runs.begin();) {
      --at;
      if (at->second < number) {
        last = at->second;
        break;
      }
    }
    return last;
  }

  Status execute(const Step &step, int64_t microBatch) {
    if (step.isCollective) {
      const Clock &clock = clocks[step.stream];
      if (lastCollective && lastCollective->first != step.stream &&
          lastCollective->second >= clock[lastCollective->first])
        return Status::error("expected collectives of different streams to "
                             "wait for each other, found one that may meet "
                             "the ranks of its group in another order");
      lastCollective = {step.stream, lengths[step.stream]};
    }
    for (auto [first, second] : step.moving)
      ACCEL_RT_RETURN_IF_ERROR(checkApart(step, first, second, microBatch));
    // All reads come first: what is written in place was read before.
    for (const Touch &touch : step.touches)
      if (touch.how != format::Access::Write)
        ACCEL_RT_RETURN_IF_ERROR(read(touch, microBatch, step.stream));
    for (const Touch &touch : step.touches)
      if (touch.how != format::Access::Read)
        ACCEL_RT_RETURN_IF_ERROR(
            write(touch, microBatch, step.stream, *step.command));
    for (const Touch &touch : step.releases)
      ACCEL_RT_RETURN_IF_ERROR(release(touch, microBatch));
    return Status();
  }

  /// The ranges from `begin` to `end`, cut there.
  static std::pair<Ranges::iterator, Ranges::iterator>
  cut(Ranges &ranges, int64_t begin, int64_t end) {
    auto at = [&](int64_t place) {
      auto next = ranges.lower_bound(place);
      if (next != ranges.end() && next->first == place)
        return next;
      if (next == ranges.begin() || std::prev(next)->second.end <= place)
        return next;
      Range &left = std::prev(next)->second;
      Range right = left;
      left.end = place;
      return ranges.emplace_hint(next, place, right);
    };
    auto first = at(begin);
    auto last = at(end);
    return {first, last};
  }

  static void put(Ranges &ranges, int64_t begin, int64_t end, int64_t root,
                  size_t stream, int64_t number, size_t write) {
    if (begin >= end)
      return;
    auto [first, last] = cut(ranges, begin, end);
    Range range{end, root, false, stream, number, write, {}};
    range.readAt.fill(-1);
    last = ranges.erase(first, last);
    ranges.emplace_hint(last, begin, range);
  }

  /// Whether command `number` of `writer` happens before the one at hand.
  bool isBefore(size_t writer, int64_t number, size_t stream) const {
    return writer == stream || number < clocks[stream][writer];
  }

  template <class F>
  Status forRanges(const Touch &touch, int64_t microBatch, F &&f) {
    int64_t shift = microBatch % touch.slots * touch.slotStride;
    if (touch.begin >= touch.end)
      return Status();
    auto [first, last] =
        cut(arenas[touch.arena], touch.begin + shift, touch.end + shift);
    for (work -= kWorkPerAccess; first != last; ++first, ++work)
      ACCEL_RT_RETURN_IF_ERROR(f(first->first, first->second));
    return work <= kWorkToStart ? Status() : tooManyPieces();
  }

  static Status tooManyPieces() {
    return Status::error("expected a plan whose commands touch whole ranges of "
                         "bytes, found too many pieces");
  }

  Status races(const Touch &touch) const {
    return Status::error(
        "found a race: it and a command of another stream touch the same bytes "
        "of buffer " +
        inQuotes(program.buffers[touch.view->buffer].name) +
        ", one of them writes, and neither waits for the other,");
  }

  Status read(const Touch &touch, int64_t microBatch, size_t stream) {
    auto check = [&](int64_t begin, Range &range) {
      if (!touch.isScratch && (range.root != touch.root || range.released)) {
        std::string what =
            "found a read of byte " + std::to_string(begin) + " of space " +
            inQuotes(program.arenas[touch.arena].space) + ", in buffer " +
            inQuotes(program.buffers[touch.view->buffer].name);
        if (range.root < 0)
          return Status::error(what + ", which nothing has written,");
        if (range.root != touch.root)
          return Status::error(what + ", which buffer " +
                               inQuotes(program.buffers[range.root].name) +
                               " has overwritten,");
        return Status::error(what + ", which was released,");
      }
      if (!isBefore(range.writer, range.writtenAt, stream))
        return races(touch);
      range.readAt[stream] = lengths[stream];
      writes[range.write].isRead = true;
      if (range.isLoaded && !touch.isScratch)
        need(touch.arena, begin, range.end);
      return Status();
    };
    return forRanges(touch, microBatch, check);
  }

  /// Notes that a call reads what `load` has left there: one range of one
  /// history, so that `loaded` is cut where the call has cut it.
  void need(size_t arena, int64_t begin, int64_t end) {
    auto [first, last] = cut(loaded[arena], begin, end);
    for (; first != last; ++first)
      first->second.isNeeded = true;
  }

  /// Values that a call hands to itself, of which it is noted whether they are
  /// read: states outlive it, scratch is no value, and of what ranks exchange
  /// others may be the readers.
  size_t noteWrite(const Touch &touch, const Command &command) {
    const std::string &role = program.buffers[touch.view->buffer].role;
    if (!isFirstRound || touch.begin >= touch.end || touch.isScratch ||
        role == "state" || role == "communication" ||
        std::holds_alternative<GroupCommand>(command.what))
      return 0;
    writes.push_back({&command, touch.view, false});
    return writes.size() - 1;
  }

  Status write(const Touch &touch, int64_t microBatch, size_t stream,
               const Command &command) {
    auto check = [&](int64_t, Range &range) {
      if (!isBefore(range.writer, range.writtenAt, stream))
        return races(touch);
      for (size_t reader = 0; reader < streams.size(); ++reader)
        if (!isBefore(reader, range.readAt[reader], stream))
          return races(touch);
      return Status();
    };
    ACCEL_RT_RETURN_IF_ERROR(forRanges(touch, microBatch, check));
    int64_t shift = microBatch % touch.slots * touch.slotStride;
    put(arenas[touch.arena], touch.begin + shift, touch.end + shift, touch.root,
        stream, lengths[stream], noteWrite(touch, command));
    return Status();
  }

  Status release(const Touch &touch, int64_t microBatch) {
    return forRanges(touch, microBatch, [&](int64_t, Range &range) {
      range.released = true;
      range.isLoaded = false;
      range.root = touch.root;
      return Status();
    });
  }

  const Tables &tables;
  const Program &program;
  std::unordered_map<std::string, size_t> arenaOf, streams;
  std::vector<Ranges> arenas; ///< As program.arenas.
  std::vector<Ranges> loaded; ///< What they were when `load` had ended.
  std::vector<int64_t> roots; ///< As program.buffers.
  std::vector<std::vector<Step>> bodies;
  std::vector<Clock> clocks; ///< Of each stream.
  Clock lengths{};           ///< Commands that each stream has run.
  struct Write {
    const Command *command;
    const View *view;
    bool isRead;
  };
  std::vector<Write> writes{{nullptr, nullptr, true}};
  bool isFirstRound = false;
  std::optional<std::pair<size_t, int64_t>> lastCollective;
  int64_t work = 0;
};

} // namespace

Status replay(const Tables &tables, const Program &program) {
  return Replay(tables, program).run();
}

} // namespace accel::rt
