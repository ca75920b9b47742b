// Schedules of whole backwards: GPipe, and the family of one forward, one
// backward.

#include "Generators.h"

using namespace accel::pipeline;

namespace {
constexpr TaskKind F = TaskKind::Forward, B = TaskKind::Backward;

/// A chunk and a micro-batch, in the order of the forwards or the backwards.
using Turn = std::pair<int64_t, int64_t>;

/// `ahead` forwards, then one forward, one backward in turn, then the backwards
/// that are left.
std::vector<Task> alternate(const std::vector<Turn> &forwards,
                            const std::vector<Turn> &backwards, size_t ahead) {
  std::vector<Task> tasks;
  size_t next = 0;
  auto runForward = [&] {
    if (next == forwards.size())
      return;
    tasks.push_back({F, forwards[next].first, forwards[next].second});
    ++next;
  };
  while (next < std::min(ahead, forwards.size()))
    runForward();
  for (auto [chunk, micro] : backwards) {
    runForward();
    tasks.push_back({B, chunk, micro});
  }
  return tasks;
}

std::vector<Task> alternateOneChunk(Shape shape, int64_t rank, int64_t ahead) {
  std::vector<Turn> turns;
  for (int64_t micro = 0; micro < shape.microBatches; ++micro)
    turns.push_back({rank, micro});
  return alternate(turns, turns, ahead);
}
} // namespace

std::vector<Task> accel::pipeline::orderGPipe(Shape shape, int64_t rank) {
  return alternateOneChunk(shape, rank, shape.microBatches);
}

std::vector<Task> accel::pipeline::order1F1B(Shape shape, int64_t rank) {
  return alternateOneChunk(shape, rank, shape.ranks - 1 - rank);
}

std::vector<Task> accel::pipeline::orderEager1F1B(Shape shape, int64_t rank) {
  return alternateOneChunk(shape, rank, 2 * (shape.ranks - 1 - rank));
}

std::vector<Task> accel::pipeline::orderInterleaved(Shape shape, int64_t rank) {
  // A group smaller than p would wait for itself in every chunk; so groups are
  // p or more where there are as many micro-batches.
  int64_t groups = std::max<int64_t>(1, shape.microBatches / shape.ranks);
  int64_t least = shape.microBatches / groups;
  int64_t larger = shape.microBatches % groups;
  std::vector<Turn> forwards, backwards;
  for (int64_t group = 0, first = 0; group < groups; ++group) {
    int64_t end = first + least + (group < larger);
    for (int64_t part = 0; part < shape.chunksPerRank; ++part)
      for (int64_t micro = first; micro < end; ++micro) {
        forwards.push_back({part * shape.ranks + rank, micro});
        backwards.push_back(
            {(shape.chunksPerRank - 1 - part) * shape.ranks + rank, micro});
      }
    first = end;
  }
  int64_t largest = least + (larger > 0);
  return alternate(forwards, backwards,
                   2 * (shape.ranks - 1 - rank) +
                       (shape.chunksPerRank - 1) * largest);
}
