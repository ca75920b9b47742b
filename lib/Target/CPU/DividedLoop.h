// How the loop over one dimension of a result is divided, so that each
// innermost loop reads memory in one direction and takes no decisions: at the
// seams of a concatenation into one loop after another, and where a reshape
// splits the dimension into a loop in a loop. A kernel is emitted with whole
// loops first; what its elements would have to decide or divide for every index
// is then known, and it is emitted again.

#ifndef ACCEL_LIB_TARGET_CPU_DIVIDEDLOOP_H
#define ACCEL_LIB_TARGET_CPU_DIVIDEDLOOP_H

#include <cstdint>
#include <vector>

namespace accel {

/// A loop over the indices [begin, end): by itself, or as the parts that it is
/// divided into.
class DividedLoop {
public:
  DividedLoop(int64_t begin, int64_t end) : begin(begin), end(end) {}

  /// Divides into [begin, at) and [at, end).
  void cut(int64_t at);
  /// Divides into a loop over index / n and one over index mod n in it.
  /// Requires `begin` and `end` to be multiples of n. An inner loop of few
  /// indices becomes one part for each, so that the outer one is innermost.
  void split(int64_t n);
  bool isWhole() const { return parts.empty(); }

  /// How many copies of its body are emitted.
  int64_t countBodies() const;

  int64_t begin, end;
  int64_t factor = 0; ///< the inner loop's size; 0 if parts follow each other
  std::vector<DividedLoop> parts; ///< with a factor the outer and the inner one
};

/// A division that a kernel would gain from: of `loop` at the index `at`, or by
/// `factor` if that is not 0.
struct LoopDivision {
  DividedLoop *loop;
  int64_t at, factor;
};

} // namespace accel

#endif // ACCEL_LIB_TARGET_CPU_DIVIDEDLOOP_H
