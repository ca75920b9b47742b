// What an exchange puts on the links between ranks, as acc-run makes it
// (runtime/Comm): within a machine through its memory; over machines sums in a
// chain of the group's machines, whose result goes to all that need it, and
// what several ranks of a machine need goes there once.

#ifndef ACCEL_LIB_SCALE_TRAFFIC_H
#define ACCEL_LIB_SCALE_TRAFFIC_H

#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "lib/Cost/Links.h"
#include <map>

namespace accel::scale {

using cost::Links;

/// Of one exchange, all groups of ranks that make it at once.
struct Traffic {
  /// Of each level, the most bytes that the link of one unit takes in one
  /// direction (of the first: that a rank reads), and that all take together.
  llvm::SmallVector<double> busiest, all;
  /// The levels of the messages over the network that wait for each other.
  llvm::SmallVector<size_t> hops;
  double bytes = 0; ///< Of a rank's input.
};

class TrafficModel {
public:
  TrafficModel(dist::MeshOp mesh, const Links &links);

  /// Of a collective or a send; empty lists for any other command.
  Traffic find(plan::CommandOpInterface command);
  /// How long it takes on links that nothing else uses.
  double seconds(const Traffic &traffic) const;
  /// How much of that the links of a level are at work.
  double busySeconds(const Traffic &traffic, size_t level) const;

private:
  struct Flow; // Bytes by unit and level.
  void exchange(plan::CollectiveOp op, llvm::ArrayRef<int64_t> group,
                double bytes, double partial, Flow &flow) const;
  void reduce(llvm::ArrayRef<int64_t> group, int64_t owner, double bytes,
              double partial, Flow &flow) const;
  void deliver(int64_t from, llvm::ArrayRef<int64_t> readers, double bytes,
               Flow &flow) const;
  int64_t machineOf(int64_t rank) const { return rank / links.levels[0].ranks; }
  /// The first level whose unit has both.
  size_t levelOf(int64_t from, int64_t to) const;

  dist::MeshOp mesh;
  const Links &links;
  int64_t ranks;
  /// The groups along a list of axes.
  std::map<std::string, std::vector<llvm::SmallVector<int64_t>>> groups;
  const std::vector<llvm::SmallVector<int64_t>> &
  groupsAlong(llvm::ArrayRef<llvm::StringRef> axes);
};

} // namespace accel::scale

#endif // ACCEL_LIB_SCALE_TRAFFIC_H
