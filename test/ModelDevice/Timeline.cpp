// Edges of streams and of events.

#include "Timeline.h"

namespace accel::rt::model {
namespace {

/// Counts wrap; what is compared lies close together.
bool reaches(uint32_t count, uint32_t wanted) {
  return static_cast<int32_t>(count - wanted) >= 0;
}

/// Whether two counts are the same in every turn: both are linear between their
/// pieces.
bool isSame(const EventCount &a, const EventCount &b) {
  for (const EventCount *count : {&a, &b})
    for (const EventCount::Piece &piece : count->pieces)
      for (uint32_t turn : {piece.turn, piece.turn + 1})
        if (a.at({0, turn}) != b.at({0, turn}))
          return false;
  return a.perCall == b.perCall;
}

} // namespace

Status Timeline::add(const Step &step, Turn turn, bool isLost) {
  Node node;
  node.step = step;
  node.isLost = isLost;
  if (tails[step.stream] != kNone)
    node.behind.push_back(tails[step.stream]);
  bool waits = node.is(Work::Kind::Wait);
  return push(std::move(node), turn, waits, kNone);
}

Status Timeline::push(Node added, Turn turn, bool waitsOutside, size_t first) {
  const size_t number = all.size(), stream = added.step.stream;
  Node &node = all.emplace_back(std::move(added));
  node.microBatch = node.step.microBatch + turn.turn;
  node.event = {stream, ++lengths[stream], node.step.work->number,
                node.step.isInLoop ? node.microBatch : -1};
  tails[stream] = number;
  if (node.is(Work::Kind::Record))
    return record(node.step.event, node.step.count.at(turn), number);
  if (!waitsOutside)
    return Status();
  size_t record = kNone;
  ACCEL_RT_RETURN_IF_ERROR(
      findRecord(node.step.event, node.step.count.at(turn), record));
  if (record != kNone && record >= first)
    return Status::error("waits for a record of its own segment in some turns "
                         "only: what is captured has no such edge");
  if (node.isLost)
    node.lostRecord = record;
  else if (record != kNone)
    node.behind.push_back(record);
  return Status();
}

Status Timeline::record(size_t event, uint32_t count, size_t node) {
  Count &recorded = events[event];
  if (recorded.isRecorded && reaches(recorded.last, count))
    return Status::error("records an event that was recorded for this run, or "
                         "for a later one");
  recorded.isRecorded = true;
  recorded.last = count;
  recorded.records.push_back({count, node});
  return Status();
}

Status Timeline::findRecord(size_t event, uint32_t count,
                            size_t &record) const {
  const Count &found = events[event];
  record = kNone;
  if (found.hasEnded && reaches(found.ended, count))
    return Status();
  for (const auto &[recorded, node] : found.records)
    if (reaches(recorded, count)) {
      record = node;
      return Status();
    }
  return Status::error(
      "waits for an event whose record was not enqueued before "
      "it: a device would wait for nothing");
}

Status Timeline::capture(const std::vector<Step> &steps,
                         const std::vector<bool> &isLost,
                         Captured &graph) const {
  std::vector<size_t> last(tails.size(), kNone);
  for (size_t i = 0; i < steps.size(); ++i) {
    Node node;
    node.step = steps[i];
    node.isCaptured = true;
    node.isLost = isLost[i];
    size_t &before = last[node.step.stream];
    if (before != kNone)
      node.behind.push_back(before);
    before = i;
    bool waitsOutside = node.is(Work::Kind::Wait);
    for (size_t j = 0; node.is(Work::Kind::Wait) && j < steps.size(); ++j) {
      if (steps[j].work->kind != Work::Kind::Record ||
          steps[j].event != node.step.event ||
          !isSame(steps[j].count, node.step.count))
        continue;
      if (j > i)
        return Status::error(
            "captures a wait before the record that it is for");
      waitsOutside = false;
      if (node.isLost)
        node.lostRecord = j;
      else
        node.behind.push_back(j);
    }
    graph.nodes.push_back(std::move(node));
    graph.waitsOutside.push_back(waitsOutside);
  }
  return Status();
}

Status Timeline::replay(const Captured &graph, Turn turn) {
  const size_t first = all.size();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node node = graph.nodes[i];
    size_t stream = node.step.stream;
    bool isFirst = node.behind.empty() ||
                   graph.nodes[node.behind.front()].step.stream != stream;
    for (size_t &edge : node.behind)
      edge += first;
    if (node.lostRecord != kNone)
      node.lostRecord += first;
    // A graph begins behind what stands in its streams.
    if (isFirst && tails[stream] != kNone)
      node.behind.push_back(tails[stream]);
    ACCEL_RT_RETURN_IF_ERROR(
        push(std::move(node), turn, graph.waitsOutside[i], first));
  }
  return Status();
}

void Timeline::clear() {
  all.clear();
  tails.assign(tails.size(), kNone);
  for (Count &event : events) {
    event.records.clear();
    event.hasEnded = event.isRecorded;
    event.ended = event.last;
  }
}

} // namespace accel::rt::model
