// Numbering runs, and following a micro-batch from body to body.

#include "Execute/EventCounts.h"

#include <algorithm>
#include <map>

namespace accel::rt {

EventCounts::EventCounts(const Program &program, const Entry &entry)
    : bodies(program.bodies.size()) {
  for (const Loop &loop : entry.loops) {
    auto &segments = loops.emplace_back();
    std::map<int64_t, uint32_t> inTurn; // runs of a body
    for (const Segment &segment : loop.segments) {
      auto &runs = segments.emplace_back();
      for (const Run &run : segment.runs)
        runs.push_back({&run, bodies[run.body].count + inTurn[run.body]++, 0});
    }
    for (auto &runs : segments)
      for (RunRef &ref : runs) {
        ref.step = inTurn[ref.run->body];
        bodies[ref.run->body].spans.push_back(
            {ref.run->microBatch, loop.trips, ref.first, ref.step});
      }
    for (auto [body, runs] : inTurn)
      bodies[body].count += runs * static_cast<uint32_t>(loop.trips);
  }
}

EventCount EventCounts::countOf(const RunRef &run, int64_t trips,
                                int64_t recorder) const {
  const BodyRuns &runs = bodies[static_cast<size_t>(recorder)];
  EventCount count;
  count.perCall = runs.count;
  if (recorder == run.run->body) {
    count.pieces = {{0, run.first, run.step}};
    return count;
  }
  // The micro-batches of a loop's turns may be those of several of the body's
  // runs: of a prologue first, then of its loop.
  std::vector<int64_t> turns{0};
  for (const Span &span : runs.spans)
    for (int64_t turn : {span.microBatch - run.run->microBatch,
                         span.microBatch + span.trips - run.run->microBatch})
      if (turn > 0 && turn < trips)
        turns.push_back(turn);
  std::sort(turns.begin(), turns.end());
  turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
  for (int64_t turn : turns) {
    int64_t microBatch = run.run->microBatch + turn;
    EventCount::Piece piece{static_cast<uint32_t>(turn), 0, 0};
    for (const Span &span : runs.spans) {
      if (microBatch < span.microBatch ||
          microBatch >= span.microBatch + span.trips)
        continue;
      piece.first =
          span.first +
          static_cast<uint32_t>(microBatch - span.microBatch) * span.step;
      piece.step = span.step;
      break;
    }
    count.pieces.push_back(piece); // of a body that runs once, the only run
  }
  return count;
}

} // namespace accel::rt
