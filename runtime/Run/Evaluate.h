// What one rank does of an evaluation: the entry eval on every batch.

#ifndef ACCEL_RUNTIME_RUN_EVALUATE_H
#define ACCEL_RUNTIME_RUN_EVALUATE_H

#include "Run/Train.h"

namespace accel::rt {

/// Calls the entry eval on all batches of `call`, whose transfers `io` makes.
/// Samples that make no whole batch are counted where the call says so: their
/// batch is filled up with copies of the last one, what these come to is known
/// from a batch of them alone, and is taken off. Writes the loss of all
/// (Feed/LossSums.h) and the seconds it took to `record`; all ranks find the
/// same. Between two batches it gives up, and writes nothing, where the run is
/// to end in order. Errors say of which batch they are.
Status evaluate(const RankParts &parts, const Call &call, InputOutput &io,
                StepRecord &record);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_EVALUATE_H
