// What was enqueued between two joins, as a graph: each command stands behind
// the one before it in its stream, and each wait behind the record that it is
// for. A captured segment keeps its edges and is enqueued by them alone.

#ifndef ACCEL_TEST_MODELDEVICE_TIMELINE_H
#define ACCEL_TEST_MODELDEVICE_TIMELINE_H

#include "accel-rt/Streams.h"

#include "History.h"

namespace accel::rt::model {

inline constexpr size_t kNone = SIZE_MAX;

/// A step as it was enqueued, or captured.
struct Node {
  Step step;
  int64_t microBatch = 0;
  /// Nodes that must have ended: numbers in the timeline, or in the segment.
  std::vector<size_t> behind;
  Event event; ///< Which command of its stream it is.
  bool isCaptured = false;
  /// Of a wait that is lost on purpose: the record that it was for, which may
  /// have ended before the last join (kNone).
  bool isLost = false;
  size_t lostRecord = kNone;

  bool is(Work::Kind kind) const { return step.work->kind == kind; }
};

/// A segment, captured.
struct Captured : Graph {
  std::vector<Node> nodes;
  /// Of each node whether it waits for a record of another segment.
  std::vector<bool> waitsOutside;
};

class Timeline {
public:
  Timeline(size_t streams, size_t events)
      : tails(streams, kNone), lengths(streams), events(events) {}

  /// Enqueues a step. Errors: a wait whose record was not enqueued before it,
  /// which on a device would wait for nothing; an event that is recorded out of
  /// its order.
  Status add(const Step &step, Turn turn, bool isLost);
  /// Finds the edges of a segment.
  Status capture(const std::vector<Step> &steps,
                 const std::vector<bool> &isLost, Captured &graph) const;
  /// Enqueues a segment.
  Status replay(const Captured &graph, Turn turn);

  const std::vector<Node> &nodes() const { return all; }
  /// What came last, be it in error.
  const Node *last() const { return all.empty() ? nullptr : &all.back(); }
  /// Of each stream, how many commands it has had.
  const Clock &counts() const { return lengths; }
  /// All of it has ended.
  void clear();

private:
  struct Count {
    bool isRecorded = false; ///< Ever.
    uint32_t ended = 0;      ///< What it counted when all was joined.
    bool hasEnded = false;
    uint32_t last = 0;
    std::vector<std::pair<uint32_t, size_t>> records; ///< Since then.
  };
  /// Adds a node, of a wait that is `outside` with the edge from its record;
  /// `first` is where its segment begins.
  Status push(Node node, Turn turn, bool waitsOutside, size_t first);
  Status record(size_t event, uint32_t count, size_t node);
  Status findRecord(size_t event, uint32_t count, size_t &record) const;

  std::vector<Node> all;
  std::vector<size_t> tails; ///< Of each stream, its last node.
  Clock lengths;
  std::vector<Count> events;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_TIMELINE_H
