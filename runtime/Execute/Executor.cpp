// Running entries: what is enqueued, and what its streams tell.

#include "Execute/Executor.h"

#include "Format/Views.h"

namespace accel::rt {

Executor::Executor(const Program &program, Coordinates coordinates, Parts parts,
                   bool poison)
    : program(program), coordinates(std::move(coordinates)),
      parts(std::move(parts)), poison(poison) {}

Executor::~Executor() = default;

Counts Executor::takeCounts() {
  Counts counts{};
  for (BoundEntry &entry : entries) {
    for (size_t i = 0; i < entry.runs.size(); ++i)
      addCosts(program, *numbered[i]->command, entry.runs[i] * entry.calls,
               counts);
    entry.calls = 0;
  }
  return counts;
}

uint64_t Executor::touchedBytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < arenas.size(); ++i)
    if (!program.arenas[i].isStored())
      bytes += arenas[i].touched;
  return bytes;
}

Status Executor::run(const std::string &name) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (program.entries[i].name != name)
      continue;
    ++call;
    ++entries[i].calls;
    if (recorder)
      recorder->call(i, entries[i].spans);
    size_t enqueued = 0;
    for (BoundLoop &loop : entries[i].loops)
      for (uint32_t turn = 0; turn < loop.trips; ++turn)
        for (BoundSegment &segment : loop.segments) {
          size_t count = segment.graph ? 1 : segment.steps.size();
          // A wait stands behind what it waits for: all that is enqueued up to
          // a segment's end comes to its own.
          if (enqueued + count > capacity) {
            ACCEL_RT_RETURN_IF_ERROR(join());
            enqueued = 0;
          }
          enqueued += count;
          Turn now{call, turn};
          Streams &streams = *engines[segment.engine]->streams;
          if (segment.graph)
            streams.replay(*segment.graph, now);
          else
            for (const Step &step : segment.steps)
              streams.enqueue(step, now);
        }
    for (size_t a = 0; a < arenas.size(); ++a)
      arenas[a].touched = std::max(arenas[a].touched, entries[i].touched[a]);
    return join();
  }
  return Status();
}

Status Executor::join() {
  for (auto &engine : engines)
    engine->streams->flush();
  Failure failure;
  for (auto &engine : engines)
    if (Failure own = engine->streams->join(); own.comesBefore(failure))
      failure = std::move(own);
  if (failure.status.ok() || !failure.work)
    return failure.status;
  // Of several ranks' failures the first in the program is told.
  parts.control->self().command[0] = failure.work->number;
  const Command &command =
      *numbered[static_cast<size_t>(failure.work->number)]->command;
  return Status::error("node " + inQuotes(command.node) + ": " +
                       failure.status.message());
}

/// Where the watchdog looks for what a stream does.
static size_t placeOf(size_t stream) {
  return std::min<size_t>(stream, RankControl::kStreams - 1);
}

void Executor::begins(size_t stream, Work &work, int64_t microBatch) {
  if (recorder)
    recorder->begins(stream, work, microBatch);
  RankControl &self = parts.control->self();
  self.microBatch[placeOf(stream)].store(microBatch, std::memory_order_relaxed);
  self.command[placeOf(stream)].store(work.number, std::memory_order_relaxed);
  self.progress.fetch_add(1, std::memory_order_relaxed);
}

void Executor::ends(size_t stream) {
  if (recorder)
    recorder->ends(stream);
}

void Executor::rests(size_t stream) {
  ends(stream);
  parts.control->self().command[placeOf(stream)] = RankControl::kIdle;
}

} // namespace accel::rt
