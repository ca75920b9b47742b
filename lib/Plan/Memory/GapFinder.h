// Finds room for a buffer between those that have their place already: the
// smallest gap among the bytes of whatever may be alive with it. It takes about
// as long as there are gaps, not buffers: what is alive together and lies side
// by side, as the activations that a forward pass leaves behind, is one range.

#ifndef ACCEL_LIB_PLAN_MEMORY_GAPFINDER_H
#define ACCEL_LIB_PLAN_MEMORY_GAPFINDER_H

#include "lib/Plan/Order/CommandOrder.h"
#include <deque>
#include <map>

namespace accel::plan {

/// A stretch of executions that access a buffer.
struct Stretch {
  unsigned first = 0, last = 0; ///< positions in CommandOrder::getExecutions
  /// Of each stream: the last execution of the stretch, and how many surely
  /// come before all of it. They must outlive their use.
  llvm::ArrayRef<unsigned> ends, begins;

  /// Whether all of this one surely happens before all of `other`.
  bool endsBefore(const Stretch &other) const {
    return llvm::all_of(llvm::zip_equal(ends, other.begins), [](auto pair) {
      return std::get<0>(pair) <= std::get<1>(pair);
    });
  }
};

/// Of one space. Positions alone tell most of what is alive together: stretches
/// that overlap in one order in which all can happen, and those that another
/// order lets overlap, which a stream that is behind does not know of yet.
class GapFinder {
public:
  GapFinder(const CommandOrder &order, int64_t alignment);

  /// The smallest gap from `start` on that holds `bytes` between buffers alive
  /// in one of the stretches; behind all of them if there is none. `start` must
  /// be aligned.
  int64_t find(llvm::ArrayRef<Stretch> stretches, int64_t bytes, int64_t start);
  /// Takes bytes from `offset` on, which must be aligned.
  void insert(llvm::ArrayRef<Stretch> stretches, int64_t bytes, int64_t offset);

  /// Ranges of bytes that `find` has looked at so far.
  uint64_t countLooks() const { return looks; }

private:
  /// Disjoint ranges of bytes, none of which touch: begin to end.
  using Ranges = std::map<int64_t, int64_t>;
  struct Placed {
    Stretch stretch;
    int64_t begin, end;
  };
  /// A node of a segment tree over positions.
  struct Node {
    Ranges own;   ///< of stretches that cover the node, and not its parent
    Ranges below; ///< the same of the node and of all below it
    /// Stretches that have ended, of which not all executions know it.
    std::vector<const Placed *> late;
  };

  static void take(Ranges &ranges, int64_t begin, int64_t end);
  unsigned findKnownFrom(const Stretch &stretch) const;
  /// Calls on the nodes that make up [first, last] and on those above them.
  template <class On, class Above>
  void visit(unsigned node, unsigned begin, unsigned end, unsigned first,
             unsigned last, On on, Above above);
  void look(const Ranges &ranges);
  void look(const Placed &placed) {
    found.push_back({placed.begin, placed.end});
  }

  unsigned count, streams;
  int64_t alignment;
  /// For each position and stream: what all executions from there on know.
  std::vector<unsigned> known;
  std::vector<Node> nodes;
  std::deque<Placed> placed;
  std::multimap<unsigned, const Placed *> byFirst;
  std::vector<std::pair<int64_t, int64_t>> found; ///< by one call of `find`
  uint64_t looks = 0;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_GAPFINDER_H
