// Which layers of a stage are computed again by which policy, so that what they
// keep fits and the least work is done twice: a multiple-choice knapsack.

#ifndef ACCEL_LIB_SEARCH_POLICYKNAPSACK_H
#define ACCEL_LIB_SEARCH_POLICYKNAPSACK_H

#include <cstdint>
#include <optional>
#include <vector>

namespace accel::search {

/// Layers of a stage that are alike.
struct LayerClass {
  struct Choice {
    unsigned policy;
    int64_t bytes; ///< that a layer keeps, of all micro-batches in flight
    int64_t work;  ///< that is done again for it, in any unit
  };
  int64_t layers;
  std::vector<Choice> choices; ///< at least one; of different policies
};

/// What the ranks of a stage may have.
struct StageTable {
  std::vector<LayerClass> classes;
  /// By policy: what a rank has at its peak beside what layers keep, if the
  /// policy is used; less than nothing where they do not all keep so much then.
  /// Of several policies the most counts; of a stage without layers the first.
  std::vector<int64_t> besides;
};

/// How many layers of each class have each of its choices.
struct PolicyCounts {
  std::vector<std::vector<int64_t>> layers; ///< by class, by choice
  int64_t bytes = 0, work = 0;
};

/// The least work whose bytes are at most `budget` (works that add up to less
/// than 2^62); of equals that of fewest
/// bytes. None where nothing is as small. Exact: partial choices are dropped
/// only where another is as good in both or where the linear relaxation of the
/// rest (Sinha and Zoltners, The Multiple-Choice Knapsack Problem, 1979) says
/// that they end above what is known.
std::optional<PolicyCounts> choosePolicies(const StageTable &table,
                                           int64_t budget);

/// What no choice within the budget is below: the linear relaxation, where a
/// layer may have a policy in part. None where even that does not fit.
std::optional<double> boundWork(const StageTable &table, int64_t budget);

/// Of the choice of fewest bytes.
int64_t getFewestBytes(const StageTable &table);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_POLICYKNAPSACK_H
