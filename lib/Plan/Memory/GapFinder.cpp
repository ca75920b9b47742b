// A segment tree over positions, each node with the bytes that are taken all
// through it, joined where they touch.

#include "GapFinder.h"

using namespace accel;
using namespace accel::plan;

GapFinder::GapFinder(const CommandOrder &order, int64_t alignment)
    : count(order.getExecutions().size()), streams(order.getNumStreams()),
      alignment(alignment), known(size_t(count + 1) * streams, ~0u),
      nodes(4 * std::max(count, 1u)) {
  for (unsigned at = count; at-- > 0;)
    for (unsigned stream = 0; stream < streams; ++stream)
      known[at * streams + stream] =
          std::min(known[(at + 1) * streams + stream],
                   order.getExecutions()[at].clock[stream]);
}

/// The position from which on every execution comes after the stretch.
unsigned GapFinder::findKnownFrom(const Stretch &stretch) const {
  auto positions = llvm::seq(stretch.last + 1, count + 1);
  return *llvm::partition_point(positions, [&](unsigned at) {
    for (unsigned stream = 0; stream < streams; ++stream)
      if (known[at * streams + stream] < stretch.ends[stream])
        return true;
    return false;
  });
}

void GapFinder::take(Ranges &ranges, int64_t begin, int64_t end) {
  auto next = ranges.upper_bound(begin);
  if (next != ranges.begin())
    if (auto before = std::prev(next); before->second >= begin) {
      begin = before->first;
      end = std::max(end, before->second);
      ranges.erase(before);
    }
  while (next != ranges.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ranges.erase(next);
  }
  ranges.emplace_hint(next, begin, end);
}

template <class On, class Above>
void GapFinder::visit(unsigned node, unsigned begin, unsigned end,
                      unsigned first, unsigned last, On on, Above above) {
  if (last < begin || end <= first)
    return;
  if (first <= begin && end <= last + 1)
    return on(nodes[node]);
  unsigned middle = begin + (end - begin) / 2;
  visit(2 * node, begin, middle, first, last, on, above);
  visit(2 * node + 1, middle, end, first, last, on, above);
  above(nodes[node]);
}

void GapFinder::look(const Ranges &ranges) {
  found.insert(found.end(), ranges.begin(), ranges.end());
}

int64_t GapFinder::find(llvm::ArrayRef<Stretch> stretches, int64_t bytes,
                        int64_t start) {
  found.clear();
  for (const Stretch &stretch : stretches) {
    visit(
        1, 0, count, stretch.first, stretch.last,
        [&](Node &node) { look(node.below); },
        [&](Node &node) { look(node.own); });
    // Those that begin after it in this order, and need not in another.
    auto end = byFirst.lower_bound(findKnownFrom(stretch));
    for (auto next = byFirst.upper_bound(stretch.last); next != end; ++next)
      if (++looks; !stretch.endsBefore(next->second->stretch))
        look(*next->second);
    auto lookAtLate = [&](Node &node) {
      for (const Placed *other : node.late)
        if (++looks; !other->stretch.endsBefore(stretch))
          look(*other);
    };
    visit(1, 0, count, stretch.first, stretch.first, lookAtLate, lookAtLate);
  }
  looks += found.size();
  llvm::sort(found);
  int64_t best = -1, bestGap = 0;
  for (auto [begin, end] : found) {
    int64_t gap = begin - start;
    if (gap >= bytes && (best < 0 || gap < bestGap)) {
      best = start;
      bestGap = gap;
    }
    start = std::max(start, end);
  }
  return best < 0 ? start : best;
}

void GapFinder::insert(llvm::ArrayRef<Stretch> stretches, int64_t bytes,
                       int64_t offset) {
  if (bytes == 0)
    return;
  int64_t end = llvm::alignTo(offset + bytes, alignment);
  for (const Stretch &stretch : stretches) {
    const Placed &other = placed.emplace_back(Placed{stretch, offset, end});
    byFirst.emplace(stretch.first, &other);
    visit(
        1, 0, count, stretch.first, stretch.last,
        [&](Node &node) {
          take(node.own, offset, end);
          take(node.below, offset, end);
        },
        [&](Node &node) { take(node.below, offset, end); });
    unsigned knownFrom = findKnownFrom(stretch);
    if (knownFrom > stretch.last + 1)
      visit(
          1, 0, count, stretch.last + 1, knownFrom - 1,
          [&](Node &node) { node.late.push_back(&other); }, [](Node &) {});
  }
}
