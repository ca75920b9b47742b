// Whether ops of a block can be computed together: an order of groups of ops
// that is kept while groups are joined, so that a question looks at what lies
// between two groups and not at all that comes after them.

#ifndef ACCEL_LIB_PLAN_FUSION_GROUPORDER_H
#define ACCEL_LIB_PLAN_FUSION_GROUPORDER_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <vector>

namespace accel::plan {

/// A topological order of a graph without cycles whose nodes are contracted, in
/// the manner of Pearce and Kelly (A Dynamic Topological Sort Algorithm for
/// Directed Acyclic Graphs, ACM JEA 11, 2007): a contraction moves only nodes
/// between the two.
class GroupOrder {
public:
  /// Of nodes 0 to readers.size(), each a group; readers[n] are the nodes that
  /// read n, all of them larger than n. Labels begin `spacing` apart, so far
  /// that half the way between two is free for long.
  explicit GroupOrder(std::vector<llvm::SmallVector<unsigned, 4>> readers,
                      uint64_t spacing = uint64_t(1) << 24);

  /// Makes one group of those of `node` and of its reader `other`, unless a
  /// path leads from the first out of both and into the second: returns whether
  /// it did. Requires two groups.
  bool join(unsigned node, unsigned other);

private:
  unsigned find(unsigned node);
  void setLabel(unsigned group, uint64_t label);
  /// Puts groups, in their order, right behind another.
  void moveBehind(unsigned group, llvm::SmallVectorImpl<unsigned> &moved);
  /// The groups that the first leads to and that stand before the second; none
  /// if one of them leads to the second.
  bool collectBetween(unsigned first, unsigned second,
                      llvm::SmallVectorImpl<unsigned> &between);

  uint64_t spacing;
  std::vector<llvm::SmallVector<unsigned, 4>> readers; ///< of a group's nodes
  std::vector<unsigned> parents; ///< towards the node that stands for a group
  std::vector<uint64_t> labels;  ///< of groups: the order
  std::map<uint64_t, unsigned> byLabel;
  std::vector<unsigned> seen; ///< the search that came by last
  unsigned searches = 0;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_FUSION_GROUPORDER_H
