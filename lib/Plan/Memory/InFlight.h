// How many micro-batches a buffer must keep apart, from the run list alone:
// whatever schedule wrote it.

#ifndef ACCEL_LIB_PLAN_MEMORY_INFLIGHT_H
#define ACCEL_LIB_PLAN_MEMORY_INFLIGHT_H

#include "dialects/Plan/RunList.h"

namespace accel::plan {

/// A body that uses a buffer, and whether it begins by writing it: then it
/// finds nothing of what was there.
struct BodyUse {
  mlir::StringAttr body;
  bool begins;

  bool operator<(const BodyUse &other) const {
    return std::pair(body.getAsOpaquePointer(), begins) <
           std::pair(other.body.getAsOpaquePointer(), other.begins);
  }
};

/// The runs of one entry.
class InFlight {
public:
  explicit InFlight(EntryOp entry);

  /// Whether a body runs on several micro-batches.
  bool repeats(mlir::StringAttr body) const { return count.lookup(body) > 1; }
  /// Copies that these need: two micro-batches may share one if they are that
  /// many apart.
  int64_t countCopies(llvm::ArrayRef<BodyUse> uses) const;

private:
  llvm::SmallVector<RunTurn> runs;
  llvm::DenseMap<mlir::StringAttr, unsigned> count; ///< of runs, by body
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_INFLIGHT_H
