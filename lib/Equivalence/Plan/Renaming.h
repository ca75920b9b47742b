// Values of another micro-batch: what a task makes of one, it makes of every
// one, so that a term that was found once is known for all.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_RENAMING_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_RENAMING_H

#include "Terms.h"

namespace accel::equivalence {

/// The micro-batch that has no number: it stands for any.
MicroBatch getAnyMicroBatch(mlir::MLIRContext *context);

/// Terms with micro-batch `to` in place of `from`, and those that are n after
/// it in place of those that were n after the other. It is one to one: there
/// and back again is the same term. What no micro-batch of `from`'s turn is in
/// stays as it is.
class Renaming {
public:
  Renaming(Terms &terms, MicroBatch from, MicroBatch to)
      : terms(terms), from(from), to(to) {}

  TermId rename(TermId term);
  IndexMap rename(const IndexMap &map) const;

private:
  llvm::SmallVector<TermId> listOperands(TermId term) const;
  TermId renameKnown(TermId term);
  ValueId renameValue(ValueId value);

  Terms &terms;
  MicroBatch from, to;
  llvm::DenseMap<TermId, TermId> renamed;
  llvm::DenseMap<ValueId, ValueId> values;
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_RENAMING_H
