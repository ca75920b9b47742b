// How far an event must have counted: the runs of an entry numbered by body,
// and of a wait the number of the run that it is for, for every turn of its
// loop.

#ifndef ACCEL_RUNTIME_EXECUTE_EVENTCOUNTS_H
#define ACCEL_RUNTIME_EXECUTE_EVENTCOUNTS_H

#include "accel-rt/Streams.h"

namespace accel::rt {

/// The runs of one entry. An event counts the runs of its body that have
/// recorded it, those of all calls: a body's runs follow each other on a
/// stream.
class EventCounts {
public:
  /// A run in turn t of its loop is number `first` + t · `step` of its body's
  /// runs in a call.
  struct RunRef {
    const Run *run;
    uint32_t first, step;
  };

  EventCounts(const Program &program, const Entry &entry);

  /// The runs of a loop's segments, in their order.
  const std::vector<std::vector<RunRef>> &segmentsOf(size_t loop) const {
    return loops[loop];
  }
  /// Where `run`, whose loop has `trips` turns, meets an event that the body
  /// `recorder` records: its own, or another's run on the same micro-batch.
  EventCount countOf(const RunRef &run, int64_t trips, int64_t recorder) const;

private:
  /// The runs of a body that a run in a loop is.
  struct Span {
    int64_t microBatch, trips;
    uint32_t first, step;
  };
  struct BodyRuns {
    std::vector<Span> spans;
    uint32_t count = 0;
  };
  std::vector<BodyRuns> bodies;
  std::vector<std::vector<std::vector<RunRef>>> loops;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_EXECUTE_EVENTCOUNTS_H
