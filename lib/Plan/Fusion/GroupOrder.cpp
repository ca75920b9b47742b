// Joins groups of a graph and keeps them in an order.

#include "GroupOrder.h"

#include "llvm/ADT/STLExtras.h"

using namespace accel::plan;
using llvm::SmallVector;
using llvm::SmallVectorImpl;

GroupOrder::GroupOrder(std::vector<SmallVector<unsigned, 4>> readers,
                       uint64_t spacing)
    : spacing(spacing), readers(std::move(readers)),
      parents(this->readers.size()), labels(this->readers.size()),
      seen(this->readers.size()) {
  for (unsigned node = 0; node < parents.size(); ++node) {
    parents[node] = node;
    setLabel(node, (node + 1) * spacing);
  }
}

unsigned GroupOrder::find(unsigned node) {
  while (parents[node] != node)
    node = parents[node] = parents[parents[node]];
  return node;
}

void GroupOrder::setLabel(unsigned group, uint64_t label) {
  labels[group] = label;
  byLabel[label] = group;
}

bool GroupOrder::collectBetween(unsigned first, unsigned second,
                                SmallVectorImpl<unsigned> &between) {
  ++searches;
  SmallVector<unsigned> work{first};
  while (!work.empty()) {
    unsigned from = work.pop_back_val();
    for (unsigned node : readers[from]) {
      unsigned group = find(node);
      if (group == second && from != first)
        return false;
      if (group == first || labels[group] >= labels[second] ||
          seen[group] == searches)
        continue;
      seen[group] = searches;
      between.push_back(group);
      work.push_back(group);
    }
  }
  return true;
}

void GroupOrder::moveBehind(unsigned group, SmallVectorImpl<unsigned> &moved) {
  llvm::sort(moved, [&](unsigned lhs, unsigned rhs) {
    return labels[lhs] < labels[rhs];
  });
  for (unsigned each : moved)
    byLabel.erase(labels[each]);
  auto end = byLabel.upper_bound(labels[group]);
  uint64_t gap = end == byLabel.end() ? spacing * (moved.size() + 1)
                                      : end->first - labels[group];
  uint64_t step = gap / (moved.size() + 1), label = labels[group];
  if (step > 0) {
    for (unsigned each : moved)
      setLabel(each, label += step);
    return;
  }
  // No room: all are labelled anew, which the spacing makes rare.
  SmallVector<unsigned> order;
  for (auto [old, each] : byLabel) {
    order.push_back(each);
    if (each == group)
      order.append(moved.begin(), moved.end());
  }
  byLabel.clear();
  for (size_t place = 0; place < order.size(); ++place)
    setLabel(order[place], (place + 1) * spacing);
}

bool GroupOrder::join(unsigned node, unsigned other) {
  unsigned first = find(node), second = find(other);
  SmallVector<unsigned> between;
  if (!collectBetween(first, second, between))
    return false;
  // The group stands where the second did: before it what leads to that,
  // behind it what the first leads to.
  byLabel.erase(labels[first]);
  moveBehind(second, between);
  parents[first] = second;
  if (readers[second].size() < readers[first].size())
    std::swap(readers[second], readers[first]);
  readers[second].append(readers[first].begin(), readers[first].end());
  readers[first].clear();
  return true;
}
